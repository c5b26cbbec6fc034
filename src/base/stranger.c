/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stranger.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "uapi/socket.h"

int vt_stranger_bar(int fd)
{
	return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int)) < 0 ? -errno : 0;
}

void vt_stranger_watch(int fd)
{
	/* A byte out of band is passed over by a peek, and dropped by the read that follows. In
	 * line, it is a byte as any other. */
	(void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &(int){ 1 }, sizeof(int));
}

bool vt_stranger_meet(int fd)
{
	int passes = 1, there = 0;
	socklen_t len = sizeof(passes);

	if (getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &passes, &len) == 0 && !passes)
		return false; /* inherited: nobody could send any */
	if (vt_stranger_bar(fd) == 0 && ioctl(fd, SIOCINQ, &there) == 0 && !there)
		return false; /* nobody had sent any by then */
	vt_stranger_watch(fd);
	return true;
}

/* Whether nothing but descriptors can have been left out of what came. */
static bool tells(int fd)
{
	static const int others[] = { SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD };
	int value = 0;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &len) < 0 || value != AF_UNIX)
		return false;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (getsockopt(fd, SOL_SOCKET, others[i], &value, &len) == 0 && value)
			return false;
	return true;
}

ssize_t vt_stranger_recv(int fd, void *to, size_t len, int flags)
{
	struct iovec part = { to, len };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	/* What is only looked at stays in the queue, which holds its descriptors: none is closed.
	 */
	ssize_t seen = recvmsg(fd, &message, flags | MSG_PEEK);

	if (seen <= 0)
		return seen;
	if (message.msg_flags & MSG_CTRUNC && tells(fd)) {
		errno = EBADMSG;
		return -1;
	}
	return recv(fd, to, (size_t)seen, flags);
}
