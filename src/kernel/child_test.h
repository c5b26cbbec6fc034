/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: a body that runs in a child of its own, since it gives up what a test needs to go on.
 * Its checks tell the parent what failed through shared memory: a child may have closed everything
 * else.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/skip_test.h"

enum { CHILD_SAID_BYTES = 4096, CHILD_SKIPS = 77 };

static char *child_said;

static _Noreturn inline void child_fail(const char *file, int line, const char *what, int num)
{
	if (child_said)
		(void)snprintf(child_said, CHILD_SAID_BYTES, "%s:%d: %s (%s)", file, line, what,
			       strerror(num)); /* cut is fine */
	_exit(1);
}

/* A check in a child: a cmocka assertion there would jump into the parent's copy. */
#define MUST(condition)                                                    \
	do {                                                               \
		if (!(condition))                                          \
			child_fail(__FILE__, __LINE__, #condition, errno); \
	} while (0)
#define MUST_FAIL(call, number)                                                                  \
	do {                                                                                     \
		errno = 0;                                                                       \
		if ((call) >= 0 || errno != (number))                                            \
			child_fail(__FILE__, __LINE__, #call " must fail with " #number, errno); \
	} while (0)

/* Runs act(arg) in a child; what it says is a failure of the test. */
static inline void run_child(void (*act)(void *arg), void *arg)
{
	int status;

	child_said = mmap(NULL, CHILD_SAID_BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(child_said, MAP_FAILED);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		act(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	char said[CHILD_SAID_BYTES];

	memcpy(said, child_said, sizeof(said));
	assert_int_equal(munmap(child_said, CHILD_SAID_BYTES), 0);
	child_said = NULL;
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPS)
		SKIP("%s", said);
	if (*said)
		fail_msg("%s", said);
	assert_int_equal(status, 0);
}

static inline void write_own(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	MUST(fd >= 0);
	MUST(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	MUST(close(fd) == 0);
}

/* In a child: root of a user namespace and of a mount namespace that shares nothing, as anybody. */
static inline void become_inner_root(int more_namespaces)
{
	char map[64];
	unsigned uid = geteuid(), gid = getegid();

	int r = unshare(CLONE_NEWUSER | CLONE_NEWNS | more_namespaces);

	/* In an environment that has none on purpose. */
	if (r < 0 && errno == EPERM && getenv("VITRO_TEST_PROTECTED") && child_said) {
		(void)snprintf(child_said, CHILD_SAID_BYTES, "no user namespaces"); /* fits */
		_exit(CHILD_SKIPS);
	}
	MUST(r == 0);
	write_own("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "0 %u 1\n", uid); /* fits */
	write_own("/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "0 %u 1\n", gid); /* fits */
	write_own("/proc/self/gid_map", map);
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}

/* In a child: this system call fails with this errno from now on, as under somebody's filter. */
static inline void deny_call(unsigned number, unsigned num)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | num),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0);
}

/* How many descriptors this process has, the folder that is listed left out. */
static inline int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = -3; /* ".", ".." and the listing's own */

	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	(void)closedir(dir); /* only read from */
	return count;
}

/* A file of /proc/self, as text. */
static inline void read_own(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	MUST(fd >= 0);
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	(void)close(fd); /* only read from */
}

#define NEEDS_ROOT()                                                       \
	do {                                                               \
		if (geteuid() != 0)                                        \
			SKIP("only root can do this");                     \
	} while (0)
