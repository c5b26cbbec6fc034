/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "serve/request.h"
#include "serve/session_private.h"

enum {
	WIRE_VERSION = 1,
	QUEUED_FEW = 1 << 20,      /* so little is left: cells that waited go on */
	ENVIRONMENT_MAX = 2 << 20, /* more than the kernel gives to a program */
	HELD_SMALL = 1 << 20,      /* a frame that has not come whole, and is nobody's concern */
	UNREAD_SMALL = 1 << 20,    /* what waits to be read, and is nobody's concern */
	KEPT_SMALL = 1 << 19,      /* what is kept for a client, and is nobody's concern */
};

/* What took longer is followed by a pause, of so many times as long. */
#define PAUSE_FROM  (1 * VT_NS_PER_MS)
#define PAUSE_SHARE 3

/* How long frames of one connection are taken before its whole client has a pause, as long as that;
 * and after how many of them, or how large a one, it is looked at the clock. */
#define TURN        (VT_NS_PER_MS / 2)
#define TURN_FRAMES 16
#define TURN_BYTES  (64 << 10)

/* ---- to the client ------------------------------------------------------------------------- */

/* Whoever calls this may be at work on it: it ends from the loop. */
static void end_session(struct vt_session *session)
{
	if (session->over)
		return;
	session->over = true;
	vt_loop_remove(session->commons->loop, &session->socket);
	vt_timer_set(&session->timer, 0);
}

static int set_events(struct vt_session *session, struct vt_err *err)
{
	uint32_t events = (session->stalled ? 0 : EPOLLIN) |
			  (vt_frames_queued(&session->out) ? EPOLLOUT : 0);

	if (session->events == events && session->socket.added)
		return 0;
	session->events = events;
	vt_loop_remove(session->commons->loop, &session->socket);
	return vt_loop_add(session->commons->loop, &session->socket, events, err);
}

static void put(struct vt_session *session, const char *head, size_t head_len,
		const struct iovec *body, size_t count, struct vt_frames_given *given)
{
	struct vt_err err;
	int r = vt_frames_put_given(&session->out, session->socket.fd, head, head_len, body, count,
				    given, &err);

	vt_session_count_unread(session);
	if (r == 0)
		r = set_events(session, &err);
	if (r < 0)
		end_session(session); /* a client that is told half of it would wait for the rest */
}

void vt_session_put(struct vt_session *session, const struct iovec *body, size_t count,
		    struct vt_frames_given *given)
{
	struct vt_err err;

	if (session->over)
		return;
	if (vt_head_end(&session->head, &err) < 0)
		end_session(session);
	else
		put(session, session->head.text, session->head.len, body, count, given);
}

void vt_session_put_made(struct vt_session *session, const char *head, size_t head_len,
			 const struct iovec *body)
{
	if (!session->over)
		put(session, head, head_len, body, 1, NULL);
}

void vt_session_begin(struct vt_session *session, const char *what)
{
	vt_head_begin(&session->head);
	vt_head_add(&session->head, "is", what);
}

void vt_session_add_text(struct vt_session *session, const char *name, const char *text)
{
	vt_head_add(&session->head, name, text);
}

void vt_session_add_int(struct vt_session *session, const char *name, int64_t value)
{
	vt_head_add_int(&session->head, name, value);
}

void vt_session_put_bytes(struct vt_session *session, const char *bytes, size_t len)
{
	const struct iovec part = { (void *)bytes, len };

	vt_session_put(session, &part, 1, NULL);
}

void vt_session_count_unread(struct vt_session *session)
{
	size_t now = vt_frames_queued(&session->out) + session->withheld_bytes;

	session->client->unread += now - session->unread;
	session->commons->unread += now - session->unread;
	session->unread = now;
}

/* When all clients together leave too much unread, one that reads has small results still. */
bool vt_session_is_overfull(const struct vt_session *session, size_t more)
{
	const struct vt_commons *commons = session->commons;
	size_t unread = session->client->unread + more;

	return session->unread > commons->limits.queued_max ||
	       unread > commons->limits.unread_max ||
	       (unread > UNREAD_SMALL && commons->unread + more > commons->unread_max);
}

void vt_session_log(struct vt_session *session, const struct vt_cells *cells, int level,
		    const char *text)
{
	/* Of cells that are only being made nobody has any: they may be this one's. */
	if (vt_session_is_overfull(session, strlen(text)) ||
	    (cells && session->commons->shared && !vt_session_has_cells(session, cells)))
		return;
	vt_session_begin(session, "log");
	vt_session_add_int(session, "level", level);
	vt_session_put_bytes(session, text, strlen(text));
}

void vt_session_bye(struct vt_session *session)
{
	vt_session_begin(session, "bye");
	vt_session_put(session, NULL, 0, NULL);
}

/* ---- from the client ----------------------------------------------------------------------- */

bool vt_session_keeps_too_much(const struct vt_session *session, size_t more)
{
	const struct vt_commons *commons = session->commons;
	size_t own = session->client->kept + more;
	size_t others = commons->kept - session->client->kept;

	return own > commons->limits.kept_max ||
	       (own > KEPT_SMALL &&
		(others >= commons->kept_max || own > (commons->kept_max - others) / 2));
}

void vt_session_count_kept(struct vt_session *session, size_t bytes, bool is_less)
{
	session->client->kept += is_less ? -bytes : bytes;
	session->commons->kept += is_less ? -bytes : bytes;
}

static size_t count_variables(const char *text, size_t len)
{
	size_t count = 0;

	for (size_t at = 0; at < len; at += strlen(text + at) + 1)
		count++;
	return count;
}

/* Where each variable of the environment is, which came as one text. */
static int split_environment(struct vt_session *session, size_t count)
{
	const struct vt_str *text = &session->environment;

	session->environ = calloc(count + 1, sizeof(*session->environ));
	if (!session->environ)
		return -ENOMEM;
	count = 0;
	for (size_t at = 0; at < text->len; at += strlen(text->text + at) + 1)
		session->environ[count++] = text->text + at;
	return 0;
}

static int take_environment(struct vt_session *session, const struct vt_request_frame *frame,
			    struct vt_err *err)
{
	const char *cwd = vt_head_text(&frame->head, "cwd", NULL);

	if (frame->len > ENVIRONMENT_MAX || (frame->len && frame->body[frame->len - 1]) ||
	    (cwd && *cwd != '/'))
		return vt_request_misunderstand("its environment", err);
	/* As the kernel counts it for a program: with a pointer for each, however short. */
	size_t count = count_variables(frame->body, frame->len);
	size_t bytes = frame->len + (count + 1) * sizeof(*session->environ) +
		       (cwd ? strlen(cwd) + 1 : 0);

	if (bytes > 2 * ENVIRONMENT_MAX || vt_session_keeps_too_much(session, bytes))
		return vt_fail(err, VT_STEP_WIRE, E2BIG,
			       "take an environment: those of this process's connections, and what "
			       "its pools stand on, come to too much; pass on fewer variables, or "
			       "use one connection");
	vt_str_addn(&session->environment, frame->body, frame->len);
	session->cwd = cwd ? strdup(cwd) : NULL;
	if (!vt_str_ok(&session->environment) || (cwd && !session->cwd) ||
	    split_environment(session, count) < 0)
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "take an environment");
	session->kept = bytes;
	vt_session_count_kept(session, bytes, false);
	return 0;
}

static int do_hello(struct vt_session *session, const struct vt_request_frame *frame,
		    struct vt_err *err)
{
	int64_t version = vt_head_int(&frame->head, "version", 0);

	if (session->greeted)
		return vt_request_misunderstand("it says hello twice", err);
	if (version != WIRE_VERSION)
		return vt_fail(err, VT_STEP_WIRE, EBADMSG,
			       "understand the client: it speaks version %lld of the wire, and "
			       "vitro " VITRO_VERSION " speaks %d",
			       (long long)version, WIRE_VERSION);
	if (session->commons->shared) {
		int r = take_environment(session, frame, err);

		if (r < 0)
			return r;
	}
	session->greeted = true;
	vt_session_begin(session, "hello");
	vt_session_add_int(session, "version", WIRE_VERSION);
	vt_session_add_text(session, "vitro", VITRO_VERSION);
	vt_session_put(session, NULL, 0, NULL);
	return 0;
}

void vt_session_tell_tools(struct vt_session *session)
{
	const struct vt_offer *offer = session->commons->offer;
	const char *list = offer ? vt_offer_list(offer) : "";

	if (!session->watches || vt_session_is_overfull(session, strlen(list)))
		return;
	vt_session_begin(session, "tools");
	vt_head_add_flag(&session->head, "ok", offer);
	if (!offer)
		vt_session_add_text(session, "error", "this server has no tools of its own");
	vt_session_put_bytes(session, list, strlen(list));
}

static int do_tools(struct vt_session *session, const struct vt_request_frame *frame,
		    struct vt_err *err)
{
	(void)frame;
	(void)err;
	session->watches = true;
	vt_session_tell_tools(session);
	return 0;
}

static const struct {
	const char *name;
	vt_session_take *take;
} requests[] = {
	{ "call", vt_session_do_call },     { "answer", vt_session_do_answer },
	{ "cancel", vt_session_do_cancel }, { "count", vt_session_do_count },
	{ "pool", vt_session_do_pool },     { "drop", vt_session_do_drop },
	{ "learn", vt_session_do_learn },   { "hello", do_hello },
	{ "tool", vt_session_do_tool },     { "tools", do_tools },
};

static int take_frame(struct vt_session *session, const struct vt_frame *came, struct vt_err *err)
{
	struct vt_request_frame frame = { .body = came->body, .len = came->body_len };
	int r = vt_head_parse(came->head, came->head_len, &frame.head, err);

	if (r == 0)
		r = vt_request_check(&frame.head, err);
	if (r < 0)
		return r;
	const char *what = vt_head_text(&frame.head, "do", NULL);

	if (!session->greeted && (!what || strcmp(what, "hello") != 0))
		return vt_request_misunderstand("its first word is not hello", err);
	for (size_t i = 0; what && i < sizeof(requests) / sizeof(requests[0]); i++)
		if (strcmp(requests[i].name, what) == 0)
			return requests[i].take(session, &frame, err);
	return vt_request_misunderstand("a frame without a request", err);
}

/* The last word may not be heard. */
static void fail(struct vt_session *session, const struct vt_err *err)
{
	if (err->num != EPIPE) {
		vt_session_log(session, NULL, LOG_ERR, err->what);
		if (session->commons->denied)
			session->commons->denied(session->commons->user, VT_DENIED_FRAME);
	}
	end_session(session);
}

/* After so long. INT64_MAX is never. */
static int64_t later(int64_t ns)
{
	return ns == INT64_MAX ? INT64_MAX : vt_clock_now() + ns;
}

/*
 * Half a frame holds memory, and a client that sends a byte now and then would hold it for ever: a
 * frame has its time from its first byte on. Of one that is not listened to, nothing is expected.
 */
static void set_deadline(struct vt_session *session)
{
	const struct vt_session_limits *limits = &session->commons->limits;
	bool is_half = session->in.end > session->in.start && !session->stalled;

	if (!session->greeted)
		return; /* that of its hello counts */
	if (!is_half)
		vt_timer_set(&session->deadline, INT64_MAX);
	else if (session->deadline.when == INT64_MAX || session->took)
		vt_timer_set(&session->deadline, later(limits->frame_ns));
}

static void deadline_fires(struct vt_timer *timer)
{
	struct vt_session *session = timer->owner;
	struct vt_err err;

	if (session->over)
		return;
	(void)vt_fail(&err, VT_STEP_WIRE, ETIMEDOUT,
		      session->greeted ? "receive a frame: it has not come whole within %d s"
				       : "hear a hello: none came within %d s",
		      (int)((session->greeted ? session->commons->limits.frame_ns
					      : session->commons->limits.hello_ns) /
			    VT_NS_PER_S));
	fail(session, &err);
}

/* What one holds of the memory for frames that have not come whole: half of what others leave. */
static int count_held(struct vt_session *session, struct vt_err *err)
{
	struct vt_commons *commons = session->commons;
	struct vt_client *client = session->client;

	commons->held += session->in.cap - session->held;
	client->held += session->in.cap - session->held;
	session->held = session->in.cap;
	size_t others = commons->held - client->held;

	if (session->held <= HELD_SMALL ||
	    (others < commons->held_max && client->held <= (commons->held_max - others) / 2))
		return 0;
	return vt_fail(err, VT_STEP_WIRE, ENOBUFS,
		       "take a frame: those that have not come whole are too large in all; send "
		       "it later");
}

void vt_session_pause(struct vt_session *session, int64_t begun)
{
	int64_t now = vt_clock_now(), took = now - begun;

	if (session->commons->shared && took > PAUSE_FROM)
		session->client->paused_until = now + PAUSE_SHARE * took;
}

/* After so many frames, the last of so many bytes. */
static void end_turn(struct vt_session *session, unsigned count, size_t len, int64_t begun)
{
	if (!session->commons->shared || (count % TURN_FRAMES && len < TURN_BYTES))
		return;
	int64_t now = vt_clock_now(), until = now + (now - begun);

	if (now - begun >= TURN && until > session->client->paused_until)
		session->client->paused_until = until;
}

/* On whatever connection. */
static bool is_paused(const struct vt_session *session)
{
	const struct vt_client *client = session->client;

	return client->paused_until && client->paused_until > vt_clock_now();
}

static bool is_slowed(const struct vt_session *session)
{
	return vt_frames_queued(&session->out) > session->commons->limits.queued_slow;
}

/* The frames that came, as far as it is this client's turn. */
static int take_frames(struct vt_session *session, struct vt_err *err)
{
	struct vt_frame frame;
	int64_t begun = vt_clock_now();
	unsigned count = 0;
	bool paused = false;
	int r = 1;

	session->stalled = session->took = false;
	while (r > 0 && !session->over) {
		paused = session->turn_over || is_paused(session);
		if (paused || is_slowed(session) || session->scout) {
			session->stalled = true;
			break;
		}
		r = vt_frames_next(&session->in, &frame, err);
		if (r > 0) {
			int taken = take_frame(session, &frame, err);

			r = taken < 0 ? taken : r;
			session->took = true;
			end_turn(session, ++count, frame.body_len, begun);
		}
	}
	set_deadline(session);
	if (r >= 0)
		r = count_held(session, err);
	if (paused && !session->over && !session->scout)
		vt_timer_set(&session->timer, session->client->paused_until);
	session->turn_over = false;
	return r < 0 ? r : session->over ? 0 : set_events(session, err);
}

static int read_frames(struct vt_session *session, struct vt_err *err)
{
	ssize_t got = vt_frames_read(&session->in, session->socket.fd, err);

	return got < 0 ? (int)got : take_frames(session, err);
}

static int flush(struct vt_session *session, struct vt_err *err)
{
	int r = vt_frames_flush(&session->out, session->socket.fd, err);

	vt_session_count_unread(session);
	if (r < 0)
		return r;
	vt_commons_trim_later(session->commons);
	if (vt_frames_queued(&session->out) <= QUEUED_FEW) {
		if (session->full) {
			session->full = false;
			vt_session_resume(session);
		}
		if (session->stalled)
			return take_frames(session, err);
	}
	return set_events(session, err);
}

static void socket_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_session *session = source->owner;
	struct vt_err err;
	int r = events & EPOLLOUT ? flush(session, &err) : 0;

	/* Of a client that is not listened to only its end is heard. */
	if (r >= 0 && session->stalled && events & (EPOLLHUP | EPOLLERR))
		r = vt_fail(&err, VT_STEP_WIRE, EPIPE, "hear a client that is gone");
	else if (r >= 0 && !session->over && !session->stalled && events & ~(uint32_t)EPOLLOUT)
		r = read_frames(session, &err);
	if (r < 0)
		fail(session, &err);
}

static void timer_fires(struct vt_timer *timer)
{
	struct vt_session *session = timer->owner;
	struct vt_err err;
	int r = 0;

	if (session->over) {
		session->commons->ended(session->commons->user, session);
		return;
	}
	if (session->stalled)
		r = take_frames(session, &err);
	if (r < 0)
		fail(session, &err);
}

/* ---- the session --------------------------------------------------------------------------- */

/* NULL: no memory. */
static struct vt_client *get_client(struct vt_commons *commons, const struct vt_session_peer *peer)
{
	struct vt_client *client = vt_client_find(commons->clients, peer->pid, peer->since,
						  peer->uid);

	if (client)
		return vt_client_hold(client);
	client = vt_client_new(&commons->clients, peer->pid, peer->since, peer->uid);
	if (client)
		vt_turner_init(&client->turner, &commons->turns, commons->limits.live_max);
	return client;
}

void vt_session_turn_away(struct vt_commons *commons, const struct vt_session_peer *peer)
{
	struct vt_session_peer away = *peer;

	vt_children_shut(&commons->children, &away.fd, peer->wary);
	vt_fd_close(&away.program_fd);
}

int vt_session_new(struct vt_commons *commons, const struct vt_session_peer *peer,
		   struct vt_session **ret_session, struct vt_err *err)
{
	struct vt_session *session = calloc(1, sizeof(*session));
	struct vt_client *client = session ? get_client(commons, peer) : NULL;

	if (!client) {
		free(session);
		vt_session_turn_away(commons, peer);
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "begin a session");
	}
	session->commons = commons;
	session->peer = *peer;
	session->client = client;
	client->sessions++;
	session->number = ++commons->sessions;
	session->socket = (struct vt_watch){ .fd = peer->fd,
					     .ready = socket_ready,
					     .owner = session };
	session->timer = (struct vt_timer){ .fire = timer_fires, .owner = session };
	vt_loop_add_timer(commons->loop, &session->timer);
	session->deadline = (struct vt_timer){ .fire = deadline_fires, .owner = session };
	vt_loop_add_timer(commons->loop, &session->deadline);
	vt_frames_in_init(&session->in, commons->limits.frame_max);
	session->in.trusting = !commons->shared; /* it only gets in its own way */
	session->in.wary = peer->wary;
	session->in.spare = &commons->spare;
	/* What cells say is bounded before; the rest is as much as the client itself asks for. */
	vt_frames_out_init(&session->out, SIZE_MAX);
	session->out.spare = &commons->spare;
	vt_str_init(&session->head);
	vt_str_init(&session->environment);
	int r = set_events(session, err);

	if (r < 0) {
		vt_session_free(session);
		return r;
	}
	vt_timer_set(&session->deadline, later(commons->limits.hello_ns));
	*ret_session = session;
	return 0;
}

void vt_session_free(struct vt_session *session)
{
	if (!session)
		return;
	session->over = true; /* nobody is told any more */
	vt_session_disown_calls(session);
	vt_scout_leave(session->scout);
	vt_session_drop_pools(session);
	vt_session_drop_withheld(session);
	vt_loop_remove_timer(session->commons->loop, &session->timer);
	vt_loop_remove_timer(session->commons->loop, &session->deadline);
	vt_loop_remove(session->commons->loop, &session->socket);
	session->commons->held -= session->held;
	session->client->held -= session->held;
	vt_children_shut(&session->commons->children, &session->socket.fd, session->in.wary);
	vt_fd_close(&session->peer.program_fd);
	vt_frames_in_done(&session->in);
	vt_frames_out_done(&session->out);
	session->client->unread -= session->unread;
	session->commons->unread -= session->unread;
	vt_session_count_kept(session, session->kept, true);
	session->client->sessions--;
	vt_client_release(session->client);
	vt_str_done(&session->head);
	vt_str_done(&session->environment);
	free(session->environ);
	free(session->cwd);
	free(session);
}

unsigned vt_session_calls(const struct vt_session *session)
{
	return session->call_count + session->withheld_count;
}

bool vt_session_is_unread(const struct vt_session *session)
{
	return !session->over && vt_frames_queued(&session->out);
}

void vt_session_cancel(struct vt_session *session)
{
	vt_session_cancel_of(session, NULL);
}

void *vt_session_user(const struct vt_session *session)
{
	return session->user;
}

void vt_session_set_user(struct vt_session *session, void *user)
{
	session->user = user;
}
