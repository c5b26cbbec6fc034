/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the server's own tools: what their arguments make of them, and those that come to none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "launch/talk.h"
#include "serve/request.h"
#include "serve/session_private.h"

/* One that comes to no call at all. */
static void refuse_tool(struct vt_session *session, int64_t number,
			const struct vt_call_parts *parts, const char *type, const char *why)
{
	const struct vt_commons *commons = session->commons;
	struct vt_outcome outcome;
	struct vt_verdict *verdict = &outcome.result.verdict;

	vt_outcome_init(&outcome);
	vt_verdict_set(verdict, VT_STATUS_REFUSED, why);
	(void)snprintf(verdict->type, sizeof(verdict->type), "%s", type); /* fits */
	const struct vt_call_over over = { .uid = session->peer.uid,
					   .pid = session->peer.pid,
					   .tool = parts->offered ? parts->offered : parts->tool,
					   .id = parts->id,
					   .outcome = &outcome };

	vt_session_tell_done(session, number, &outcome,
			     commons->call_over ? commons->call_over(commons->user, &over)
						: VT_TELL_NOW);
}

/* The words and the input that a tool's arguments make, as if they had come in a frame. */
static int expand_tool(struct vt_session *session, const struct serve_pool *pool, size_t index,
		       int64_t number, struct vt_call_parts *parts,
		       const struct vt_request_frame *frame, struct vt_err *err)
{
	struct vt_request_frame made = *frame;
	struct vt_str words, input;
	struct vt_err why;

	int64_t begun = vt_clock_now();

	vt_str_init(&words);
	vt_str_init(&input);
	int r = vt_offer_expand(session->commons->offer, index, frame->body, frame->len, &words,
				&input, &why);

	vt_session_pause(session, begun);
	parts->words_len = parts->path ? words.len : input.len;
	parts->input_len = parts->path ? input.len : 0;
	vt_str_addn(&words, input.text, input.len);
	if (r == 0 && (!vt_str_ok(&words) || !vt_str_ok(&input))) {
		r = vt_fail(err, VT_STEP_WIRE, ENOMEM, "take a call");
	} else if (r < 0) {
		refuse_tool(session, number, parts, "InvalidArguments", why.what);
		r = 0;
	} else {
		made.body = parts->words = words.text;
		made.len = words.len;
		r = vt_session_begin_call(session, pool, number, vt_call_make(parts, &made),
					  &made.head, err);
	}
	vt_str_done(&words);
	vt_str_done(&input);
	return r;
}

/* A function's own name is what goes to its zygote; that of the tool is what is recorded. */
static bool name_function(const struct vt_session *session, size_t index,
			  struct vt_call_parts *parts)
{
	const char *function = vt_offer_function(session->commons->offer, index);

	if (!function || strlen(function) + parts->id_len + 1 > VT_TALK_NAME_MAX)
		return !function;
	parts->offered = parts->tool;
	parts->offered_len = parts->tool_len + 1;
	parts->tool = function;
	parts->tool_len = strlen(function);
	return true;
}

static void refuse_unknown(struct vt_session *session, int64_t number,
			   const struct vt_call_parts *parts)
{
	const struct vt_offer *offer = session->commons->offer;
	const char *near = offer ? vt_offer_closest(offer, parts->tool) : NULL;
	char shown[80], why[240];

	vt_utf8_show_text(shown, sizeof(shown), parts->tool, strlen(parts->tool));
	(void)snprintf(why, sizeof(why), "the server has no tool '%s'%s%s%s", shown,
		       near ? "; did you mean '" : "", near ? near : "",
		       near ? "'?" : ""); /* fits */
	refuse_tool(session, number, parts, "NoSuchTool", why);
}

/* A call of one of the supervisor's own tools. */
int vt_session_do_tool(struct vt_session *session, const struct vt_request_frame *frame,
		       struct vt_err *err)
{
	int64_t number = vt_head_int(&frame->head, "call", -1);
	struct serve_pool pool = { .number = -1 };
	const char *path = NULL;
	struct vt_call_parts parts = { 0 };
	size_t index;

	if (number < 0 || vt_session_find_call(session, number) ||
	    !vt_call_read_name(frame, &parts))
		return vt_request_misunderstand("a call of a tool", err);
	if (!session->commons->offer ||
	    !vt_offer_find(session->commons->offer, parts.tool, &index, &pool.cells, &path)) {
		refuse_unknown(session, number, &parts);
		return 0;
	}
	parts.path = path;
	parts.path_len = path ? strlen(path) + 1 : 0;
	if (!name_function(session, index, &parts)) {
		refuse_tool(session, number, &parts, "InvalidRequest", "the call's id is too long");
		return 0;
	}
	return expand_tool(session, &pool, index, number, &parts, frame, err);
}
