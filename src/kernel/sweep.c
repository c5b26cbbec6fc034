/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/landlock.h"
#include "uapi/dirent.h"
#include "uapi/landlock.h"

/* How many of the cell one look ends by what they descend from; the others are orphans by the next.
 */
enum { MAX_ENDED = 4096 };

/*
 * For signals alone. But the kernel denies what is not mentioned here too: whoever is in a domain
 * moves no file from one folder to another, unless every layer of it says that he may. So this one
 * does, everywhere; the occupant's own says where.
 */
static int enter_domain(struct vt_err *err)
{
	const struct vt_landlock_abi handled = {
		.fs = LANDLOCK_ACCESS_FS_REFER,
		.scoped = LANDLOCK_SCOPE_SIGNAL | LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET,
	};
	AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int ruleset = vt_landlock_new(&handled, err);

	if (ruleset < 0)
		return ruleset;
	int r = vt_landlock_allow_fd(ruleset, root, LANDLOCK_ACCESS_FS_REFER, "/", err);

	return r < 0 ? r : vt_landlock_enter(ruleset, err);
}

int vt_sweep_prepare(enum vt_sweep how, struct vt_err *err)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "become the cell's reaper", NULL);
	if (how == VT_SWEEP_DOMAIN) {
		int r = enter_domain(err);

		if (r < 0)
			return r;
	}
	/* What must be out of reach of a signal to all: tried on the one process that is known. */
	if (how != VT_SWEEP_TREE && (kill(getppid(), 0) == 0 || errno != EPERM))
		return vt_fail_at(err, VT_STEP_SESSION, EPERM, "confine the cell's signals", NULL);
	return 0;
}

/* The decimal number at text; 0 where there is none. */
static pid_t number(const char *text)
{
	long value = 0;

	while (*text >= '0' && *text <= '9' && value < 100000000)
		value = value * 10 + (*text++ - '0');
	return (pid_t)value;
}

/* The parent of a process; 0 where it is gone. Its name, in parentheses, may hold anything. */
static pid_t parent_of(int proc, const char *name)
{
	char path[32], text[512];
	size_t len = strlen(name);

	if (len > 16)
		return 0;
	memcpy(path, name, len);
	memcpy(path + len, "/stat", sizeof("/stat"));
	AUTO_CLOSE int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	for (ssize_t i = got - 1; i >= 0; i--) {
		if (text[i] != ')')
			continue;
		text[got] = '\0';
		return i + 4 < got ? number(text + i + 4) : 0; /* ") S PARENT" */
	}
	return 0;
}

static bool has(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* By a pidfd, looked at again: a number may have become another process's. */
static void end_one(int proc, const char *name, pid_t pid, pid_t parent)
{
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	pid_t now = parent_of(proc, name);

	if (fd >= 0 && (now == parent || now == getpid()))
		(void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL,
			      0); /* the next look tells */
}

/*
 * Ends init's children, whatever a proc that hides processes shows of them: one that is not
 * dumpable is out of its sight. Nobody but init reaps them, so their numbers stay theirs. Where the
 * kernel has no such list, the walk has to do.
 */
static void end_children(void)
{
	char buffer[4096];
	AUTO_CLOSE int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	pid_t pid = 0;
	ssize_t got;

	while (fd >= 0 && (got = read(fd, buffer, sizeof(buffer))) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			if (buffer[i] >= '0' && buffer[i] <= '9' && pid < 100000000) {
				pid = pid * 10 + (buffer[i] - '0');
				continue;
			}
			if (pid > 1)
				(void)kill(pid, SIGKILL); /* the next look tells */
			pid = 0;
		}
	}
}

/*
 * Ends init's children, and theirs as far as they come after their parents, as they do unless the
 * numbers have begun anew. Whoever is missed is init's child once its parent is gone.
 */
static void end_tree(void)
{
	static pid_t ended[MAX_ENDED]; /* too much for a stack; init has but one thread */
	_Alignas(struct linux_dirent64) char buffer[16384];
	AUTO_CLOSE int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t self = getpid();
	size_t count = 0;
	long got;

	while ((got = syscall(SYS_getdents64, proc, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < got;) {
			const struct linux_dirent64 *entry =
				(const struct linux_dirent64 *)(buffer + at);
			pid_t pid = number(entry->name);
			pid_t parent = pid > 0 ? parent_of(proc, entry->name) : 0;

			at += entry->size;
			if (parent <= 0 || (parent != self && !has(ended, count, parent)))
				continue;
			end_one(proc, entry->name, pid, parent);
			if (count < MAX_ENDED)
				ended[count++] = pid;
		}
	}
}

/* Reaps, and waits for it or not. Returns whether there are children yet. */
static bool reap(int options, pid_t wanted, int *ret_status)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL | options)) > 0 || (pid < 0 && errno == EINTR))
		if (pid == wanted)
			*ret_status = status;
	return pid == 0;
}

void vt_sweep(enum vt_sweep how, pid_t wanted, int *ret_status)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (;;) {
		/*
		 * One signal to all: the kernel holds back every fork meanwhile, so that nobody is
		 * missed. It never reaches the sender.
		 */
		if (how != VT_SWEEP_TREE) {
			(void)kill(-1, SIGKILL);
		} else {
			end_tree();
			end_children();
		}
		if (!reap(how == VT_SWEEP_TREE ? WNOHANG : 0, wanted, ret_status))
			return;                /* none is left, and orphans would be ours */
		(void)nanosleep(&pause, NULL); /* those that were told to die need a moment */
	}
}
