/* SPDX-License-Identifier: Apache-2.0 */
#include "client/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum {
	STACK_BYTES = 64 << 10, /* for each of the two */
	ABOVE_ALL_FDS = 16,     /* of those that are given places */
	PATIENCE_MS = 10000,
};

/* Seen by the caller, the go-between and the newborn alike: they share their memory. */
struct birth {
	const char *path;
	char *const *argv;
	int socket;
	char *stack_top; /* the newborn's */
	int pidfd;
	int num; /* the errno of what failed; 0: it runs */
};

/* ---- in the newborn, until it executes: no malloc, no stdio, no locks ----------------------- */

/* What a handler was set for gets its default: a handler would run in the caller's memory. */
static void forget_signals(void)
{
	struct sigaction fallback = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		(void)sigaction(number, &fallback, NULL); /* some cannot be set, nor be handled */
	(void)sigemptyset(&none);                         /* neither of these can fail */
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int close_above(unsigned last)
{
	struct rlimit limit;

	if (syscall(SYS_close_range, last + 1, ~0U, 0) == 0)
		return 0;
	/* Older kernels, and filters of containers: one by one, as many as there can be. */
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max > 1 << 20)
		return -1;
	for (unsigned fd = last + 1; fd < limit.rlim_max; fd++)
		(void)close(fd); /* most are not open */
	return 0;
}

/* As many as it may have: the supervisor would ask for them next. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* less is not more than it may have */
	}
}

static int place_descriptors(int socket)
{
	int moved = fcntl(socket, F_DUPFD_CLOEXEC, ABOVE_ALL_FDS);
	int null = open("/dev/null", O_RDWR);
	int opened = open("/proc/self/exe", O_RDONLY); /* this program's, whose memory it is */
	int program = opened < 0 ? -1 : fcntl(opened, F_DUPFD_CLOEXEC, ABOVE_ALL_FDS);

	if (moved < 0 || null < 0)
		return -1;
	for (int fd = 0; fd < VT_START_SOCKET_FD; fd++)
		if (dup2(null, fd) < 0)
			return -1;
	if (dup2(moved, VT_START_SOCKET_FD) < 0)
		return -1;
	if (program < 0) /* one that may be executed, but not be read */
		return close_above(VT_START_SOCKET_FD);
	return dup2(program, VT_START_PROGRAM_FD) < 0 ? -1 : close_above(VT_START_PROGRAM_FD);
}

__attribute__((no_sanitize_address)) static int be_born(void *arg)
{
	struct birth *birth = arg;

	forget_signals();
	(void)setsid(); /* it leads no group, so it can */
	raise_limit();
	if (place_descriptors(birth->socket) == 0)
		(void)execve(birth->path, birth->argv, environ);
	birth->num = errno;
	_exit(127);
}

/* In the go-between: the newborn's parent, until it has executed its program. */
__attribute__((no_sanitize_address)) static int go_between(void *arg)
{
	struct birth *birth = arg;

	if (clone(be_born, birth->stack_top, CLONE_VM | CLONE_VFORK | CLONE_PIDFD, birth,
		  &birth->pidfd) < 0)
		birth->num = errno;
	_exit(0);
}

/* ---- in the caller -------------------------------------------------------------------------- */

static int fail_start(const char *path, int num, struct vt_err *err)
{
	const char *text = strerrordesc_np(num);

	return vt_fail(err, VT_STEP_WIRE, num, "cannot start '%s': %s", path,
		       text ? text : "unknown error");
}

/* With the go-between the descriptors are shared too, so that the pidfd it gets is the caller's. */
static int give_birth(struct birth *birth)
{
	size_t bytes = (size_t)2 * STACK_BYTES;
	char *stacks = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (stacks == MAP_FAILED)
		return -errno;
	birth->stack_top = stacks + STACK_BYTES;
	pid_t pid = clone(go_between, stacks + bytes, CLONE_VM | CLONE_VFORK | CLONE_FILES, birth);
	int num = pid < 0 ? errno : 0;

	/* It has ended already. Somebody else who waits for everything may have been told. */
	if (pid > 0)
		(void)waitpid(pid, NULL, __WALL);
	(void)munmap(stacks, bytes); /* it is a mapping, so this can be done */
	return -(num ? num : birth->num);
}

/* With fewer it fails later, in ways that say less. */
static int check_limit(struct vt_err *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < VT_START_FILES)
		return vt_fail(
			err, VT_STEP_WIRE, EMFILE,
			"the hard limit of open files (RLIMIT_NOFILE, ulimit -Hn) is %llu: the "
			"supervisor needs at least %d, and more for more cells",
			(unsigned long long)limit.rlim_max, VT_START_FILES);
	return 0;
}

int vt_start_run(const char *path, int socket, struct vt_start *ret_start, struct vt_err *err)
{
	char *argv[] = { (char *)path, (char *)"supervise", NULL };
	struct birth birth = { .path = path, .argv = argv, .socket = socket, .pidfd = -1 };
	sigset_t all, before;
	int cancel, status = check_limit(err);

	if (status < 0)
		return status;
	/* A cancelled thread would end within the others' memory as well. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* cannot fail */
	(void)sigfillset(&all);
	status = -pthread_sigmask(SIG_BLOCK, &all, &before);
	if (status == 0) {
		status = give_birth(&birth);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* it was so before */
	}
	(void)pthread_setcancelstate(cancel, NULL); /* cannot fail */
	if (status < 0) {
		vt_fd_close(&birth.pidfd);
		return fail_start(path, -status, err);
	}
	*ret_start = (struct vt_start){ .pidfd = birth.pidfd, .owner = getpid() };
	return 0;
}

void vt_start_kill(const struct vt_start *start)
{
	if (start->pidfd >= 0 && start->owner == getpid())
		(void)syscall(SYS_pidfd_send_signal, start->pidfd, SIGKILL, NULL, 0);
}

/* Whether it has ended within that time. */
static bool await_end(int pidfd, int64_t ms)
{
	struct pollfd poller = { .fd = pidfd, .events = POLLIN };
	int64_t until = vt_clock_now() + ms * VT_NS_PER_MS, left = ms;

	while (left >= 0) {
		int ready = poll(&poller, 1, (int)left);

		if (ready > 0)
			return true;
		if (ready < 0 && errno != EINTR)
			return false;
		left = (until - vt_clock_now()) / VT_NS_PER_MS;
		if (ready == 0 || left < 0)
			return false;
	}
	return false;
}

void vt_start_end(struct vt_start *start)
{
	siginfo_t info;

	if (start->pidfd < 0)
		return;
	if (start->owner == getpid()) {
		if (!await_end(start->pidfd, PATIENCE_MS)) {
			vt_start_kill(start);
			(void)await_end(start->pidfd, PATIENCE_MS); /* no more can be done */
		}
		/* Only who adopts orphans has it as a child; else there is nothing to reap. */
		(void)waitid(P_PIDFD, (id_t)start->pidfd, &info, WEXITED | WNOHANG | __WALL);
	}
	vt_fd_close(&start->pidfd);
}

/* ---- which program -------------------------------------------------------------------------- */

static bool is_program(const char *path)
{
	return access(path, X_OK) == 0;
}

/* "FOLDER/vitro" for the first folder of PATH that has it. A relative folder is nobody's choice. */
static bool find_on_path(char *path, size_t size)
{
	const char *at = secure_getenv("PATH");

	while (at && *at) {
		size_t len = strcspn(at, ":");

		if (*at == '/' && len + sizeof("/vitro") <= size) {
			(void)snprintf(path, size, "%.*s/vitro", (int)len, at); /* fits */
			if (is_program(path))
				return true;
		}
		at += len;
		at += *at == ':';
	}
	return false;
}

int vt_start_find(char *path, size_t size, struct vt_err *err)
{
	const char *given = secure_getenv("VITRO_BINARY");

	if (given && *given) {
		if (!is_program(given))
			return vt_fail(err, VT_STEP_WIRE, errno,
				       "VITRO_BINARY names '%s', which cannot be executed", given);
	} else if (is_program(VITRO_INSTALLED)) {
		given = VITRO_INSTALLED;
	} else if (find_on_path(path, size)) {
		return 0;
	} else {
		return vt_fail(err, VT_STEP_WIRE, ENOENT,
			       "there is no program 'vitro': neither '%s' nor on PATH; "
			       "install it, or name it by VITRO_BINARY",
			       VITRO_INSTALLED);
	}
	if (strlen(given) >= size)
		return vt_fail(err, VT_STEP_WIRE, ENAMETOOLONG, "VITRO_BINARY is too long");
	(void)strcpy(path, given); /* its length was looked at */
	return 0;
}
