/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the caller gets: one shape for --json, the wire and the packages. Plain data that the run
 * fills; printing it is here too.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "plan/plan.h"
#include "watch/capture.h"
#include "watch/stream.h"
#include "watch/verdict.h"

struct vt_result {
	char              call_id[64];
	struct vt_verdict verdict;
	struct vt_capture out, err;
	struct vt_capture report;         /* of an evaluation: watch/report.h */
	/* output went to where vitro's own goes, and is not in here */
	bool              passed_on;
	bool              out_unended, err_unended; /* the last line of a stream has no end */
	bool              silent;         /* nothing was printed */
	double            wall_ms, cpu_ms;
	int64_t           peak_memory_kb; /* -1: not known */
	int64_t           processes;      /* the most seen at once; -1: not known */
	bool              unreaped;       /* the cell did not go within five seconds */
	/* it is empty, but its private folder took too long to go */
	bool              uncleared;
	/* what became of protected names: watch/guarded.h; NULL: nothing */
	json_t           *guarded;
	size_t            guarded_count, guarded_bytes;
	bool              unbuilt;        /* the cell could not be built, and nothing of it ran */
	/* then, or where the program could not be executed: why */
	struct vt_err     failure;
	size_t            err_tail_len;
	/* the end of standard error, passed on or not */
	char              err_tail[VT_STREAM_TAIL];
};

/* Until a verdict is reached, a result is one of a lost call. */
void vt_result_init(struct vt_result *result);
void vt_result_done(struct vt_result *result);

/*
 * The result as JSON, one line with a newline. plan may be NULL where there is none (refused).
 *
 * What a cell printed is in it as text: on a terminal it needs vt_screen_add(), whose "\u009b"
 * means the same in JSON.
 */
int vt_result_json(const struct vt_result *result, const struct vt_plan *plan, struct vt_str *out,
		   struct vt_err *err);

/* What holds a cell of this plan, as results have it. NULL: out of memory. */
json_t *vt_result_isolation(const struct vt_plan *plan);
