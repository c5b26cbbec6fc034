/* SPDX-License-Identifier: Apache-2.0 */
#include "fork.h"
#include "launch/shared.h"
#include "revive.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of the process that loads this; its header is not needed for one function. */
int uv_loop_fork(struct uv_loop_s *loop);

/* ---- handlers of pthread_atfork() ---------------------------------------------------------- */

enum { HANDLERS = 64 };

static struct {
	void (*in_child[HANDLERS])(void);
	size_t count; /* HANDLERS + 1: there were more */
} handlers;

typedef int register_function(void (*before)(void), void (*in_parent)(void), void (*in_child)(void),
			      void *dso);

/* What pthread_atfork() of every program and library calls. */
__attribute__((visibility("default"))) register_function __register_atfork;

int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void),
		      void *dso)
{
	register_function *real;
	void *found = dlsym(RTLD_NEXT, "__register_atfork");

	if (!found)
		return ENOSYS;
	memcpy(&real, &found, sizeof(real));
	if (in_child && handlers.count < HANDLERS)
		handlers.in_child[handlers.count++] = in_child;
	else if (in_child)
		handlers.count = HANDLERS + 1;
	return real(before, in_parent, in_child, dso);
}

bool vt_node_fork_knows_handlers(void)
{
	/* libuv has one before anything of JavaScript runs. */
	return handlers.count > 0 && handlers.count <= HANDLERS;
}

/* ---- before -------------------------------------------------------------------------------- */

int vt_node_fork_init(struct vt_node_fork *fork)
{
	*fork = (struct vt_node_fork){
		.proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC),
		.maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC),
		.fds_fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	};
	return fork->proc_fd < 0 || fork->maps_fd < 0 || fork->fds_fd < 0 ? -errno : 0;
}

/*
 * "7f00-7f01 rw-p ...", which ends in a NUL in place of its newline. What V8 keeps from forks is
 * for them, too, but for what would be shared.
 */
static int let_inherit(const char *line)
{
	unsigned long from, to;
	char modes[5];

	if (sscanf(line, "%lx-%lx %4s", &from, &to, modes) != 3 || from >= to)
		return -EBADMSG;
	/* What is special (the vdso) refuses; of others the first touch would tell. */
	if (modes[3] != 's')
		(void)madvise((void *)from, to - from, MADV_DOFORK);
	return 0;
}

static int let_inherit_all(int maps_fd)
{
	char text[8192];
	size_t len = 0;
	ssize_t got;

	if (lseek(maps_fd, 0, SEEK_SET) < 0)
		return -errno;
	while ((got = read(maps_fd, text + len, sizeof(text) - len)) > 0) {
		char *line = text, *end;

		len += (size_t)got;
		while ((end = memchr(line, '\n', len - (size_t)(line - text)))) {
			*end = '\0';
			int r = let_inherit(line);

			if (r < 0)
				return r;
			line = end + 1;
		}
		len -= (size_t)(line - text);
		if (len == sizeof(text))
			return -E2BIG; /* no path is that long */
		memmove(text, line, len);
	}
	return got < 0 ? -errno : 0;
}

/*
 * By the rings that libuv has for io_uring (Node 22 and newer) a call could have the kernel do
 * things in the name of its zygote, outside of all cells. uv_loop_fork() does without them.
 */
static int keep_from_forks(void *unused, const struct vt_shared *piece)
{
	(void)unused;
	return madvise((void *)piece->from, piece->to - piece->from, MADV_DONTFORK) < 0 ? -errno
											: 0;
}

static int find_events(struct vt_node_fork *fork)
{
	int fd = fcntl(fork->fds_fd, F_DUPFD_CLOEXEC, 4);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char target[64];
	int r = 0;

	if (!dir)
		return -errno;
	rewinddir(dir);
	fork->event_count = 0;
	while (r == 0 && (entry = readdir(dir))) {
		ssize_t len = readlinkat(fork->fds_fd, entry->d_name, target, sizeof(target) - 1);

		if (len < 0)
			continue;
		target[len] = '\0';
		if (strcmp(target, "anon_inode:[eventfd]") != 0)
			continue;
		if (fork->event_count == VT_NODE_EVENTS)
			r = -E2BIG;
		else
			fork->events[fork->event_count++] = atoi(entry->d_name);
	}
	(void)closedir(dir); /* it was only read */
	return r;
}

int vt_node_fork_prepare(struct vt_node_fork *fork)
{
	int r = find_events(fork);

	if (r == 0 && sigaction(SIGSEGV, NULL, &fork->on_segv) < 0)
		r = -errno;
	if (r == 0)
		r = vt_shared_each(fork->proc_fd, keep_from_forks, NULL);
	/* Last: what is above may have taken memory. */
	return r < 0 ? r : let_inherit_all(fork->maps_fd);
}

/* ---- in the fork --------------------------------------------------------------------------- */

static int place_event(int number)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (fd == number)
		return 0;
	int r = dup3(fd, number, O_CLOEXEC) < 0 ? -errno : 0;

	(void)close(fd); /* of an eventfd: cannot fail */
	return r;
}

int vt_node_fork_wake(const struct vt_node_fork *fork, struct uv_loop_s *loop)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	for (int i = 0; i < fork->event_count; i++) {
		int r = place_event(fork->events[i]);

		if (r < 0)
			return r;
	}
	if (sigaction(SIGSEGV, &fork->on_segv, NULL) < 0 || sigaction(SIGPIPE, &ignore, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < handlers.count; i++)
		handlers.in_child[i]();
	int r = uv_loop_fork(loop);

	return r < 0 ? r : vt_revive_all();
}
