/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/pass.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/fd.h"

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(VT_PASS_MAX * sizeof(int))];
};

/*
 * How many descriptors may be on their way is a count of the user's, and who sends one more is held
 * to his own limit of open files: another cell can have used up that, but not more than its own.
 */
static bool raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int vt_pass_send(int fd, const void *bytes, size_t len, const int *fds, size_t count,
		 struct vt_err *err)
{
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = len };
	union control control = { 0 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (count > VT_PASS_MAX)
		return vt_fail_at(err, VT_STEP_WATCH, EINVAL, "send a message", NULL);
	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	}
	ssize_t sent;

	/* Who left a message of ours unread and went is told of once; then it is as for all who are
	 * gone. */
	do
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (sent < 0 &&
	       (errno == EINTR || errno == ECONNRESET || (errno == ETOOMANYREFS && raise_limit())));
	if (sent != (ssize_t)len)
		return vt_fail_at(err, VT_STEP_WATCH, sent < 0 ? errno : EMSGSIZE, "send a message",
				  NULL);
	return 0;
}

/* Those that there is no place for are closed. */
static void take_fds(struct msghdr *message, int *ret_fds, size_t max)
{
	size_t taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0);
		     at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (taken < max)
				ret_fds[taken++] = fd;
			else
				vt_fd_close(&fd);
		}
	}
}

int vt_pass_take(int fd, void *ret_bytes, size_t len, int *ret_fds, size_t max, int flags,
		 struct vt_err *err)
{
	struct iovec iov = { .iov_base = ret_bytes, .iov_len = len };
	union control control;
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got;

	memset(ret_fds, -1, max * sizeof(int)); /* all bits set is -1 */
	/* Who left a message of ours unread and went is told of once, before his own last words. */
	do
		got = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
	while (got < 0 && (errno == EINTR || errno == ECONNRESET));
	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got < 0)
		return vt_fail_at(err, VT_STEP_WATCH, errno, "take a message", NULL);
	/* A message without a byte looks like the end, and may have brought some all the same. */
	take_fds(&message, ret_fds, max);
	if (got == (ssize_t)len && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 1;
	for (size_t i = 0; i < max; i++)
		vt_fd_close(&ret_fds[i]);
	return got == 0 ? vt_fail_at(err, VT_STEP_WATCH, EPIPE,
				     "take a message: the sender is gone", NULL)
			: vt_fail_at(err, VT_STEP_WATCH, EBADMSG, "take a message", NULL);
}
