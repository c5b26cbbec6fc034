/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "watch/audit_line.h"
#include "watch/chain.h"

/* How long one line may keep all clients waiting; and when it is tried again. */
#define WAIT  (20 * VT_NS_PER_MS)
#define AGAIN (250 * VT_NS_PER_MS)
/* At the end nobody waits for anything else. */
#define LAST (5 * VT_NS_PER_S)

/* ---- the file ------------------------------------------------------------------------------- */

static int append(struct vt_record *record, const char *line, size_t len, struct vt_err *err)
{
	if (vt_audit_is_moved(&record->log)) {
		vt_audit_done(&record->log);
		int r = vt_audit_open(&record->log, record->path, err);

		if (r < 0)
			return r;
		record->log.wait_ns = WAIT;
	}
	return vt_audit_append(&record->log, line, len, err);
}

/* Those that were kept, the oldest first. */
static int write_kept(struct vt_record *record, struct vt_err *err)
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && at < record->kept.len) {
		const char *line = record->kept.text + at;
		size_t len = (size_t)((char *)memchr(line, '\n', record->kept.len - at) - line) + 1;

		r = append(record, line, len, err);
		at += r == 0 ? len : 0;
	}
	vt_str_drop(&record->kept, at);
	return r;
}

static void timer_fires(struct vt_timer *timer)
{
	struct vt_record *record = timer->owner;
	struct vt_err err;

	record->blocked = write_kept(record, &err) < 0;
	if (record->blocked)
		vt_timer_set(timer, vt_clock_now() + AGAIN);
	if (record->tried)
		record->tried(record->user, !record->blocked);
}

int vt_record_open(struct vt_record *record, struct vt_loop *loop, const char *path,
		   struct vt_err *err)
{
	*record = (struct vt_record){ .loop = loop, .log.fd = -1, .path = strdup(path) };
	vt_str_init(&record->kept);
	record->timer = (struct vt_timer){ .fire = timer_fires, .owner = record };
	vt_loop_add_timer(loop, &record->timer);
	if (!record->path)
		return vt_fail(err, VT_STEP_OUTPUT, ENOMEM, "open an audit log");
	int r = vt_audit_open(&record->log, record->path, err);

	if (r == 0)
		r = vt_audit_try(&record->log, err);
	record->log.wait_ns = WAIT;
	return r;
}

bool vt_record_flush(struct vt_record *record)
{
	struct vt_err err;

	record->log.wait_ns = LAST;
	record->blocked = write_kept(record, &err) < 0;
	record->log.wait_ns = WAIT;
	if (record->blocked && record->failed)
		record->failed(record->user, &err);
	return !record->blocked;
}

void vt_record_done(struct vt_record *record)
{
	if (!record->loop)
		return;
	if (record->kept.len)
		(void)vt_record_flush(record); /* told */
	vt_loop_remove_timer(record->loop, &record->timer);
	vt_audit_done(&record->log);
	vt_str_done(&record->kept);
	free(record->path);
	*record = (struct vt_record){ .log.fd = -1 };
}

/* ---- a line --------------------------------------------------------------------------------- */

/*
 * The words of a command that a line has room for; the first is its path, and what it is called
 * follows. A call may have megabytes of them. NULL: none, or no memory.
 */
static char **list_words(const struct vt_call_over *over)
{
	size_t count = 0, end = 0;

	while (end < over->words_len && end <= VT_AUDIT_ARGV + (count ? strlen(over->words) : 0)) {
		end += strlen(over->words + end) + 1;
		count++;
	}
	char **words = count ? calloc(count + 1, sizeof(*words)) : NULL;

	count = 0;
	for (size_t at = 0; words && at < end; at += strlen(over->words + at) + 1)
		words[count++] = (char *)over->words + at;
	return words;
}

static int describe(const struct vt_call_over *over, struct vt_str *line, struct vt_err *err)
{
	const struct vt_cells *cells = over->cells;
	struct vt_result result = over->outcome->result;
	char **words = list_words(over);
	const size_t path_len = words ? strlen(words[0]) + 1 : 0;
	char hash[VT_CHAIN_HEX + 1];
	const char *object = cells && cells->object ? cells->object : NULL;
	const struct vt_audit audit = {
		.policy = cells ? cells->policy_name : "default",
		.argv = words ? words + 1 : NULL,
		.argv_bytes = words ? over->words_len - path_len : 0,
		.argv_sha256 = hash,
		.tool = over->tool,
		.program = words    ? words[0]
			   : object ? object
			   : cells  ? cells->program
				    : NULL,
		.uid = over->uid,
		.pid = over->pid,
	};

	vt_chain_hash(over->words + path_len, audit.argv_bytes, hash);
	if (result.verdict.status == VT_STATUS_OK)
		result.verdict.message[0] = '\0';
	(void)snprintf(result.call_id, sizeof(result.call_id), "%s", over->id); /* or cut */
	int r = vt_audit_line(&result, cells && over->outcome->came_to_cell ? cells->plan : NULL,
			      &audit, line, err);

	free(words);
	return r;
}

static enum vt_telling keep(struct vt_record *record, const struct vt_str *line,
			    const struct vt_err *err)
{
	if (!record->blocked && record->failed)
		record->failed(record->user, err);
	record->blocked = true;
	vt_str_addn(&record->kept, line->text, line->len);
	vt_timer_hasten(&record->timer, vt_clock_now() + AGAIN);
	if (vt_str_ok(&record->kept))
		return VT_TELL_LATER;
	record->kept.failed = false; /* those before it are there */
	return VT_TELL_LOST;
}

enum vt_telling vt_record_call(struct vt_record *record, const struct vt_call_over *over)
{
	enum vt_telling telling = VT_TELL_NOW;
	struct vt_str line;
	struct vt_err err;

	/* Of those that are refused since there is no log, there is no record, or they would pile
	 * up. */
	if (record->blocked && over->outcome->result.verdict.status == VT_STATUS_REFUSED)
		return telling;
	vt_str_init(&line);
	int r = describe(over, &line, &err);

	if (r == 0 && (record->blocked || append(record, line.text, line.len, &err) < 0))
		telling = keep(record, &line, &err);
	if (r < 0 && record->failed)
		record->failed(record->user, &err);
	vt_str_done(&line);
	return r < 0 ? VT_TELL_LOST : telling;
}
