/* SPDX-License-Identifier: Apache-2.0 */
#include "occupant.h"

#include <errno.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/zygote.h"
#include "value.h"

int uv_loop_alive(const struct uv_loop_s *loop); /* of the process that loads this */

/* What tells that an occupant is parked, for one that has no addon. */
static napi_value parked(napi_env env, napi_callback_info info)
{
	const struct vt_note note = { .kind = VT_NOTE_PARKED };
	napi_value buffer = NULL;

	(void)info;
	return napi_create_buffer_copy(env, sizeof(note), &note, NULL, &buffer) == napi_ok ? buffer
											   : NULL;
}

/* 31 bits that no other process has. OpenSSL's cost a fork much. */
static napi_value make_random(napi_env env, napi_callback_info info)
{
	uint32_t bits;

	(void)info;
	if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		_exit(125);
	return vt_value_int(env, bits >> 1);
}

static napi_value park(napi_env env, napi_callback_info info)
{
	struct vt_err err;

	(void)env;
	(void)info;
	if (vt_zygote_park(&err) < 0)
		_exit(err.num == EPIPE ? 0 : 1);
	return NULL;
}

static napi_value leave(napi_env env, napi_callback_info info)
{
	napi_value args[1];
	int32_t code = 0;

	if (!vt_value_take_args(env, info, 1, args))
		return NULL;
	(void)napi_get_value_int32(env, args[0], &code); /* 0 where it is none */
	_exit(code);
}

/* Until the cell is killed. */
static napi_value wait_for_end(napi_env env, napi_callback_info info)
{
	(void)env;
	(void)info;
	while (pause() < 0) /* always: a handler may have run */
		;
	return NULL;
}

static napi_value pid(napi_env env, napi_callback_info info)
{
	(void)info;
	return vt_value_int(env, getpid());
}

/* Whether anything could still happen in the event loop. */
static napi_value is_alive(napi_env env, napi_callback_info info)
{
	struct uv_loop_s *loop;

	(void)info;
	return napi_get_uv_event_loop(env, &loop) == napi_ok
		       ? vt_value_bool(env, uv_loop_alive(loop) != 0)
		       : NULL;
}

struct span {
	int32_t fd;
	char *at;
	size_t len;
};

/* (fd, buffer, from) */
static bool take_span(napi_env env, const napi_value *args, struct span *ret_span)
{
	struct span span;
	int64_t from;
	void *data;

	if (!vt_value_take_int(env, args[0], &span.fd) ||
	    napi_get_buffer_info(env, args[1], &data, &span.len) != napi_ok ||
	    napi_get_value_int64(env, args[2], &from) != napi_ok || from < 0 ||
	    (size_t)from > span.len) {
		(void)vt_value_throw(env, "want a descriptor, a buffer, and where in it");
		return false;
	}
	span.at = (char *)data + from;
	span.len -= (size_t)from;
	*ret_span = span;
	return true;
}

/* send(fd, buffer, from): how many bytes the socket took, or a negative errno. */
static napi_value send_some(napi_env env, napi_callback_info info)
{
	napi_value args[3];
	struct span span;

	if (!vt_value_take_args(env, info, 3, args) || !take_span(env, args, &span))
		return NULL;
	ssize_t sent = send(span.fd, span.at, span.len, MSG_DONTWAIT | MSG_NOSIGNAL);

	return vt_value_int(env, sent < 0 ? -errno : sent);
}

/* receive(fd, buffer, from, wait): how many bytes came, 0 at the end, or a negative errno. */
static napi_value receive_some(napi_env env, napi_callback_info info)
{
	napi_value args[4];
	struct span span;
	int32_t wait;
	ssize_t got;

	if (!vt_value_take_args(env, info, 4, args) || !take_span(env, args, &span) ||
	    !vt_value_take_int(env, args[3], &wait))
		return NULL;
	struct pollfd one = { .fd = span.fd, .events = POLLIN };

	/* The description may be one that does not wait: libuv's doing. */
	do {
		got = recv(span.fd, span.at, span.len, wait ? 0 : MSG_DONTWAIT);
	} while (got < 0 &&
		 (errno == EINTR || (wait && errno == EAGAIN && poll(&one, 1, -1) >= 0)));
	return vt_value_int(env, got < 0 ? -errno : got);
}

/* wait(fd): until it can be written to, or read; what it can, as poll() has it. */
static napi_value wait_for(napi_env env, napi_callback_info info)
{
	napi_value args[1];
	int32_t fd;

	if (!vt_value_take_args(env, info, 1, args) || !vt_value_take_int(env, args[0], &fd))
		return NULL;
	struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT };

	while (poll(&one, 1, -1) < 0 && errno == EINTR)
		;
	return vt_value_int(env, one.revents);
}

/* pair(): the two ends of a stream, or nothing where a policy has no sockets. */
static napi_value make_pair(napi_env env, napi_callback_info info)
{
	napi_value ends = NULL;
	int fds[2];

	(void)info;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return NULL;
	if (napi_create_array(env, &ends) != napi_ok ||
	    napi_set_element(env, ends, 0, vt_value_int(env, fds[0])) != napi_ok ||
	    napi_set_element(env, ends, 1, vt_value_int(env, fds[1])) != napi_ok)
		return NULL;
	return ends;
}

static const struct vt_value_function functions[] = {
	{ "parked", parked },    { "random", make_random }, { "park", park },
	{ "exit", leave },       { "pause", wait_for_end }, { "pid", pid },
	{ "isAlive", is_alive }, { "send", send_some },     { "receive", receive_some },
	{ "wait", wait_for },    { "pair", make_pair },
};

bool vt_node_occupant_set_functions(napi_env env, napi_value object)
{
	return vt_value_set_functions(env, object, functions,
				      sizeof(functions) / sizeof(functions[0]));
}
