/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests and fuzzers: a client whose supervisor is nobody. What the client would start (client/start.h) is
 * in here instead, and keeps the other end of the socket, so that the test says what a supervisor would.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/start.h"

static int fed_fd = -1;       /* the supervisor's end of the last one that was started */
static int fed_pools = 1;     /* how many pools are agreed to, before they are asked for */
static const char *fed_hello; /* NULL: the right one */

/* Whether all of it went: a test says no more than a socket holds. */
static inline bool fed_say(const void *bytes, size_t len)
{
	return send(fed_fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

static inline bool fed_say_frame(const void *head, size_t head_len, const void *body, size_t body_len)
{
	const uint32_t prefix[] = { (uint32_t)(head_len + body_len), (uint32_t)head_len };

	return fed_say(prefix, sizeof(prefix)) && (!head_len || fed_say(head, head_len)) &&
	       (!body_len || fed_say(body, body_len));
}

/*
 * The first word. A descriptor goes along, which nobody takes: a read ends behind it, and so what comes next is
 * read when it is waited for, as if it were the answer to a question.
 */
static inline bool fed_say_hello(const char *head)
{
	const uint32_t prefix[] = { (uint32_t)strlen(head), (uint32_t)strlen(head) };
	struct iovec parts[] = { { (void *)prefix, sizeof(prefix) }, { (void *)head, strlen(head) } };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr message = { .msg_iov = parts,
				  .msg_iovlen = 2,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), &fed_fd, sizeof(int));
	return sendmsg(fed_fd, &message, MSG_NOSIGNAL) == (ssize_t)(sizeof(prefix) + strlen(head));
}

/* ---- instead of client/start.c -------------------------------------------------------------- */

int vt_start_find(char *path, size_t size, struct vt_err *err)
{
	(void)err;
	(void)snprintf(path, size, "nobody");
	return 0;
}

int vt_start_run(const char *path, int socket, struct vt_start *ret_start, struct vt_err *err)
{
	static const char hello[] = "{\"is\":\"hello\",\"version\":1,\"vitro\":\"" VITRO_VERSION "\"}";
	const char *first = fed_hello ? fed_hello : hello;
	char head[64];

	(void)path;
	fed_fd = dup(socket);
	if (fed_fd < 0 || !fed_say_hello(first))
		return vt_fail(err, VT_STEP_WIRE, EIO, "be nobody");
	for (int pool = 1; pool <= fed_pools; pool++) {
		(void)snprintf(head, sizeof(head), "{\"is\":\"pool\",\"pool\":%d,\"ok\":true}", pool);
		if (!fed_say_frame(head, strlen(head), "{\"level\": \"full\"}", 17))
			return vt_fail(err, VT_STEP_WIRE, EIO, "be nobody");
	}
	*ret_start = (struct vt_start){ .pidfd = -1, .owner = getpid() };
	return 0;
}

void vt_start_kill(const struct vt_start *start)
{
	(void)start;
}

void vt_start_end(struct vt_start *start)
{
	(void)start;
	if (fed_fd >= 0)
		(void)close(fed_fd); /* a socket of which no more is wanted */
	fed_fd = -1;
}
