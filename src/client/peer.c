/* SPDX-License-Identifier: Apache-2.0 */
#include "client/peer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/user.h"
#include "client/error.h"

/* What the supervisor may send ahead; the kernel counts twice that. */
enum { SEND_BYTES = 512 << 10 };
enum { OWN_BYTES = 4096 }; /* a page, or part of one */
enum { CONNECT_S = 10 };   /* how long a server may take to let this one in */

/* A frame that came while another was waited for. */
struct vt_peer_held {
	struct vt_peer_held *next;
	size_t head_len, body_len;
	char bytes[];
};

/* ---- beginning and end ---------------------------------------------------------------------- */

static int fail(struct vt_err *err, const char *what)
{
	int num = errno;
	const char *text = strerrordesc_np(num);

	return vt_fail(err, VT_STEP_WIRE, num, "%s: %s", what, text ? text : "unknown error");
}

static int watch(struct vt_peer *peer, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return epoll_ctl(peer->epoll, op, fd, &event);
}

static int make_pair(struct vt_peer *peer, int *ret_other, struct vt_err *err)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return fail(err, "make a socket");
	peer->socket = ends[0];
	*ret_other = ends[1];
	/* As much as is allowed of that: a large result takes fewer turns. */
	(void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &(int){ SEND_BYTES }, sizeof(int));
	return 0;
}

/* For the socket that there is. */
static int open_descriptors(struct vt_peer *peer, struct vt_err *err)
{
	peer->epoll = epoll_create1(EPOLL_CLOEXEC);
	peer->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (peer->epoll < 0 || peer->event < 0)
		return fail(err, "make descriptors");
	if (watch(peer, EPOLL_CTL_ADD, peer->event, EPOLLIN) < 0 ||
	    watch(peer, EPOLL_CTL_ADD, peer->socket, EPOLLIN) < 0)
		return fail(err, "watch descriptors");
	return 0;
}

/* The kernel empties the page in a fork, so that looking there costs no system call. */
static int mark_own(struct vt_peer *peer, struct vt_err *err)
{
	char *page = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);

	if (page == MAP_FAILED)
		return fail(err, "map a page");
	/* Where it cannot be had, a fork is not noticed. */
	(void)madvise(page, OWN_BYTES, MADV_WIPEONFORK);
	*page = 1;
	peer->own = page;
	return 0;
}

static bool is_forked(const struct vt_peer *peer)
{
	return peer->own && !*peer->own;
}

/* A fork shares socket and descriptors with the one that it is of, and must touch none of them. */
static bool is_lost(struct vt_peer *peer)
{
	if (!peer->lost && is_forked(peer)) {
		peer->lost = true;
		vt_fail(&peer->why, VT_STEP_WIRE, EPIPE,
			"this process is a fork of the one that made the tool host");
	}
	return peer->lost;
}

void vt_peer_clear(struct vt_peer *peer)
{
	*peer = (struct vt_peer){ .process.pidfd = -1, .socket = -1, .epoll = -1, .event = -1 };
	peer->held_end = &peer->held;
	vt_str_init(&peer->head);
	vt_frames_in_init(&peer->in, VT_FRAME_MAX);
	peer->in.trusting = true; /* a supervisor has all of a frame before it sends any */
	vt_frames_out_init(&peer->out, SIZE_MAX); /* as much as the program itself asks for */
}

int vt_peer_init(struct vt_peer *peer, struct vt_err *err)
{
	AUTO_CLOSE int other = -1;
	char *path = peer->program;
	int status = vt_start_find(path, sizeof(peer->program), err);

	if (status == 0)
		status = mark_own(peer, err);
	if (status == 0)
		status = make_pair(peer, &other, err);
	if (status == 0)
		status = open_descriptors(peer, err);
	if (status == 0)
		status = vt_start_run(path, other, &peer->process, err);
	return status;
}

/* A server executes what this program names, and hears what it is told: it is somebody's to trust.
 */
static int check_server(int fd, const char *path, struct vt_err *err)
{
	struct ucred other;
	socklen_t len = sizeof(other);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &len) < 0)
		return fail(err, "find out whose server it is");
	if ((other.uid == geteuid() || other.uid == 0) && !vt_user_is_known(other.uid))
		return vt_fail(err, VT_STEP_WIRE, EPERM,
			       "whose the server at '%s' is cannot be known: this user namespace "
			       "shows user %u for all users that it does not map",
			       path, (unsigned)other.uid);
	if (other.uid != geteuid() && other.uid != 0)
		return vt_fail(err, VT_STEP_WIRE, EPERM,
			       "the server at '%s' is the user %u's, and neither this one's nor "
			       "root's",
			       path, (unsigned)other.uid);
	return 0;
}

/* Why there is nobody, by what is there. */
static int fail_reach(const char *path, int num, struct vt_err *err)
{
	struct stat st;
	bool seen = stat(path, &st) == 0;

	if (seen && S_ISDIR(st.st_mode))
		return vt_fail(err, VT_STEP_WIRE, ENOTSOCK,
			       "no server can be reached at '%s': it is a folder; name the socket "
			       "in it",
			       path);
	if (seen && !S_ISSOCK(st.st_mode))
		return vt_fail(err, VT_STEP_WIRE, ENOTSOCK,
			       "no server can be reached at '%s': it is no socket", path);
	if (num == EACCES && seen)
		return vt_fail(err, VT_STEP_WIRE, num,
			       "no server can be reached at '%s': it is for the user %u, and you "
			       "are %u; connect as that user, or start a server of your own: vitro "
			       "serve --socket PATH",
			       path, (unsigned)st.st_uid, (unsigned)geteuid());
	if (num == EACCES)
		return vt_fail(err, VT_STEP_WIRE, num,
			       "no server can be reached at '%s': it lies in a folder that is not "
			       "for the user %u, whom you are; connect as its owner, or start a "
			       "server of your own: vitro serve --socket PATH",
			       path, (unsigned)geteuid());
	return vt_fail(err, VT_STEP_WIRE, num, "no server can be reached at '%s': %s%s", path,
		       num == EAGAIN ? "it lets nobody in" : strerror(num),
		       num == ENOENT || num == ECONNREFUSED
			       ? "; start one: vitro serve --socket PATH"
			       : "");
}

static int reach(int fd, const char *path, struct vt_err *err)
{
	const struct timeval patience = { .tv_sec = CONNECT_S };
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (!*path || strlen(path) >= sizeof(address.sun_path))
		return vt_fail(err, VT_STEP_WIRE, ENAMETOOLONG,
			       "'%s': the path of a socket has 1 to %zu bytes", path,
			       sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, strlen(path) + 1);
	/* Where many wait to be let in: it is what bounds connect(). */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return fail_reach(path, errno, err);
	return check_server(fd, path, err);
}

int vt_peer_connect(struct vt_peer *peer, const char *path, struct vt_err *err)
{
	peer->is_server = true;
	(void)snprintf(peer->program, sizeof(peer->program), "%s", path); /* for messages */
	int status = mark_own(peer, err);

	if (status < 0)
		return status;
	peer->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (peer->socket < 0)
		return fail(err, "make a socket");
	status = reach(peer->socket, path, err);
	return status < 0 ? status : open_descriptors(peer, err);
}

static void drop_held(struct vt_peer *peer)
{
	free(peer->shown);
	peer->shown = NULL;
	while (peer->held) {
		struct vt_peer_held *next = peer->held->next;

		free(peer->held);
		peer->held = next;
	}
	peer->held_end = &peer->held;
}

void vt_peer_close(struct vt_peer *peer)
{
	if (!peer->lost)
		vt_fail(&peer->why, VT_STEP_WIRE, EPIPE, "it was ended");
	peer->lost = true;
	vt_fd_close(&peer->socket);
}

void vt_peer_done(struct vt_peer *peer)
{
	vt_peer_close(peer);
	vt_start_end(&peer->process);
	vt_fd_close(&peer->event);
	vt_fd_close(&peer->epoll);
	vt_frames_in_done(&peer->in);
	vt_frames_out_done(&peer->out);
	vt_str_done(&peer->head);
	drop_held(peer);
	if (peer->own)
		(void)munmap((void *)peer->own,
			     OWN_BYTES); /* it is a mapping, so this can be done */
}

/* It is not to be talked with any more; the first reason stays. */
static void lose(struct vt_peer *peer, const struct vt_err *why)
{
	if (peer->lost)
		return;
	peer->lost = true;
	peer->why = *why;
	/* A fork of this process may have the socket too: closing alone would not end the watch. */
	(void)watch(peer, EPOLL_CTL_DEL, peer->socket, 0); /* at worst it was not there */
	vt_fd_close(&peer->socket);
	vt_peer_wake(peer, true);
}

void vt_peer_wake(struct vt_peer *peer, bool awake)
{
	uint64_t count = 1;

	if (peer->awake == awake || is_forked(peer))
		return;
	/* It counts up to 2^64 - 2 and is never full; where it is read, it is not empty. */
	if (awake ? write(peer->event, &count, sizeof(count)) > 0
		  : read(peer->event, &count, sizeof(count)) > 0)
		peer->awake = awake;
}

/* ---- to the supervisor ---------------------------------------------------------------------- */

struct vt_str *vt_peer_begin(struct vt_peer *peer, const char *what)
{
	vt_head_begin(&peer->head);
	vt_head_add(&peer->head, "do", what);
	return &peer->head;
}

/* Waits for room only while something is queued. */
static void set_flushing(struct vt_peer *peer, bool flushing)
{
	if (peer->flushing == flushing)
		return;
	peer->flushing = flushing;
	if (watch(peer, EPOLL_CTL_MOD, peer->socket, EPOLLIN | (flushing ? EPOLLOUT : 0)) < 0) {
		struct vt_err err;

		fail(&err, "watch the socket");
		lose(peer, &err);
	}
}

/*
 * After a frame was sent, or some of one. Of a supervisor that is gone there may be more to read:
 * it is lost when that has been read.
 */
static int settle(struct vt_peer *peer, int status, const struct vt_err *err)
{
	if (status < 0 && status != -EPIPE) {
		lose(peer, err);
		return status;
	}
	set_flushing(peer, status == 0);
	return 0;
}

int vt_peer_send(struct vt_peer *peer, const void *body, size_t len, struct vt_err *err)
{
	int status = vt_head_end(&peer->head, err);

	if (is_lost(peer)) {
		*err = peer->why;
		return -err->num;
	}
	if (status == 0)
		status = vt_frames_put(&peer->out, peer->socket, peer->head.text, peer->head.len,
				       body, len, err);
	return status == -EMSGSIZE ? status : settle(peer, status, err);
}

void vt_peer_flush(struct vt_peer *peer)
{
	struct vt_err err;

	if (is_lost(peer) || !peer->flushing)
		return;
	(void)settle(peer, vt_frames_flush(&peer->out, peer->socket, &err), &err); /* or lost */
}

/* ---- from it -------------------------------------------------------------------------------- */

bool vt_peer_read(struct vt_peer *peer)
{
	struct vt_err err;

	if (is_lost(peer))
		return false;
	ssize_t got = vt_frames_read(&peer->in, peer->socket, &err);

	if (got < 0)
		lose(peer, &err);
	return got > 0;
}

/* Waits until there is something to read or room to write, or the time is over; -1: no end. */
static void await_socket(struct vt_peer *peer, int timeout_ms)
{
	struct pollfd poller = { .fd = peer->socket, .events = POLLIN };

	if (is_lost(peer))
		return;
	if (peer->flushing)
		poller.events |= POLLOUT;
	/* Whatever it says, the socket is tried next. */
	(void)poll(&poller, 1, timeout_ms);
}

void vt_peer_read_waiting(struct vt_peer *peer)
{
	if (is_lost(peer))
		return;
	/*
	 * By a poll: the kernel wakes whoever waits in recv() also when the other side has read
	 * what was sent, which costs both of them.
	 */
	await_socket(peer, -1);
	if (peer->flushing)
		vt_peer_flush(peer);
	(void)vt_peer_read(peer); /* where there is nothing, it is waited again */
}

/* Whether there is a frame in the buffer. */
static bool next_frame(struct vt_peer *peer, struct vt_frame *ret_frame)
{
	struct vt_err err;
	int status = vt_frames_next(&peer->in, ret_frame, &err);

	if (status < 0)
		lose(peer, &err);
	return status > 0;
}

static bool parse(struct vt_peer *peer, const struct vt_frame *frame, struct vt_message *ret)
{
	struct vt_err err;
	int status = vt_message_read(frame, ret, &err);

	if (status == 0 && strcmp(ret->is, "bye") == 0)
		status = vt_fail(&err, VT_STEP_WIRE, ESHUTDOWN,
				 "the server has ended, and has not begun this call");
	if (status < 0)
		lose(peer, &err);
	return status == 0;
}

bool vt_peer_holds(const struct vt_peer *peer)
{
	return peer->held;
}

/* What was held back came first, and counts even where the peer is lost meanwhile. */
bool vt_peer_next(struct vt_peer *peer, struct vt_message *ret_message)
{
	struct vt_frame frame;

	free(peer->shown);
	peer->shown = peer->held;
	if (peer->shown) {
		struct vt_peer_held *held = peer->shown;

		peer->held = held->next;
		if (!peer->held)
			peer->held_end = &peer->held;
		frame = (struct vt_frame){ held->bytes, held->head_len,
					   held->bytes + held->head_len, held->body_len };
	} else if (peer->lost || !next_frame(peer, &frame)) {
		return false;
	}
	if (parse(peer, &frame, ret_message))
		return true;
	drop_held(peer);
	return false;
}

void vt_peer_refuse(struct vt_peer *peer, const struct vt_err *why)
{
	lose(peer, why);
	drop_held(peer);
}

void *vt_peer_take(struct vt_peer *peer)
{
	return peer->shown ? NULL : vt_frames_take(&peer->in, NULL);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* A copy of the frame, whose head is about to be changed by reading it. */
static struct vt_peer_held *copy(const struct vt_frame *frame)
{
	struct vt_peer_held *held = malloc(sizeof(*held) + frame->head_len + frame->body_len);

	if (!held)
		return NULL;
	*held = (struct vt_peer_held){ .head_len = frame->head_len, .body_len = frame->body_len };
	memcpy(held->bytes, frame->head, frame->head_len);
	memcpy(held->bytes + frame->head_len, frame->body, frame->body_len);
	return held;
}

static void hold(struct vt_peer *peer, struct vt_peer_held *held)
{
	*peer->held_end = held;
	peer->held_end = &held->next;
	vt_peer_wake(peer, true);
}

static void lose_memory(struct vt_peer *peer)
{
	struct vt_err err;

	vt_error_no_memory(&err);
	lose(peer, &err);
}

/* What is in the buffer makes no descriptor readable. */
static void hold_rest(struct vt_peer *peer)
{
	struct vt_frame frame;

	while (!peer->lost && next_frame(peer, &frame)) {
		struct vt_peer_held *held = copy(&frame);

		if (held)
			hold(peer, held);
		else
			lose_memory(peer);
	}
}

/* Whether that was the last one. */
static bool take_or_hold(struct vt_peer *peer, const struct vt_frame *frame, vt_peer_taker *take,
			 void *user)
{
	struct vt_peer_held *held = copy(frame);
	struct vt_message message;
	struct vt_err err;

	if (!held) {
		lose_memory(peer);
		return false;
	}
	if (!parse(peer, frame, &message)) {
		free(held);
		return false;
	}
	enum vt_peer_taken taken = take(user, &message, &err);

	if (taken == VT_PEER_OTHER) {
		hold(peer, held);
		return false;
	}
	free(held);
	if (taken == VT_PEER_WRONG)
		lose(peer, &err);
	return taken == VT_PEER_LAST;
}

int vt_peer_await(struct vt_peer *peer, int timeout_ms, vt_peer_taker *take, void *user,
		  struct vt_err *err)
{
	int64_t until = vt_clock_now() + timeout_ms * VT_NS_PER_MS;
	struct vt_frame frame;

	while (!is_lost(peer)) {
		vt_peer_flush(peer);
		while (!peer->lost && next_frame(peer, &frame))
			if (take_or_hold(peer, &frame, take, user)) {
				hold_rest(peer);
				return 0;
			}
		if (vt_peer_read(peer))
			continue;
		int64_t left = (until - vt_clock_now()) / VT_NS_PER_MS;

		if (timeout_ms >= 0 && left <= 0)
			return vt_fail(err, VT_STEP_WIRE, ETIMEDOUT,
				       "the supervisor does not answer");
		await_socket(peer, timeout_ms < 0 ? -1 : (int)left);
	}
	*err = peer->why;
	return -err->num;
}
