/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "pools.h"

enum { FORKS = 64, FORKS_FILL = 'f' };

static bool take_all(int fd, void *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t got = recv(fd, (char *)bytes + at, len - at, 0);

		if (got <= 0)
			return false;
		at += (size_t)got;
	}
	return true;
}

static bool give_all(int fd, const void *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t sent = send(fd, (const char *)bytes + at, len - at, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		at += (size_t)sent;
	}
	return true;
}

/* Whether this is the mate, which has the other end. */
static bool split(struct mate *mate)
{
	return split_off(&mate->pid, &mate->fd);
}

void echo_open(struct mate *mate)
{
	char bytes[MESSAGE_BYTES];

	if (!split(mate))
		return;
	while (take_all(mate->fd, bytes, sizeof(bytes)) && give_all(mate->fd, bytes, sizeof(bytes)))
		;
	_exit(0);
}

/* Hands each message on to the other side, as long as there are two. */
static void hand_on(int one, int other)
{
	int ends[] = { one, other }, set = epoll_create1(EPOLL_CLOEXEC);
	char bytes[MESSAGE_BYTES];

	for (uint32_t i = 0; i < 2; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, ends[i], &event) < 0)
			_exit(125);
	}
	for (struct epoll_event event; epoll_wait(set, &event, 1, -1) == 1;)
		if (!take_all(ends[event.data.u32], bytes, sizeof(bytes)) ||
		    !give_all(ends[!event.data.u32], bytes, sizeof(bytes)))
			return;
}

void relay_open(struct mate *mate)
{
	struct mate echo;

	if (!split(mate))
		return;
	echo_open(&echo);
	hand_on(mate->fd, echo.fd);
	mate_close(&echo);
	_exit(0);
}

/* ---- the same with a process of its own for each message ----------------------------------- */

struct forks {
	struct mate items[FORKS];
	unsigned left; /* of them have had no message */
};

/* Those that have answered go only now, where nobody waits for them. */
static void fill(struct forks *forks)
{
	for (; forks->left < FORKS; forks->left++) {
		struct mate *mate = &forks->items[forks->left];

		if (mate->pid > 0) {
			(void)close(mate->fd); /* which ends it */
			(void)await(mate->pid);
		}
		echo_open(mate);
	}
}

static bool hand_to_fork(struct forks *forks, int set, char *bytes)
{
	struct mate *mate = &forks->items[--forks->left];
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(set, EPOLL_CTL_ADD, mate->fd, &event) == 0 &&
	       give_all(mate->fd, bytes, MESSAGE_BYTES) && epoll_wait(set, &event, 1, -1) == 1 &&
	       take_all(mate->fd, bytes, MESSAGE_BYTES);
}

void forks_open(struct mate *mate)
{
	struct forks forks = { 0 };
	struct epoll_event event = { .events = EPOLLIN };
	char bytes[MESSAGE_BYTES];

	if (!split(mate))
		return;
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, mate->fd, &event) < 0)
		_exit(125);
	fill(&forks);
	while (epoll_wait(set, &event, 1, -1) == 1 && take_all(mate->fd, bytes, sizeof(bytes))) {
		if (bytes[0] == FORKS_FILL)
			fill(&forks);
		else if (forks.left == 0 || !hand_to_fork(&forks, set, bytes))
			_exit(125);
		if (!give_all(mate->fd, bytes, sizeof(bytes)))
			break;
	}
	_exit(0); /* and they with it */
}

void forks_fill(struct mate *mate)
{
	char bytes[MESSAGE_BYTES] = { FORKS_FILL };

	if (!give_all(mate->fd, bytes, sizeof(bytes)) || !take_all(mate->fd, bytes, sizeof(bytes)))
		die("the process that forks is gone");
}

/* ---- what is timed ------------------------------------------------------------------------- */

int64_t echo_time(struct mate *mate)
{
	char bytes[MESSAGE_BYTES] = "";
	int64_t begin = vt_clock_now();

	if (!give_all(mate->fd, bytes, sizeof(bytes)) || !take_all(mate->fd, bytes, sizeof(bytes)))
		die("the process that echoes is gone");
	return vt_clock_now() - begin;
}

/* Where things are copied to. */
static char *copies[2];

/*
 * All of it is touched, so that no page is new while the clock runs. Processes that are forked
 * later do not inherit it: their page tables would be copied, and they are what vitro is compared
 * with.
 */
static char *touched(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);

	if (memory == MAP_FAILED || madvise(memory, bytes, MADV_DONTFORK) < 0)
		die("map what is copied: %s", strerror(errno));
	memset(memory, 'x', bytes);
	return memory;
}

void copy_open(struct mate *mate, size_t bytes)
{
	size_t wanted;

	if (!split(mate)) {
		for (int i = 0; i < 2 && !copies[i]; i++)
			copies[i] = touched(bytes);
		return;
	}
	char *memory = touched(bytes);

	while (take_all(mate->fd, &wanted, sizeof(wanted)) && wanted <= bytes &&
	       give_all(mate->fd, memory, wanted))
		;
	_exit(0);
}

int64_t copy_time(struct mate *mate, size_t bytes)
{
	int64_t begin = vt_clock_now();

	if (!give_all(mate->fd, &bytes, sizeof(bytes)) || !take_all(mate->fd, copies[0], bytes))
		die("the process that copies is gone");
	memcpy(copies[1], copies[0], bytes);
	int64_t end = vt_clock_now();

	/* looked at, or a compiler would see that nobody needs it */
	if (copies[1][bytes - 1] != 'x')
		die("the copy is none");
	return end - begin;
}

void mate_close(struct mate *mate)
{
	(void)close(mate->fd); /* which ends it */
	(void)await(mate->pid);
}
