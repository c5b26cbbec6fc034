/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a session: how they begin, what is told of them, and how they end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/bulk.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "launch/talk.h"
#include "serve/done.h"
#include "serve/request.h"
#include "serve/session_private.h"

enum {
	QUEUED_MANY = 4 << 20, /* from here on cells wait, until the client has read */
	BYTES_SMALL =
		16 << 10, /* of a call, for which there is room yet when others are too large */
	ANSWERS_SMALL = 512 << 10, /* so much waits to be heard by a call in any case */
	SMALL_SHARE = 4,           /* by so much of all that there is room for otherwise */
};

static struct serve_call **bucket(struct vt_session *session, int64_t number)
{
	return &session->calls[(uint64_t)number % VT_SESSION_BUCKETS];
}

struct serve_call *vt_session_find_call(struct vt_session *session, int64_t number)
{
	struct serve_call *call = *bucket(session, number);

	while (call && call->number != number)
		call = call->next;
	return call;
}

static struct serve_call *of(struct vt_pool_call *call)
{
	return (struct serve_call *)call;
}

static struct serve_call *of_turn(struct vt_turn *turn)
{
	return (struct serve_call *)((char *)turn - offsetof(struct serve_call, turn));
}

static void link_call(struct vt_session *session, struct serve_call *call)
{
	call->session = session;
	call->client = vt_client_hold(session->client);
	call->client->calls++;
	call->client->call_bytes += call->len;
	call->commons->call_bytes += call->len;
	call->link = bucket(session, call->number);
	call->next = *call->link;
	if (call->next)
		call->next->link = &call->next;
	*call->link = call;
	session->call_count++;
}

static void unlink_call(struct serve_call *call)
{
	if (!call->session)
		return;
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	call->session->call_count--;
	call->session = NULL;
}

/* Answers count as its arguments do. */
static void call_unheard(struct vt_pool_call *asked, size_t bytes)
{
	struct serve_call *call = of(asked);

	call->client->call_bytes += bytes - call->unheard;
	call->commons->call_bytes += bytes - call->unheard;
	call->unheard = bytes;
}

/* It is over, and counts no more. */
static void free_call(struct serve_call *call)
{
	call_unheard(&call->call, 0);
	unlink_call(call);
	vt_turn_end(&call->turn);
	vt_cells_let_go(call->cells);
	call->client->calls--;
	call->client->call_bytes -= call->len;
	call->commons->call_bytes -= call->len;
	vt_client_release(call->client);
	if (call->given.memory) {
		vt_bulk_keep(&call->commons->spare, call->given.memory, call->given.cap);
		vt_commons_trim_later(call->commons);
	}
	free(call);
}

/* ---- what is told of one ------------------------------------------------------------------- */

/* Nobody hears of it: the client is gone, or too much waits for him. */
static bool is_unheard(const struct serve_call *call, size_t len)
{
	return !call->session || vt_session_is_overfull(call->session, len);
}

static void call_output(struct vt_pool_call *call, int stream, const char *bytes, size_t len)
{
	struct vt_session *session = of(call)->session;

	if (!of(call)->stream || is_unheard(of(call), len))
		return;
	vt_session_begin(session, "output");
	vt_session_add_int(session, "call", of(call)->number);
	vt_session_add_int(session, "stream", stream);
	vt_session_put_bytes(session, bytes, len);
}

static void call_log(struct vt_pool_call *call, const char *level, const char *text, size_t len)
{
	struct vt_session *session = of(call)->session;

	if (is_unheard(of(call), len))
		return;
	vt_session_begin(session, "log");
	vt_session_add_int(session, "call", of(call)->number);
	vt_session_add_text(session, "level", level);
	vt_session_put_bytes(session, text, len);
}

static void call_ask(struct vt_pool_call *call, uint64_t id, const char *tool,
		     const char *arguments, size_t len)
{
	struct vt_session *session = of(call)->session;

	if (is_unheard(of(call), len))
		return; /* who asks has ended */
	vt_session_begin(session, "ask");
	vt_session_add_int(session, "call", of(call)->number);
	vt_session_add_int(session, "ask", (int64_t)id);
	vt_session_add_text(session, "tool", tool);
	vt_session_put_bytes(session, arguments, len);
}

void vt_session_tell_done(struct vt_session *session, int64_t number,
			  const struct vt_outcome *outcome, enum vt_telling telling)
{
	const struct vt_outcome *told = outcome;
	struct vt_outcome less;
	struct vt_str texts[2];

	vt_str_init(&texts[0]);
	vt_str_init(&texts[1]);
	vt_capture_text(&outcome->result.out, &texts[0]);
	vt_capture_text(&outcome->result.err, &texts[1]);
	bool overfull = vt_session_is_overfull(session,
					       outcome->value_len + texts[0].len + texts[1].len);

	if (overfull || !vt_done_fits(outcome, texts)) {
		less = *outcome;
		told = &less;
		vt_done_bound(&less, texts);
	}
	if (overfull)
		vt_done_lose(&less, texts);
	vt_done_describe(&session->head, number, told, texts);
	const struct iovec body[] = {
		{ (void *)told->value, told->value_len },
		{ texts[0].text, texts[0].len },
		{ texts[1].text, texts[1].len },
	};

	size_t count = texts[0].len || texts[1].len ? 3 : 1;

	if (telling == VT_TELL_NOW)
		vt_session_put(session, body, count, outcome->given);
	else if (telling == VT_TELL_LATER)
		vt_session_withhold(session, number, body, count);
	else
		vt_session_tell_lost(session, number,
				     "what became of the call could not be recorded, so that it is "
				     "not given out");
	vt_str_done(&texts[0]);
	vt_str_done(&texts[1]);
}

static enum vt_telling record(const struct serve_call *call, const struct vt_outcome *outcome)
{
	const struct vt_commons *commons = call->commons;
	const struct vt_pool_call *asked = &call->call;
	const char *id = asked->name + strlen(asked->name) + 1;
	char id_text[VT_TALK_NAME_MAX + 1];

	if (!commons->call_over)
		return VT_TELL_NOW;
	(void)snprintf(id_text, sizeof(id_text), "%.*s",
		       (int)(asked->name_len - (size_t)(id - asked->name)), id); /* fits */
	const struct vt_call_over over = {
		.uid = call->uid,
		.pid = call->pid,
		.tool = call->offered ? call->offered : asked->name,
		.id = id_text,
		.words = asked->command ? asked->arguments : NULL,
		.words_len = asked->command ? asked->arguments_len : 0,
		.cells = call->cells,
		.outcome = outcome,
		.ns = vt_clock_now() - call->begun,
	};

	return commons->call_over(commons->user, &over);
}

static void call_done(struct vt_pool_call *call, const struct vt_outcome *outcome)
{
	struct serve_call *done = of(call);

	enum vt_telling telling = record(done, outcome);

	if (done->session)
		vt_session_tell_done(done->session, done->number, outcome, telling);
	free_call(done);
}

static bool is_full(struct vt_pool_call *call)
{
	struct vt_session *session = of(call)->session;

	if (!session || vt_frames_queued(&session->out) <= QUEUED_MANY)
		return false;
	session->full = true;
	return true;
}

static const struct vt_pool_events call_events = { .output = call_output,
						   .log = call_log,
						   .ask = call_ask,
						   .done = call_done,
						   .full = is_full,
						   .unheard = call_unheard };

/* ---- those that no cell has ---------------------------------------------------------------- */

static void make_outcome(struct vt_outcome *outcome, enum vt_status status, const char *message)
{
	vt_outcome_init(outcome);
	vt_verdict_set(&outcome->result.verdict, status, message);
}

static void refuse(struct serve_call *call, const char *why);

static const char ended[] = "the cells of the call's pool were ended, since its calls could change "
			    "what is the server's own by now; ask for another pool, that denies it";

static void turn_begins(struct vt_turn *turn)
{
	struct serve_call *call = of_turn(turn);

	if (call->cells->quitting)
		refuse(call, ended);
	else
		vt_pool_submit(call->cells->pool, &call->call);
}

static void turn_expires(struct vt_turn *turn)
{
	struct vt_outcome outcome;

	vt_outcome_init(&outcome);
	vt_verdict_no_cell(&outcome.result.verdict);
	call_done(&of_turn(turn)->call, &outcome);
}

static void cancel(struct serve_call *call)
{
	struct vt_outcome outcome;

	if (!call->turn.link) {
		vt_pool_cancel(&call->call);
		return;
	}
	make_outcome(&outcome, VT_STATUS_CANCELLED, "the call was cancelled");
	call_done(&call->call, &outcome);
}

static bool is_beyond(size_t bytes, size_t more, size_t most)
{
	return bytes > most || more > most - bytes;
}

/* Why it is not taken; NULL: it is. */
static const char *find_objection(const struct vt_session *session, const struct vt_cells *cells,
				  size_t len)
{
	const struct vt_commons *commons = session->commons;
	const struct vt_session_limits *limits = &commons->limits;

	if (commons->ending)
		return "the server is ending, and takes no further calls";
	if (commons->unrecorded && *commons->unrecorded)
		return "the server's audit log cannot be written, and no call goes unrecorded";
	if (cells->quitting)
		return ended;
	if (session->client->calls >= limits->calls_max)
		return "this client has as many calls under way as one may have; wait for some";
	if (is_beyond(session->client->call_bytes, len, limits->bytes_max))
		return "the calls that this client has under way are too large in all; wait for "
		       "some";
	if (is_beyond(commons->call_bytes, len, commons->call_bytes_max) &&
	    (len > BYTES_SMALL ||
	     is_beyond(commons->call_bytes, len,
		       commons->call_bytes_max + commons->call_bytes_max / SMALL_SHARE)))
		return "the calls that all clients of the server have under way are too large in "
		       "all; send smaller arguments, or call again later";
	return NULL;
}

static void refuse(struct serve_call *call, const char *why)
{
	const struct vt_commons *commons = call->commons;
	struct vt_outcome outcome;

	if (commons->denied)
		commons->denied(commons->user,
				commons->ending ? VT_DENIED_ENDING : VT_DENIED_LIMIT);
	make_outcome(&outcome, VT_STATUS_REFUSED, why);
	call_done(&call->call, &outcome);
}

/* ---- from the client ----------------------------------------------------------------------- */

bool vt_call_read_name(const struct vt_request_frame *frame, struct vt_call_parts *parts)
{
	parts->tool = vt_head_text(&frame->head, "tool", &parts->tool_len);
	parts->id = vt_head_text(&frame->head, "id", &parts->id_len);
	return parts->tool && parts->id && parts->tool_len + parts->id_len + 1 <= VT_TALK_NAME_MAX;
}

static bool read_parts(const struct serve_pool *pool, const struct vt_request_frame *frame,
		       struct vt_call_parts *ret_parts)
{
	int64_t input = vt_head_int(&frame->head, "stdin", 0);
	struct vt_call_parts parts = { .path = pool->path, .words = frame->body };

	if (!vt_call_read_name(frame, &parts) || input < 0 || (size_t)input > frame->len ||
	    (input && !pool->path))
		return false;
	parts.input_len = (size_t)input;
	parts.words_len = frame->len - parts.input_len;
	if (pool->path) {
		if (!parts.words_len || parts.words[parts.words_len - 1])
			return false;
		parts.path_len = strlen(parts.path) + 1;
	}
	*ret_parts = parts;
	return true;
}

static char *append(char *at, const void *bytes, size_t len)
{
	if (len)
		memcpy(at, bytes, len);
	return at + len;
}

/* A call whose arguments stay in the frame that they came in. NULL: no memory. */
static struct serve_call *make_large_call(const struct vt_call_parts *parts,
					  const struct vt_request_frame *frame,
					  const struct vt_frames_given *given)
{
	size_t name_len = parts->tool_len + 1 + parts->id_len;
	struct serve_call *call = malloc(sizeof(*call) + name_len);

	if (!call)
		return NULL;
	*call = (struct serve_call){ .len = name_len + frame->len, .given = *given };
	(void)append(append(call->bytes, parts->tool, parts->tool_len + 1), parts->id,
		     parts->id_len);
	call->call = (struct vt_pool_call){ .name_len = name_len,
					    .arguments = frame->body,
					    .arguments_len = frame->len };
	return call;
}

struct serve_call *vt_call_make(const struct vt_call_parts *parts,
				const struct vt_request_frame *frame)
{
	bool by_path = parts->path && memchr(parts->words, '/', strlen(parts->words));
	size_t name_len = parts->tool_len + 1 + parts->id_len;
	size_t len = name_len + 2 * parts->path_len + frame->len + parts->offered_len;
	struct serve_call *call = vt_bulk_resize(NULL, sizeof(*call) + len);

	if (!call)
		return NULL;
	*call = (struct serve_call){ .len = len };
	char *at = append(call->bytes, parts->tool, parts->tool_len + 1);
	char *arguments = append(at, parts->id, parts->id_len);
	size_t skipped = by_path ? strlen(parts->words) + 1 : 0;

	at = append(arguments, parts->path, parts->path_len);
	if (by_path)
		at = append(at, parts->path, parts->path_len);
	at = append(at, parts->words + skipped, parts->words_len - skipped);
	char *end = append(at, parts->words + parts->words_len, parts->input_len);

	if (parts->offered)
		call->offered = end;
	(void)append(end, parts->offered, parts->offered_len);
	call->call = (struct vt_pool_call){
		.name_len = name_len,
		.arguments = arguments,
		.arguments_len = (size_t)(at - arguments),
		.command = parts->path,
		.input = at,
		.input_len = parts->input_len,
	};
	return call;
}

static void fill_call(struct serve_call *call, struct vt_session *session, int64_t number,
		      const struct serve_pool *pool, const struct vt_head *head)
{
	call->call.events = &call_events;
	call->call.name = call->bytes;
	call->call.within = vt_head_flag(head, "within", false);
	call->call.wall_ms = vt_head_int(head, "wall_ms", 0);
	call->stream = vt_head_flag(head, "stream", false);
	call->commons = session->commons;
	call->number = number;
	call->pool = pool->number;
	call->uid = session->peer.uid;
	call->pid = session->peer.pid;
	call->begun = call->call.since = vt_clock_now();
	call->turn = (struct vt_turn){ .begin = turn_begins, .expire = turn_expires };
	call->cells = pool->cells;
	vt_cells_hold(pool->cells);
}

int vt_session_begin_call(struct vt_session *session, const struct serve_pool *pool, int64_t number,
			  struct serve_call *call, const struct vt_head *head, struct vt_err *err)
{
	if (!call)
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "take a call");
	const char *objection = find_objection(session, pool->cells, call->len);

	fill_call(call, session, number, pool, head);
	link_call(session, call);
	if (objection)
		refuse(call, objection);
	else if (vt_turn_ask(&session->client->turner, &call->turn,
			     call->begun + pool->cells->plan->queue_ms * VT_NS_PER_MS))
		vt_pool_submit(pool->cells->pool, &call->call);
	return 0;
}

int vt_session_do_call(struct vt_session *session, const struct vt_request_frame *frame,
		       struct vt_err *err)
{
	struct serve_pool *pool = vt_session_find_pool(session,
						       vt_head_int(&frame->head, "pool", -1));
	int64_t number = vt_head_int(&frame->head, "call", -1);
	struct vt_call_parts parts;

	if (!pool || !pool->cells || number < 0 || vt_session_find_call(session, number) ||
	    !read_parts(pool, frame, &parts))
		return vt_request_misunderstand("a call", err);
	struct vt_frames_given given = { .memory = NULL };

	if (!parts.path)
		given.memory = vt_frames_take(&session->in, &given.cap);
	struct serve_call *call = given.memory ? make_large_call(&parts, frame, &given)
					       : vt_call_make(&parts, frame);

	if (!call)
		free(given.memory);
	return vt_session_begin_call(session, pool, number, call, &frame->head, err);
}

/* Of a call that is over meanwhile nothing is known any more, which is no mistake. */
int vt_session_do_cancel(struct vt_session *session, const struct vt_request_frame *frame,
			 struct vt_err *err)
{
	struct serve_call *call = vt_session_find_call(session,
						       vt_head_int(&frame->head, "call", -1));

	(void)err;
	if (call)
		cancel(call);
	return 0;
}

/* A call need not hear what it is answered: what waits for it is bounded as its arguments are. */
static bool is_answered_too_much(const struct serve_call *call, size_t len)
{
	const struct vt_commons *commons = call->commons;

	return is_beyond(call->unheard, len, ANSWERS_SMALL) &&
	       (is_beyond(call->client->call_bytes, len, commons->limits.bytes_max) ||
		is_beyond(commons->call_bytes, len, commons->call_bytes_max));
}

int vt_session_do_answer(struct vt_session *session, const struct vt_request_frame *frame,
			 struct vt_err *err)
{
	struct serve_call *call = vt_session_find_call(session,
						       vt_head_int(&frame->head, "call", -1));

	(void)err;
	if (call && is_answered_too_much(call, frame->len)) {
		vt_session_log(session, NULL, LOG_WARNING,
			       "a call is cancelled: the answers that calls of this client do not "
			       "hear are too large in all");
		cancel(call);
		return 0;
	}
	if (call && !call->turn.link)
		vt_pool_answer(&call->call, (uint64_t)vt_head_int(&frame->head, "ask", 0),
			       vt_head_flag(&frame->head, "ok", false), frame->body, frame->len);
	return 0;
}

/* ---- all of them --------------------------------------------------------------------------- */

void vt_session_cancel_of(struct vt_session *session, const struct serve_pool *pool)
{
	for (size_t i = 0; session->call_count && i < VT_SESSION_BUCKETS; i++)
		for (struct serve_call *call = session->calls[i], *next; call; call = next) {
			next = call->next;
			if (!pool || call->pool == pool->number)
				cancel(call);
		}
}

void vt_session_disown_calls(struct vt_session *session)
{
	for (size_t i = 0; session->call_count && i < VT_SESSION_BUCKETS; i++)
		while (session->calls[i]) {
			struct serve_call *call = session->calls[i];

			unlink_call(call);
			cancel(call);
		}
}
