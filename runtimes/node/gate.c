/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "launch/writable.h"
#include "uapi/landlock.h"

#define EXPORTED __attribute__((visibility("default")))

struct inode {
	uint64_t dev, ino;
};

struct places {
	char **paths;
	struct inode *inodes;
	size_t path_count, inode_count;
};

/* Written before it is shut, and read by all threads from then on. */
static struct {
	struct places writable;
	struct places readable; /* of bare cells, where the zygote sees more than these do */
	dev_t proc;             /* what fds_fd is of */
	int fds_fd;             /* /proc/self/fd */
	atomic_bool is_shut;
	atomic_flag is_held;
	char held[PATH_MAX + 64];
} gate = { .is_held = ATOMIC_FLAG_INIT };

static _Thread_local bool is_exempt;

static int add_path(void *user, const char *path)
{
	struct places *places = user;
	char **more = reallocarray(places->paths, places->path_count + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	places->paths = more;
	places->paths[places->path_count] = strdup(path);
	return places->paths[places->path_count++] ? 0 : -ENOMEM;
}

static int add_inode(void *user, uint64_t dev, uint64_t ino)
{
	struct places *places = user;
	struct inode *more = reallocarray(places->inodes, places->inode_count + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	places->inodes = more;
	places->inodes[places->inode_count++] = (struct inode){ dev, ino };
	return 0;
}

/* A bare cell's rules are all that it can open. Where it has none, everything is open to it, too.
 */
static int list_readable(const struct vt_plan *plan, struct places *places)
{
	int r = 0;

	for (size_t i = 0; r == 0 && plan->bare && i < plan->landlock_rule_count; i++) {
		const struct vt_landlock_rule *rule = &plan->landlock_rules[i];

		if (rule->scratch || !(rule->rights & LANDLOCK_ACCESS_FS_READ_FILE))
			continue;
		r = add_path(places, rule->to);
		if (r == 0)
			r = add_inode(places, rule->dev, rule->ino);
	}
	return r;
}

int vt_node_gate_shut(const struct vt_plan *plan, int fds_fd)
{
	struct stat st;
	int r = vt_writable_list(plan,
				 &(struct vt_writable){ add_path, add_inode, &gate.writable });

	if (r == 0)
		r = list_readable(plan, &gate.readable);
	if (r == 0 && fstat(fds_fd, &st) < 0)
		r = -errno;
	if (r < 0)
		return r;
	gate.fds_fd = fds_fd;
	gate.proc = st.st_dev;
	atomic_store(&gate.is_shut, gate.writable.path_count > 0);
	return gate.writable.path_count > 0;
}

void vt_node_gate_exempt(void)
{
	is_exempt = true;
}

void vt_node_gate_open(void)
{
	atomic_store(&gate.is_shut, false);
}

static bool is_shut(void)
{
	return atomic_load(&gate.is_shut) && !is_exempt;
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

static bool is_place(const struct places *places, const char *path)
{
	struct stat st;

	for (size_t i = 0; i < places->path_count; i++)
		if (strcmp(path, places->paths[i]) == 0)
			return true;
	if (stat(path, &st) < 0)
		return false; /* it was removed meanwhile: what is around it counts */
	for (size_t i = 0; i < places->inode_count; i++)
		if (st.st_dev == places->inodes[i].dev && st.st_ino == places->inodes[i].ino)
			return true;
	return false;
}

/* Whether a path without links on it is one of the places, or lies in one. */
static bool lies_in(const struct places *places, const char *path)
{
	char part[PATH_MAX];

	(void)snprintf(part, sizeof(part), "%s", path); /* fits */
	for (char *slash; *part; *slash = '\0') {
		if (is_place(places, part))
			return true;
		slash = strrchr(part, '/');
	}
	return is_place(places, "/");
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

static bool hold_path(const char *path, const char *why)
{
	char text[PATH_MAX + 64];

	(void)snprintf(text, sizeof(text), "'%s' %s", path, why);
	hold(text);
	return false;
}

/* Of which process a file of proc is, by its number there, or 0: of none. */
static long find_process(const char *path)
{
	for (; (path = strchr(path, '/')); path++)
		if (path[1] >= '0' && path[1] <= '9')
			return strtol(path + 1, NULL, 10);
	return 0;
}

/*
 * Whether what was opened may be. A pipe or the like has no path. A link that a call made can lead
 * to what calls have elsewhere: by the proc of one that runs, to its words, its memory and its own
 * mounts, where a path means something else; and of bare cells to their private folders, and to
 * what the caller keeps from them.
 */
static bool may_pass(int fd)
{
	char path[PATH_MAX];
	struct statfs fs;
	struct stat st, named;

	find_path(fd, path);
	if (*path && *path != '/')
		return true;
	if (!*path || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return hold_path(path, "cannot be told from what calls may write");
	const long process = fs.f_type == PROC_SUPER_MAGIC ? find_process(path) : 0;

	if (process == getpid() && st.st_dev == gate.proc) /* numbers in a hull's proc are others */
		return true;
	if (lies_in(&gate.writable, path))
		return hold_path(path, "lies where calls may write");
	if (process)
		return hold_path(path, "is of a process, which could be a call's");
	if (stat(path, &named) < 0 || st.st_dev != named.st_dev || st.st_ino != named.st_ino)
		return hold_path(path, "lies elsewhere, which calls could have written");
	return !gate.readable.path_count || lies_in(&gate.readable, path);
}

/* ---- libc's functions ----------------------------------------------------------------------- */

/* It does not wait for who writes to a pipe that a call could have made. */
static int open_shut(int at, const char *path, int flags, mode_t mode)
{
	const int more = flags & O_PATH ? 0 : O_NONBLOCK;
	int fd = (int)syscall(SYS_openat, at, path, flags | more, mode);

	if (fd < 0)
		return fd;
	if (may_pass(fd) && (!more || flags & O_NONBLOCK || fcntl(fd, F_SETFL, flags) == 0))
		return fd;
	(void)close(fd);
	errno = EACCES;
	return -1;
}

static int open_at(int at, const char *path, int flags, va_list words)
{
	bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
	mode_t mode = makes ? (mode_t)va_arg(words, unsigned int) : 0;

	flags |= O_LARGEFILE;
	return is_shut() ? open_shut(at, path, flags, mode)
			 : (int)syscall(SYS_openat, at, path, flags, mode);
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

/* Whether what has that name may be opened; errno says why not. Where there is nothing, all may. */
static bool may_open(const char *path, int flags)
{
	AUTO_CLOSE int fd = is_shut() ? (int)syscall(SYS_openat, AT_FDCWD, path,
						     flags | O_PATH | O_CLOEXEC)
				      : -1;

	if (fd < 0 || may_pass(fd))
		return true;
	errno = EACCES;
	return false;
}

static FILE *open_stream(const char *path, const char *mode)
{
	FILE *(*libc_fopen)(const char *, const char *);

	*(void **)&libc_fopen = dlsym(RTLD_NEXT, "fopen64"); /* as POSIX has it */
	FILE *stream = may_open(path, 0) ? libc_fopen(path, mode) : NULL;

	if (!stream || !is_shut() || may_pass(fileno(stream)))
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

/* Names in what calls can write are no code; those in what they cannot read are the caller's. */
static bool may_list(const char *path)
{
	char real[PATH_MAX];
	AUTO_CLOSE int fd = is_shut() && gate.readable.path_count
				    ? (int)syscall(SYS_openat, AT_FDCWD, path,
						   O_PATH | O_DIRECTORY | O_CLOEXEC)
				    : -1;

	if (fd < 0)
		return true;
	find_path(fd, real);
	if (lies_in(&gate.readable, real))
		return true;
	errno = EACCES;
	return false;
}

EXPORTED DIR *opendir(const char *path)
{
	DIR *(*libc_opendir)(const char *);

	*(void **)&libc_opendir = dlsym(RTLD_NEXT, "opendir");
	return may_list(path) ? libc_opendir(path) : NULL;
}

EXPORTED int scandir64(const char *path, struct dirent64 ***list,
		       int (*choose)(const struct dirent64 *),
		       int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	int (*libc_scandir)(const char *, struct dirent64 ***, int (*)(const struct dirent64 *),
			    int (*)(const struct dirent64 **, const struct dirent64 **));

	*(void **)&libc_scandir = dlsym(RTLD_NEXT, "scandir64");
	return may_list(path) ? libc_scandir(path, list, choose, compare) : -1;
}

/* What a library brings along is opened by the loader, which nobody stands before. */
EXPORTED void *dlopen(const char *file, int flags)
{
	static const char nowhere[] =
		"/dev/null/nowhere"; /* so that dlerror() has something to say */
	void *(*libc_dlopen)(const char *, int);
	bool held = file && strchr(file, '/') && is_shut();

	*(void **)&libc_dlopen = dlsym(RTLD_NEXT, "dlopen");
	if (held)
		hold("it loads a native addon, whose libraries could lie where calls may write");
	return libc_dlopen(held ? nowhere : file, flags);
}

static const char starts[] =
	"it starts a program, which could read what lies where calls may write";

/* A program would open what it likes, and could be one that a call wrote. */
EXPORTED pid_t fork(void)
{
	pid_t (*libc_fork)(void);

	*(void **)&libc_fork = dlsym(RTLD_NEXT, "fork");
	if (!is_shut())
		return libc_fork();
	hold(starts);
	errno = EACCES;
	return -1;
}

/* In the zygote's place: process.execve(). */
EXPORTED int execve(const char *path, char *const words[], char *const environment[])
{
	if (!is_shut())
		return (int)syscall(SYS_execve, path, words, environment);
	hold(starts);
	errno = EACCES;
	return -1;
}

/* What is moved or linked to somewhere else lies there. */
EXPORTED int rename(const char *from, const char *to)
{
	return may_open(from, O_NOFOLLOW) ? renameat(AT_FDCWD, from, AT_FDCWD, to) : -1;
}

EXPORTED int link(const char *from, const char *to)
{
	return may_open(from, O_NOFOLLOW) ? linkat(AT_FDCWD, from, AT_FDCWD, to, 0) : -1;
}
