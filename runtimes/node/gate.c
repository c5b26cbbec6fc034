/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/path.h"
#include "launch/writable.h"

#define EXPORTED __attribute__((visibility("default")))

struct inode {
	uint64_t dev, ino;
};

/* Written before it is shut, and read by all threads from then on. */
static struct {
	char **paths;
	struct inode *inodes;
	size_t path_count, inode_count;
	int fds_fd; /* /proc/self/fd */
	atomic_bool is_shut;
	atomic_flag is_held;
	char held[PATH_MAX + 64];
} gate = { .is_held = ATOMIC_FLAG_INIT };

static int add_path(void *user, const char *path)
{
	char **more = reallocarray(gate.paths, gate.path_count + 1, sizeof(*more));

	(void)user;
	if (!more)
		return -ENOMEM;
	gate.paths = more;
	gate.paths[gate.path_count] = strdup(path);
	return gate.paths[gate.path_count++] ? 0 : -ENOMEM;
}

static int add_inode(void *user, uint64_t dev, uint64_t ino)
{
	struct inode *more = reallocarray(gate.inodes, gate.inode_count + 1, sizeof(*more));

	(void)user;
	if (!more)
		return -ENOMEM;
	gate.inodes = more;
	gate.inodes[gate.inode_count++] = (struct inode){ dev, ino };
	return 0;
}

int vt_node_gate_shut(const struct vt_plan *plan, int fds_fd)
{
	int r = vt_writable_list(plan, &(struct vt_writable){ add_path, add_inode, NULL });

	gate.fds_fd = fds_fd;
	atomic_store(&gate.is_shut, r == 0 && gate.path_count > 0);
	return r < 0 ? r : gate.path_count > 0;
}

void vt_node_gate_open(void)
{
	atomic_store(&gate.is_shut, false);
}

const char *vt_node_gate_held(void)
{
	if (!gate.held[0])
		return NULL;
	static char held[sizeof(gate.held)];

	memcpy(held, gate.held, sizeof(held));
	gate.held[0] = '\0';
	atomic_flag_clear(&gate.is_held);
	return held;
}

/* ---- what was opened ------------------------------------------------------------------------ */

static bool is_place(const char *path)
{
	struct stat st;

	for (size_t i = 0; i < gate.path_count; i++)
		if (strcmp(path, gate.paths[i]) == 0)
			return true;
	if (stat(path, &st) < 0)
		return errno != ENOENT; /* it was removed meanwhile: what is around it counts */
	for (size_t i = 0; i < gate.inode_count; i++)
		if (st.st_dev == gate.inodes[i].dev && st.st_ino == gate.inodes[i].ino)
			return true;
	return false;
}

/* Whether a path without links on it is a place that calls can write to, or lies in one. */
static bool lies_in_place(char *path)
{
	for (char *slash; *path; *slash = '\0') {
		if (is_place(path))
			return true;
		slash = strrchr(path, '/');
	}
	return is_place("/");
}

/* Where a descriptor leads to, or "" where that cannot be told. */
static void find_path(int fd, char path[PATH_MAX])
{
	char name[16];

	(void)snprintf(name, sizeof(name), "%d", fd); /* fits */
	ssize_t len = readlinkat(gate.fds_fd, name, path, PATH_MAX - 1);

	path[len < 0 || len == PATH_MAX - 1 ? 0 : len] = '\0';
}

/* The first reason is kept. */
static void hold(const char *why)
{
	if (!atomic_flag_test_and_set(&gate.is_held))
		(void)snprintf(gate.held, sizeof(gate.held), "%s", why);
}

/* Whether what was opened may be. A pipe or the like has no path, and
 * what has none that can be told may not. */
static bool may_pass(int fd)
{
	char path[PATH_MAX], why[PATH_MAX + 64];

	find_path(fd, path);
	(void)snprintf(why, sizeof(why), "'%s' lies where calls may write", path);
	if (*path && (*path != '/' || !lies_in_place(path)))
		return true;
	hold(why);
	return false;
}

/* ---- libc's functions ----------------------------------------------------------------------- */

static int open_at(int at, const char *path, int flags, va_list words)
{
	bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
	mode_t mode = makes ? (mode_t)va_arg(words, unsigned int) : 0;

	int fd = (int)syscall(SYS_openat, at, path, flags | O_LARGEFILE, mode);

	if (fd < 0 || !atomic_load(&gate.is_shut) || may_pass(fd))
		return fd;
	(void)close(fd);
	errno = EACCES;
	return -1;
}

#define OPENS(name, at, ...)                                                     \
	EXPORTED int open_as_##name(__VA_ARGS__, int flags, ...) __asm__(#name); \
                                                                                 \
	int open_as_##name(__VA_ARGS__, int flags, ...)                          \
	{                                                                        \
		va_list words;                                                   \
                                                                                 \
		va_start(words, flags);                                          \
		int fd = open_at(at, path, flags, words);                        \
                                                                                 \
		va_end(words);                                                   \
		return fd;                                                       \
	}

OPENS(open, AT_FDCWD, const char *path)
OPENS(open64, AT_FDCWD, const char *path)
OPENS(openat, at, int at, const char *path)
OPENS(openat64, at, int at, const char *path)
/* As programs have them that were built with _FORTIFY_SOURCE. */
OPENS(__open_2, AT_FDCWD, const char *path)
OPENS(__open64_2, AT_FDCWD, const char *path)
OPENS(__openat_2, at, int at, const char *path)
OPENS(__openat64_2, at, int at, const char *path)

static FILE *open_stream(const char *path, const char *mode)
{
	FILE *(*libc_fopen)(const char *, const char *);

	*(void **)&libc_fopen = dlsym(RTLD_NEXT, "fopen64"); /* as POSIX has it */
	FILE *stream = libc_fopen(path, mode);

	if (!stream || !atomic_load(&gate.is_shut) || may_pass(fileno(stream)))
		return stream;
	(void)fclose(stream);
	errno = EACCES;
	return NULL;
}

EXPORTED FILE *open_as_fopen(const char *path, const char *mode) __asm__("fopen");
EXPORTED FILE *open_as_fopen64(const char *path, const char *mode) __asm__("fopen64");

FILE *open_as_fopen(const char *path, const char *mode)
{
	return open_stream(path, mode);
}

FILE *open_as_fopen64(const char *path, const char *mode)
{
	return open_stream(path, mode);
}

/* What a library brings along is opened by the loader, which nobody stands before. */
EXPORTED void *dlopen(const char *file, int flags)
{
	static const char nowhere[] =
		"/dev/null/nowhere"; /* so that dlerror() has something to say */
	void *(*libc_dlopen)(const char *, int);
	bool held = file && strchr(file, '/') && atomic_load(&gate.is_shut);

	*(void **)&libc_dlopen = dlsym(RTLD_NEXT, "dlopen");
	if (held)
		hold("it loads a native addon, whose libraries could lie where calls may write");
	return libc_dlopen(held ? nowhere : file, flags);
}

/* A program would open what it likes, and could be one that a call wrote. */
EXPORTED pid_t fork(void)
{
	pid_t (*libc_fork)(void);

	*(void **)&libc_fork = dlsym(RTLD_NEXT, "fork");
	if (!atomic_load(&gate.is_shut))
		return libc_fork();
	hold("it starts a program, which could read what lies where calls may write");
	errno = EACCES;
	return -1;
}
