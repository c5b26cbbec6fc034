/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process between two others costs at the least: copies what comes on descriptor 0 to 1, and
 * what comes on 1 to 0, until one of them ends. Both are sockets.
 */
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static char bytes[1 << 20];

static int copy(int from, int to)
{
	ssize_t got = recv(from, bytes, sizeof(bytes), 0);
	size_t sent = 0;

	while (got > 0 && sent < (size_t)got) {
		ssize_t more = send(to, bytes + sent, (size_t)got - sent, MSG_NOSIGNAL);

		if (more < 0)
			return -1;
		sent += (size_t)more;
	}
	return got > 0 ? 0 : -1;
}

int main(void)
{
	int loop = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };

	for (event.data.fd = 0; event.data.fd < 2; event.data.fd++)
		if (epoll_ctl(loop, EPOLL_CTL_ADD, event.data.fd, &event) < 0)
			return 1;
	while (epoll_wait(loop, &event, 1, -1) == 1)
		if (copy(event.data.fd, 1 - event.data.fd) < 0)
			return 0;
	return 1;
}
