/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/session.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/frame.h"
#include "base/head.h"
#include "base/json.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "pool/pool.h"

enum {
	WIRE_VERSION = 1,
	POOLS_MAX = 256,
	READY_MAX = 4096,
	BUCKETS = 1024,
	FRAME_MAX = 256 << 20,
	QUEUED_MAX = 512 << 20, /* for a client that does not read */
	QUEUED_MANY = 4 << 20,  /* from here on cells wait, until there is */
	QUEUED_FEW = 1 << 20,   /* so little */
	QUEUE_MS = 30000,
};

struct serve_pool {
	struct serve_pool *next;
	int64_t number;
	struct vt_policy *policy;
	struct vt_plan *plan;
	struct vt_pool *pool;
	char *program;
	char *argv[2];
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
	struct vt_host *host;
	struct vt_watch socket;
	struct vt_frames_in in;
	struct vt_frames_out out;
	struct vt_str head;
	struct serve_pool *pools;
	size_t pool_count;
	struct serve_call *calls[BUCKETS];
	int spawner_fd;
	bool greeted, over;
	bool full; /* somebody waits for the client to read */
};

/* ---- to the client ------------------------------------------------------------------------- */

static void end_session(struct vt_session *session)
{
	session->over = true;
	session->loop->over = true;
}

/* The head that was begun, with a body in parts. */
static void put(struct vt_session *session, const struct iovec *body, size_t count)
{
	struct vt_err err;

	if (session->over)
		return;
	int r = vt_head_end(&session->head, &err);

	if (r == 0)
		r = vt_frames_put_parts(&session->out, session->socket.fd, session->head.text,
					session->head.len, body, count, &err);
	if (r == 0) {
		vt_loop_remove(session->loop, &session->socket);
		r = vt_loop_add(session->loop, &session->socket, EPOLLIN | EPOLLOUT, &err);
	}
	if (r < 0)
		end_session(session); /* a client that is told half of it would wait for the rest */
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

static void log_line(void *user, int level, const char *text)
{
	struct vt_session *session = user;

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

	if (!of(call)->stream)
		return;
	begin(session, "output");
	add_int(session, "call", of(call)->number);
	add_int(session, "stream", stream);
	put_bytes(session, bytes, len);
}

static void call_log(struct vt_pool_call *call, const char *level, const char *text, size_t len)
{
	struct vt_session *session = of(call)->session;

	begin(session, "log");
	add_int(session, "call", of(call)->number);
	add_text(session, "level", level);
	put_bytes(session, text, len);
}

static void call_ask(struct vt_pool_call *call, uint64_t id, const char *tool,
		     const char *arguments, size_t len)
{
	struct vt_session *session = of(call)->session;

	begin(session, "ask");
	add_int(session, "call", of(call)->number);
	add_int(session, "ask", (int64_t)id);
	add_text(session, "tool", tool);
	put_bytes(session, arguments, len);
}

static void add_usage(struct vt_session *session, const struct vt_result *result)
{
	vt_head_add_real(&session->head, "wall_ms", result->wall_ms);
	vt_head_add_real(&session->head, "cpu_ms", result->cpu_ms);
	add_int(session, "peak_kb", result->peak_memory_kb);
	add_int(session, "processes", result->processes);
	if (result->unreaped)
		vt_head_add_flag(&session->head, "unreaped", true);
}

static void call_done(struct vt_pool_call *call, const struct vt_outcome *outcome)
{
	struct serve_call *done = of(call);
	struct vt_session *session = done->session;
	const struct vt_result *result = &outcome->result;
	const struct vt_verdict *verdict = &result->verdict;
	struct vt_str texts[2];

	vt_str_init(&texts[0]);
	vt_str_init(&texts[1]);
	vt_capture_text(&result->out, &texts[0]);
	vt_capture_text(&result->err, &texts[1]);
	begin(session, "done");
	add_int(session, "call", done->number);
	add_text(session, "status", vt_status_name(verdict->status));
	add_int(session, "value", (int64_t)outcome->value_len);
	add_int(session, "stdout", (int64_t)texts[0].len);
	add_int(session, "stderr", (int64_t)texts[1].len);
	add_int(session, "dropped_stdout", (int64_t)vt_capture_dropped(&result->out));
	add_int(session, "dropped_stderr", (int64_t)vt_capture_dropped(&result->err));
	add_int(session, "exit_code", verdict->exit_code);
	add_int(session, "signal", verdict->signal);
	add_usage(session, result);
	if (verdict->status != VT_STATUS_OK) {
		add_text(session, "error_type", verdict->type);
		add_text(session, "error", verdict->message);
	}
	const struct iovec body[] = {
		{ (void *)outcome->value, outcome->value_len },
		{ texts[0].text, texts[0].len },
		{ texts[1].text, texts[1].len },
	};

	put(session, body, 3);
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
	if (vt_head_int(&frame->head, "version", 0) != WIRE_VERSION)
		return misunderstand("it speaks another version", err);
	session->greeted = true;
	begin(session, "hello");
	add_int(session, "version", WIRE_VERSION);
	add_text(session, "vitro", VITRO_VERSION);
	put(session, NULL, 0);
	return 0;
}

static int do_call(struct vt_session *session, const struct frame *frame, struct vt_err *err)
{
	struct serve_pool *pool = find_pool(session, vt_head_int(&frame->head, "pool", -1));
	int64_t number = vt_head_int(&frame->head, "call", -1);
	size_t tool_len, id_len;
	const char *tool = vt_head_text(&frame->head, "tool", &tool_len);
	const char *id = vt_head_text(&frame->head, "id", &id_len);

	if (!pool || number < 0 || !tool || !id || tool_len + id_len + 1 > 512 ||
	    find_call(session, number))
		return misunderstand("a call", err);
	struct serve_call *call = malloc(sizeof(*call) + tool_len + 1 + id_len + frame->len);

	if (!call)
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "take a call");
	memcpy(call->bytes, tool, tool_len + 1);
	memcpy(call->bytes + tool_len + 1, id, id_len);
	memcpy(call->bytes + tool_len + 1 + id_len, frame->body, frame->len);
	call->call = (struct vt_pool_call){
		.events = &call_events,
		.name = call->bytes,
		.name_len = tool_len + 1 + id_len,
		.arguments = call->bytes + tool_len + 1 + id_len,
		.arguments_len = frame->len,
		.wall_ms = vt_head_int(&frame->head, "wall_ms", 0),
	};
	call->session = session;
	call->number = number;
	call->stream = vt_head_flag(&frame->head, "stream", false);
	call->link = bucket(session, number);
	call->next = *call->link;
	if (call->next)
		call->next->link = &call->next;
	*call->link = call;
	vt_pool_submit(pool->pool, &call->call);
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
	int64_t number = vt_head_int(&frame->head, "pool", -1);
	struct serve_pool *pool = find_pool(session, number);
	struct vt_pool_counts counts;

	if (!pool)
		return misunderstand("a count", err);
	vt_pool_count(pool->pool, &counts);
	begin(session, "count");
	add_int(session, "pool", number);
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

static void free_pool(struct serve_pool *pool)
{
	if (!pool)
		return;
	vt_pool_free(pool->pool);
	vt_plan_free(pool->plan);
	vt_policy_free(pool->policy);
	free(pool->program);
	free(pool);
}

static int apply_source(struct vt_policy *policy, const json_t *source, struct vt_err *err)
{
	const char *load = json_string_value(json_object_get(source, "load"));
	const json_t *text = json_object_get(source, "json");
	const char *key = json_string_value(json_object_get(source, "key"));
	const char *value = json_string_value(json_object_get(source, "value"));

	if (load)
		return vt_policy_load(policy, load, err);
	if (json_is_string(text))
		return vt_policy_load_text(policy, json_string_value(text),
					   json_string_length(text), NULL, "policy", err);
	if (key && value)
		return vt_policy_set(policy, key, value, NULL, key, err);
	return misunderstand("a source of a policy", err);
}

static int read_policy(struct serve_pool *pool, const struct frame *frame, struct vt_err *err)
{
	int r = vt_policy_new(&pool->policy, err);
	AUTO_JSON json_t *sources = NULL;
	const json_t *source;
	size_t i;

	if (r == 0 && frame->len)
		r = vt_json_load_text(frame->body, frame->len, "sources", &sources, err);
	if (r == 0 && sources && !json_is_array(sources))
		return misunderstand("the sources of a policy", err);
	json_array_foreach(sources, i, source) if (r == 0)
		r = apply_source(pool->policy, source, err);
	return r;
}

static int make_plan(struct vt_session *session, struct serve_pool *pool, struct vt_err *err)
{
	const struct vt_request request = { .environ = environ, .pooled = true, .name = "pool" };
	int r = vt_plan_make(pool->policy, session->host, &request, &pool->plan, err);

	if (r == 0 && pool->plan->bare)
		r = vt_fail(err, VT_STEP_PLAN, EPERM,
			    "refused: a pool needs user namespaces, and there are none here");
	return r;
}

static unsigned bounded(const struct frame *frame, const char *name, unsigned fallback)
{
	int64_t value = vt_head_int(&frame->head, name, 0);

	return value <= 0 ? fallback : value < READY_MAX ? (unsigned)value : READY_MAX;
}

static int start_pool(struct vt_session *session, struct serve_pool *pool,
		      const struct frame *frame, struct vt_err *err)
{
	const char *program = vt_head_text(&frame->head, "program", NULL);

	if (!program || *program != '/')
		return misunderstand("the program of a pool", err);
	pool->program = strdup(program);
	if (!pool->program)
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "make a pool");
	pool->argv[0] = pool->program;
	int r = read_policy(pool, frame, err);

	if (r == 0)
		r = make_plan(session, pool, err);
	if (r < 0)
		return r;
	const struct vt_pool_options options = {
		.plan = pool->plan,
		.program = pool->program,
		.argv = pool->argv,
		.spawner_fd = session->spawner_fd,
		.ready_min = bounded(frame, "ready_min", 2),
		.ready_max = bounded(frame, "ready_max", 64),
		.live_max = bounded(frame, "live_max", 1024),
		.queue_ms = QUEUE_MS,
		.log = log_line,
		.user = session,
	};

	return vt_pool_new(session->loop, &options, &pool->pool, err);
}

static void tell_pool(struct vt_session *session, const struct serve_pool *pool)
{
	AUTO_JSON json_t *all = vt_result_isolation(pool->plan);
	char *text = all ? json_dumps(all, 0) : NULL;

	begin(session, "pool");
	add_int(session, "pool", pool->number);
	vt_head_add_flag(&session->head, "ok", true);
	put_bytes(session, text ? text : "{}", text ? strlen(text) : 2);
	free(text);
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
		free_pool(pool);
		begin(session, "pool");
		add_int(session, "pool", number);
		vt_head_add_flag(&session->head, "ok", false);
		add_int(session, "num", why.num);
		add_text(session, "error", why.what);
		put(session, NULL, 0);
		return 0;
	}
	pool->next = session->pools;
	session->pools = pool;
	session->pool_count++;
	tell_pool(session, pool);
	return 0;
}

/* ---- the session --------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*take)(struct vt_session *session, const struct frame *frame, struct vt_err *err);
} requests[] = {
	{ "call", do_call },   { "answer", do_answer }, { "cancel", do_cancel },
	{ "count", do_count }, { "pool", do_pool },     { "hello", do_hello },
};

static int take_frame(struct vt_session *session, const struct vt_frame *came, struct vt_err *err)
{
	struct frame frame = { .body = came->body, .len = came->body_len };
	int r = vt_head_parse(came->head, came->head_len, &frame.head, err);

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
		for (struct serve_pool *pool = session->pools; pool; pool = pool->next)
			vt_pool_resume(pool->pool);
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

int vt_session_new(struct vt_loop *loop, struct vt_host *host, int fd,
		   struct vt_session **ret_session, struct vt_err *err)
{
	struct vt_session *session = calloc(1, sizeof(*session));

	if (!session) {
		vt_fd_close(&fd);
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "begin a session");
	}
	session->loop = loop;
	session->host = host;
	session->socket = (struct vt_watch){ .fd = fd, .ready = socket_ready, .owner = session };
	vt_frames_in_init(&session->in, FRAME_MAX);
	vt_frames_out_init(&session->out, QUEUED_MAX);
	vt_str_init(&session->head);
	session->spawner_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	int r = session->spawner_fd < 0
			? vt_fail(err, VT_STEP_WIRE, errno, "open vitro's own program")
			: vt_loop_add(loop, &session->socket, EPOLLIN, err);

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
		free_pool(pool);
	}
	vt_loop_remove(session->loop, &session->socket);
	vt_fd_close(&session->socket.fd);
	vt_fd_close(&session->spawner_fd);
	vt_frames_in_done(&session->in);
	vt_frames_out_done(&session->out);
	vt_str_done(&session->head);
	free(session);
}
