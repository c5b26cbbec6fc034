/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/done.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/frame.h"
#include "base/head.h"
#include "base/utf8.h"

/* Of a tool's own words: what a head has room for, were all of it to be escaped. */
enum { ERROR_MAX = 8 << 10 };

static void drop(struct vt_outcome *outcome, struct vt_str texts[2])
{
	outcome->value_len = 0;
	outcome->error_type = outcome->error = NULL;
	vt_str_clear(&texts[0]);
	vt_str_clear(&texts[1]);
}

bool vt_done_fits(const struct vt_outcome *outcome, const struct vt_str texts[2])
{
	const size_t room = VT_FRAME_MAX - VT_FRAME_HEAD_MAX;

	return outcome->value_len <= room && texts[0].len <= room - outcome->value_len &&
	       texts[1].len <= room - outcome->value_len - texts[0].len;
}

void vt_done_bound(struct vt_outcome *outcome, struct vt_str texts[2])
{
	if (vt_done_fits(outcome, texts))
		return;
	vt_verdict_set(&outcome->result.verdict, VT_STATUS_RESULT_LIMIT,
		       "what the call gave and printed is more than 1 GB in all");
	drop(outcome, texts);
}

void vt_done_lose(struct vt_outcome *outcome, struct vt_str texts[2])
{
	if (outcome->value_len == 0 && texts[0].len == 0 && texts[1].len == 0)
		return;
	vt_verdict_set(&outcome->result.verdict, VT_STATUS_LOST,
		       "too much waits for this program to read it, so what the call gave and "
		       "printed was dropped");
	drop(outcome, texts);
}

/* What is as it would be if it were not there is left out. */
static void add_unless(struct vt_str *head, const char *name, int64_t value, int64_t none)
{
	if (value != none)
		vt_head_add_int(head, name, value);
}

static void add_usage(struct vt_str *head, const struct vt_result *result)
{
	add_unless(head, "wall_ns", (int64_t)(result->wall_ms * VT_NS_PER_MS), 0);
	add_unless(head, "cpu_ns", (int64_t)(result->cpu_ms * VT_NS_PER_MS), 0);
	add_unless(head, "peak_kb", result->peak_memory_kb, -1);
	add_unless(head, "processes", result->processes, -1);
	if (result->unreaped)
		vt_head_add_flag(head, "unreaped", true);
}

/* As JSON in a text. One that no head has room for only says how much there is. */
static void add_guarded(struct vt_str *head, const struct vt_result *result)
{
	enum { GUARDED_MAX = 4 << 10 };
	char *text = result->guarded ? json_dumps(result->guarded, JSON_COMPACT) : NULL;
	char counted[64];

	if (text && strlen(text) > GUARDED_MAX) {
		(void)snprintf(counted, sizeof(counted), "{\"more\":%zu}",
			       result->guarded_count); /* fits */
		vt_head_add(head, "protected", counted);
	} else if (text) {
		vt_head_add(head, "protected", text);
	}
	free(text);
}

static void add_error(struct vt_str *head, const struct vt_outcome *outcome)
{
	const struct vt_verdict *verdict = &outcome->result.verdict;

	if (verdict->status == VT_STATUS_OK)
		return;
	vt_head_add(head, "error_type", outcome->error_type ? outcome->error_type : verdict->type);
	if (outcome->error)
		vt_head_add_text(head, "error", outcome->error,
				 vt_utf8_cut(outcome->error, outcome->error_len, ERROR_MAX));
	else
		vt_head_add(head, "error", verdict->message);
}

void vt_done_describe(struct vt_str *head, int64_t call, const struct vt_outcome *outcome,
		      const struct vt_str texts[2])
{
	const struct vt_result *result = &outcome->result;

	vt_head_begin(head);
	vt_head_add(head, "is", "done");
	vt_head_add_int(head, "call", call);
	vt_head_add(head, "status", vt_status_name(result->verdict.status));
	add_unless(head, "value", (int64_t)outcome->value_len, 0);
	add_unless(head, "stdout", (int64_t)texts[0].len, 0);
	add_unless(head, "stderr", (int64_t)texts[1].len, 0);
	add_unless(head, "dropped_stdout", (int64_t)vt_capture_dropped(&result->out), 0);
	add_unless(head, "dropped_stderr", (int64_t)vt_capture_dropped(&result->err), 0);
	add_unless(head, "exit_code", result->verdict.exit_code, -1);
	add_unless(head, "signal", result->verdict.signal, 0);
	add_usage(head, result);
	if (outcome->came_to_cell)
		vt_head_add_flag(head, "cell", true);
	add_guarded(head, result);
	add_error(head, outcome);
}
