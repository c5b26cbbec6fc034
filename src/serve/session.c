/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/session.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <syslog.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/frame.h"
#include "base/head.h"
#include "base/json.h"
#include "launch/talk.h"
#include "pool/pool.h"
#include "serve/cells.h"
#include "serve/done.h"
#include "serve/request.h"

enum {
	WIRE_VERSION = 1,
	POOLS_MAX = 8192, /* many may share their cells */
	READY_MAX = 4096,
	BUCKETS = 1024,
	QUEUED_MAX = 512 << 20, /* what cells say beyond that is not passed on */
	QUEUED_MANY = 4 << 20,  /* from here on cells wait, until there is */
	QUEUED_FEW = 1 << 20,   /* so little */
};

struct serve_pool {
	struct serve_pool *next;
	int64_t number;
	struct vt_cells *cells; /* which others may share */
	char *path;             /* of a command's program; else NULL */
};

struct serve_call {
	struct vt_pool_call call; /* first: it is found by it */
	struct vt_session *session;
	struct serve_call *next, **link;
	int64_t number;
	bool stream;
	char bytes[]; /* its name and arguments */
};

struct vt_session {
	struct vt_loop *loop;
	struct vt_watch socket;
	struct vt_frames_in in;
	struct vt_frames_out out;
	struct vt_str head;
	struct serve_pool *pools;
	size_t pool_count;
	struct serve_call *calls[BUCKETS];
	struct vt_children children;
	struct vt_cells_maker cells;
	bool greeted, over;
	bool full; /* somebody waits for the client to read */
};

/* ---- to the client ------------------------------------------------------------------------- */

static void end_session(struct vt_session *session)
{
	session->over = true;
	session->loop->over = true;
}

/* The head that was begun, with a body in parts. given, which may be NULL: the first one's memory.
 */
static void put_given(struct vt_session *session, const struct iovec *body, size_t count,
		      struct vt_frames_given *given)
{
	struct vt_err err;

	if (session->over)
		return;
	int r = vt_head_end(&session->head, &err);

	if (r == 0)
		r = vt_frames_put_given(&session->out, session->socket.fd, session->head.text,
					session->head.len, body, count, given, &err);
	if (r == 0) {
		vt_loop_remove(session->loop, &session->socket);
		r = vt_loop_add(session->loop, &session->socket, EPOLLIN | EPOLLOUT, &err);
	}
	if (r < 0)
		end_session(session); /* a client that is told half of it would wait for the rest */
}

static void put(struct vt_session *session, const struct iovec *body, size_t count)
{
	put_given(session, body, count, NULL);
}

static void begin(struct vt_session *session, const char *what)
{
	vt_head_begin(&session->head);
	vt_head_add_text(&session->head, "is", what, strlen(what));
}

static void add_text(struct vt_session *session, const char *name, const char *text)
{
	vt_head_add_text(&session->head, name, text, strlen(text));
}

static void add_int(struct vt_session *session, const char *name, int64_t value)
{
	vt_head_add_int(&session->head, name, value);
}

static void put_bytes(struct vt_session *session, const char *bytes, size_t len)
{
	const struct iovec part = { (void *)bytes, len };

	put(session, &part, 1);
}

/* Cells wait long before that; but who ends is heard at once, and there may be many. */
static bool is_overfull(const struct vt_session *session)
{
	return vt_frames_queued(&session->out) > QUEUED_MAX;
}

static void log_line(void *user, int level, const char *text)
{
	struct vt_session *session = user;

	if (is_overfull(session))
		return;
	begin(session, "log");
	add_int(session, "level", level);
	put_bytes(session, text, strlen(text));
}

/* ---- calls --------------------------------------------------------------------------------- */

static struct serve_call **bucket(struct vt_session *session, int64_t number)
{
	return &session->calls[(uint64_t)number % BUCKETS];
}

static struct serve_call *find_call(struct vt_session *session, int64_t number)
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

static void call_output(struct vt_pool_call *call, int stream, const char *bytes, size_t len)
{
	struct vt_session *session = of(call)->session;

	if (!of(call)->stream || is_overfull(session))
		return;
	begin(session, "output");
	add_int(session, "call", of(call)->number);
	add_int(session, "stream", stream);
	put_bytes(session, bytes, len);
}

static void call_log(struct vt_pool_call *call, const char *level, const char *text, size_t len)
{
	struct vt_session *session = of(call)->session;

	if (is_overfull(session))
		return;
	begin(session, "log");
	add_int(session, "call", of(call)->number);
	add_text(session, "level", level);
	put_bytes(session, text, len);
}

static void call_ask(struct vt_pool_call *call, uint64_t id, const char *tool,
		     const char *arguments, size_t len)
{
	struct vt_session *session = of(call)->session;

	if (is_overfull(session))
		return; /* who asks has ended */
	begin(session, "ask");
	add_int(session, "call", of(call)->number);
	add_int(session, "ask", (int64_t)id);
	add_text(session, "tool", tool);
	put_bytes(session, arguments, len);
}

static void call_done(struct vt_pool_call *call, const struct vt_outcome *outcome)
{
	struct serve_call *done = of(call);
	struct vt_session *session = done->session;
	struct vt_outcome bounded = *outcome;
	struct vt_str texts[2];

	vt_str_init(&texts[0]);
	vt_str_init(&texts[1]);
	vt_capture_text(&outcome->result.out, &texts[0]);
	vt_capture_text(&outcome->result.err, &texts[1]);
	vt_done_bound(&bounded, texts);
	if (is_overfull(session))
		vt_done_lose(&bounded, texts);
	vt_done_describe(&session->head, done->number, &bounded, texts);
	const struct iovec body[] = {
		{ (void *)bounded.value, bounded.value_len },
		{ texts[0].text, texts[0].len },
		{ texts[1].text, texts[1].len },
	};

	put_given(session, body, texts[0].len || texts[1].len ? 3 : 1, outcome->given);
	vt_str_done(&texts[0]);
	vt_str_done(&texts[1]);
	*done->link = done->next;
	if (done->next)
		done->next->link = done->link;
	free(done);
}

static bool is_full(struct vt_pool_call *call)
{
	struct vt_session *session = of(call)->session;

	if (vt_frames_queued(&session->out) <= QUEUED_MANY)
		return false;
	session->full = true;
	return true;
}

static const struct vt_pool_events call_events = {
	.output = call_output, .log = call_log, .ask = call_ask, .done = call_done, .full = is_full
};

/* ---- from the client ----------------------------------------------------------------------- */

struct frame {
	struct vt_head head;
	const char *body;
	size_t len;
};

static int misunderstand(const char *what, struct vt_err *err)
{
	return vt_fail(err, VT_STEP_WIRE, EBADMSG, "understand the client: %s", what);
}

static struct serve_pool *find_pool(const struct vt_session *session, int64_t number)
{
	struct serve_pool *pool = session->pools;

	while (pool && pool->number != number)
		pool = pool->next;
	return pool;
}

static int do_hello(struct vt_session *session, const struct frame *frame, struct vt_err *err)
{
	int64_t version = vt_head_int(&frame->head, "version", 0);

	if (session->greeted)
		return misunderstand("it says hello twice", err);
	if (version != WIRE_VERSION)
		return vt_fail(err, VT_STEP_WIRE, EBADMSG,
			       "understand the client: it speaks version %lld of the wire, and "
			       "vitro " VITRO_VERSION " speaks %d",
			       (long long)version, WIRE_VERSION);
	session->greeted = true;
	begin(session, "hello");
	add_int(session, "version", WIRE_VERSION);
	add_text(session, "vitro", VITRO_VERSION);
	put(session, NULL, 0);
	return 0;
}

/*
 * Of a call: its name, which is the tool, NUL and the id; its arguments; and what it reads. A
 * command's words come with their NULs, before its input, and its program's path goes in front of
 * them. argv[0] of a program that was named by its path is that path: Python, for one, finds its
 * venv by it.
 */
struct parts {
	const char *tool, *id, *path, *words;
	size_t tool_len, id_len, path_len, words_len, input_len;
};

static bool read_parts(const struct serve_pool *pool, const struct frame *frame,
		       struct parts *ret_parts)
{
	int64_t input = vt_head_int(&frame->head, "stdin", 0);
	struct parts parts = { .path = pool->path, .words = frame->body };

	parts.tool = vt_head_text(&frame->head, "tool", &parts.tool_len);
	parts.id = vt_head_text(&frame->head, "id", &parts.id_len);
	if (!parts.tool || !parts.id || parts.tool_len + parts.id_len + 1 > VT_TALK_NAME_MAX ||
	    input < 0 || (size_t)input > frame->len || (input && !pool->path))
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

/* NULL: no memory. */
static struct serve_call *make_call(const struct parts *parts, const struct frame *frame)
{
	bool by_path = parts->path && memchr(parts->words, '/', strlen(parts->words));
	size_t name_len = parts->tool_len + 1 + parts->id_len;
	struct serve_call *call = malloc(sizeof(*call) + name_len + 2 * parts->path_len +
					 frame->len);

	if (!call)
		return NULL;
	char *at = append(call->bytes, parts->tool, parts->tool_len + 1);
	char *arguments = append(at, parts->id, parts->id_len);
	size_t skipped = by_path ? strlen(parts->words) + 1 : 0;

	at = append(arguments, parts->path, parts->path_len);
	if (by_path)
		at = append(at, parts->path, parts->path_len);
	at = append(at, parts->words + skipped, parts->words_len - skipped);
	(void)append(at, parts->words + parts->words_len, parts->input_len);
	call->call = (struct vt_pool_call){
		.events = &call_events,
		.name = call->bytes,
		.name_len = name_len,
		.arguments = arguments,
		.arguments_len = (size_t)(at - arguments),
		.command = parts->path,
		.input = at,
		.input_len = parts->input_len,
		.within = vt_head_flag(&frame->head, "within", false),
		.wall_ms = vt_head_int(&frame->head, "wall_ms", 0),
	};
	return call;
}

static int do_call(struct vt_session *session, const struct frame *frame, struct vt_err *err)
{
	struct serve_pool *pool = find_pool(session, vt_head_int(&frame->head, "pool", -1));
	int64_t number = vt_head_int(&frame->head, "call", -1);
	struct parts parts;

	if (!pool || !pool->cells->pool || number < 0 || find_call(session, number) ||
	    !read_parts(pool, frame, &parts))
		return misunderstand("a call", err);
	struct serve_call *call = make_call(&parts, frame);

	if (!call)
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "take a call");
	call->session = session;
	call->number = number;
	call->stream = vt_head_flag(&frame->head, "stream", false);
	call->link = bucket(session, number);
	call->next = *call->link;
	if (call->next)
		call->next->link = &call->next;
	*call->link = call;
	vt_pool_submit(pool->cells->pool, &call->call);
	return 0;
}

/* Of a call that is over meanwhile nothing is known any more, which is no mistake. */
static int do_cancel(struct vt_session *session, const struct frame *frame, struct vt_err *err)
{
	struct serve_call *call = find_call(session, vt_head_int(&frame->head, "call", -1));

	(void)err;
	if (call)
		vt_pool_cancel(&call->call);
	return 0;
}

static int do_answer(struct vt_session *session, const struct frame *frame, struct vt_err *err)
{
	struct serve_call *call = find_call(session, vt_head_int(&frame->head, "call", -1));

	(void)err;
	if (call)
		vt_pool_answer(&call->call, (uint64_t)vt_head_int(&frame->head, "ask", 0),
			       vt_head_flag(&frame->head, "ok", false), frame->body, frame->len);
	return 0;
}

static int do_count(struct vt_session *session, const struct frame *frame, struct vt_err *err)
{
	struct vt_pool_counts counts;

	(void)frame;
	(void)err;
	vt_cells_count(&session->cells, &counts);
	begin(session, "count");
	add_int(session, "ready", counts.ready);
	add_int(session, "refilling", counts.refilling);
	add_int(session, "live", counts.live);
	add_int(session, "waiting", counts.waiting);
	add_int(session, "calls", (int64_t)counts.calls);
	add_int(session, "cells_made", (int64_t)counts.cells_made);
	add_int(session, "cold_calls", (int64_t)counts.cold_calls);
	put(session, NULL, 0);
	return 0;
}

/* ---- pools --------------------------------------------------------------------------------- */

static void free_pool(struct vt_session *session, struct serve_pool *pool)
{
	vt_cells_release(&session->cells, pool->cells);
	free(pool->path);
	free(pool);
}

static unsigned bounded(const struct frame *frame, const char *name, unsigned fallback)
{
	int64_t value = vt_head_int(&frame->head, name, 0);

	return value <= 0 ? fallback : value < READY_MAX ? (unsigned)value : READY_MAX;
}

static int start_pool(struct vt_session *session, struct serve_pool *pool,
		      const struct frame *frame, struct vt_err *err)
{
	const struct vt_cells_wish wish = {
		.program = vt_head_text(&frame->head, "program", NULL),
		.object = vt_head_text(&frame->head, "object", NULL),
		.command = vt_head_text(&frame->head, "command", NULL),
		.sources = frame->body,
		.sources_len = frame->len,
		.ready_min = bounded(frame, "ready_min", 2),
		.ready_max = bounded(frame, "ready_max", 64),
		.live_max = bounded(frame, "live_max", 1024),
	};

	return vt_cells_get(&session->cells, &wish, &pool->cells, &pool->path, err);
}

static void tell_pool(struct vt_session *session, const struct serve_pool *pool)
{
	AUTO_JSON json_t *all = vt_result_isolation(pool->cells->plan);
	char *text = all ? json_dumps(all, 0) : NULL;

	begin(session, "pool");
	add_int(session, "pool", pool->number);
	vt_head_add_flag(&session->head, "ok", true);
	put_bytes(session, text ? text : "{}", text ? strlen(text) : 2);
	free(text);
}

/* As a call would be told. */
static void refuse_pool(struct vt_session *session, int64_t number, const struct vt_err *why)
{
	const struct vt_findings findings = { .failed = true, .failure = *why };
	struct vt_verdict verdict;

	vt_verdict_reach(&findings, &verdict);
	begin(session, "pool");
	add_int(session, "pool", number);
	vt_head_add_flag(&session->head, "ok", false);
	add_int(session, "num", why->num);
	add_text(session, "error", verdict.message);
	put(session, NULL, 0);
}

static int do_pool(struct vt_session *session, const struct frame *frame, struct vt_err *err)
{
	int64_t number = vt_head_int(&frame->head, "pool", -1);
	struct vt_err why;

	if (number < 0 || find_pool(session, number) || session->pool_count >= POOLS_MAX)
		return misunderstand("a pool", err);
	struct serve_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "make a pool");
	pool->number = number;
	int r = start_pool(session, pool, frame, &why);

	if (r < 0) {
		free_pool(session, pool);
		refuse_pool(session, number, &why);
		return 0;
	}
	pool->next = session->pools;
	session->pools = pool;
	session->pool_count++;
	tell_pool(session, pool);
	return 0;
}

/* The client has no call in it any more; if it has, they are cancelled. */
static int do_drop(struct vt_session *session, const struct frame *frame, struct vt_err *err)
{
	int64_t number = vt_head_int(&frame->head, "pool", -1);
	struct serve_pool **at = &session->pools;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	struct serve_pool *pool = *at;

	if (!pool)
		return misunderstand("a pool that is dropped", err);
	*at = pool->next;
	session->pool_count--;
	free_pool(session, pool);
	return 0;
}

/* ---- the session --------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*take)(struct vt_session *session, const struct frame *frame, struct vt_err *err);
} requests[] = {
	{ "call", do_call },   { "answer", do_answer }, { "cancel", do_cancel },
	{ "count", do_count }, { "pool", do_pool },     { "drop", do_drop },
	{ "hello", do_hello },
};

static int take_frame(struct vt_session *session, const struct vt_frame *came, struct vt_err *err)
{
	struct frame frame = { .body = came->body, .len = came->body_len };
	int r = vt_head_parse(came->head, came->head_len, &frame.head, err);

	if (r == 0)
		r = vt_request_check(&frame.head, err);
	if (r < 0)
		return r;
	const char *what = vt_head_text(&frame.head, "do", NULL);

	if (!session->greeted && (!what || strcmp(what, "hello") != 0))
		return misunderstand("its first word is not hello", err);
	for (size_t i = 0; what && i < sizeof(requests) / sizeof(requests[0]); i++)
		if (strcmp(requests[i].name, what) == 0)
			return requests[i].take(session, &frame, err);
	return misunderstand("a frame without a request", err);
}

static int take_frames(struct vt_session *session, struct vt_err *err)
{
	struct vt_frame frame;
	ssize_t got = vt_frames_read(&session->in, session->socket.fd, err);
	int r = got < 0 ? (int)got : 1;

	while (r > 0 && !session->over) {
		r = vt_frames_next(&session->in, &frame, err);
		if (r > 0) {
			int taken = take_frame(session, &frame, err);

			r = taken < 0 ? taken : r;
		}
	}
	return r;
}

static int flush(struct vt_session *session, struct vt_err *err)
{
	int r = vt_frames_flush(&session->out, session->socket.fd, err);

	if (r >= 0 && session->full && vt_frames_queued(&session->out) <= QUEUED_FEW) {
		session->full = false;
		for (struct vt_cells *cells = session->cells.first; cells; cells = cells->next)
			if (cells->pool)
				vt_pool_resume(cells->pool);
	}
	if (r <= 0 || vt_frames_queued(&session->out))
		return r < 0 ? r : 0;
	vt_loop_remove(session->loop, &session->socket);
	return vt_loop_add(session->loop, &session->socket, EPOLLIN, err);
}

static void socket_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_session *session = source->owner;
	struct vt_err err;
	int r = events & EPOLLOUT ? flush(session, &err) : 0;

	if (r >= 0 && events & ~(uint32_t)EPOLLOUT)
		r = take_frames(session, &err);
	if (r < 0 && err.num != EPIPE)
		log_line(session, 3, err.what); /* the last word; it may not be heard */
	if (r < 0)
		end_session(session);
}

int vt_session_new(struct vt_loop *loop, struct vt_host *host, int fd, int program_fd,
		   struct vt_session **ret_session, struct vt_err *err)
{
	struct vt_session *session = calloc(1, sizeof(*session));

	if (!session) {
		vt_fd_close(&fd);
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "begin a session");
	}
	session->loop = loop;
	session->socket = (struct vt_watch){ .fd = fd, .ready = socket_ready, .owner = session };
	vt_frames_in_init(&session->in, VT_FRAME_MAX);
	/* What cells say is bounded before; the rest is as much as the client itself asks for. */
	vt_frames_out_init(&session->out, SIZE_MAX);
	vt_str_init(&session->head);
	session->cells = (struct vt_cells_maker){
		.loop = loop,
		.host = host,
		.children = &session->children,
		.spawner_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC),
		.program_fd = program_fd,
		.log = log_line,
		.user = session,
	};
	int r = vt_loop_add(loop, &session->socket, EPOLLIN, err);

	if (r < 0) {
		vt_session_free(session);
		return r;
	}
	*ret_session = session;
	return 0;
}

void vt_session_free(struct vt_session *session)
{
	if (!session)
		return;
	session->over = true; /* nobody is told any more */
	while (session->pools) {
		struct serve_pool *pool = session->pools;

		session->pools = pool->next;
		free_pool(session, pool);
	}
	vt_loop_remove(session->loop, &session->socket);
	vt_fd_close(&session->socket.fd);
	vt_fd_close(&session->cells.spawner_fd);
	vt_frames_in_done(&session->in);
	vt_frames_out_done(&session->out);
	vt_str_done(&session->head);
	free(session);
}
