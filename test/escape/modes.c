/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes, owners, attributes and times of a file that a cell may not write, by every road to it.
 * Where no mount keeps the file away, somebody has to look where each of these leads.
 */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { RACE_MS = 400 };

/* argv: a file */
static int mode_absolute(int argc, char **argv)
{
	(void)argc;
	if (chmod(argv[1], 0644) < 0)
		return denied(errno, "chmod %s", argv[1]);
	return reached("changed the mode of %s", argv[1]);
}

static int times_absolute(int argc, char **argv)
{
	(void)argc;
	if (utimensat(AT_FDCWD, argv[1], NULL, AT_SYMLINK_NOFOLLOW) < 0)
		return denied(errno, "utimensat %s", argv[1]);
	return reached("changed the times of %s", argv[1]);
}

/* argv: a folder that may be written, a file */
static int mode_symlink(int argc, char **argv)
{
	const char *link = join(argv[1], "planted");
	int err;

	(void)argc;
	if (symlink(argv[2], link) < 0)
		return broken("symlink %s", link);
	err = chmod(link, 0644) < 0 ? errno : 0;
	unlink(link);
	return err ? denied(err, "chmod %s", link) : reached("changed the mode of %s", argv[2]);
}

/* The folder that it lies in, by a link. argv: a folder that may be written, one that may not */
static int times_symlink(int argc, char **argv)
{
	const char *link = join(argv[1], "planted");
	int err;

	(void)argc;
	if (symlink(argv[2], link) < 0)
		return broken("symlink %s", link);
	err = utimensat(AT_FDCWD, join(link, "file"), NULL, 0) < 0 ? errno : 0;
	unlink(link);
	return err ? denied(err, "utimensat %s", link) : reached("changed times in %s", argv[2]);
}

/* argv: a folder that may be written, a path from there */
static int mode_dotdot(int argc, char **argv)
{
	int folder = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)argc;
	if (folder < 0)
		return broken("open %s", argv[1]);
	if (fchmodat(folder, argv[2], 0644, 0) < 0)
		return denied(errno, "fchmodat %s", argv[2]);
	return reached("changed the mode of %s", argv[2]);
}

/* argv: a file that may be read */
static int mode_descriptor(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);

	(void)argc;
	if (fd < 0)
		return broken("open %s", argv[1]);
	if (fchmod(fd, 0644) < 0)
		return denied(errno, "fchmod %s", argv[1]);
	return reached("changed the mode of %s", argv[1]);
}

static int times_descriptor(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);

	(void)argc;
	if (fd < 0)
		return broken("open %s", argv[1]);
	if (futimens(fd, NULL) < 0)
		return denied(errno, "futimens %s", argv[1]);
	return reached("changed the times of %s", argv[1]);
}

/* As libc changes the mode of a descriptor that is good for nothing else. argv: a file */
static int mode_proc_fd(int argc, char **argv)
{
	int fd = open(argv[1], O_PATH | O_CLOEXEC);
	char path[64];

	(void)argc;
	if (fd < 0)
		return denied(errno, "open %s", argv[1]);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* fits */
	if (chmod(path, 0644) < 0)
		return denied(errno, "chmod %s", path);
	return reached("changed the mode of %s", argv[1]);
}

/* argv: a file */
static int mode_proc_root(int argc, char **argv)
{
	char path[PATH_MAX];

	(void)argc;
	(void)snprintf(path, sizeof(path), "/proc/%d/root%s", getppid(), argv[1]); /* fits */
	if (chmod(path, 0644) < 0)
		return denied(errno, "chmod %s", path);
	return reached("changed the mode of %s", argv[1]);
}

/* A change that changes no owner, and takes away a file's capabilities. argv: a file */
static int owner_absolute(int argc, char **argv)
{
	(void)argc;
	if (chown(argv[1], (uid_t)-1, (gid_t)-1) < 0)
		return denied(errno, "chown %s", argv[1]);
	return reached("changed %s", argv[1]);
}

/* The same. argv: a file that may be read */
static int owner_descriptor(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);

	(void)argc;
	if (fd < 0)
		return broken("open %s", argv[1]);
	if (fchown(fd, (uid_t)-1, (gid_t)-1) < 0)
		return denied(errno, "fchown %s", argv[1]);
	return reached("changed %s", argv[1]);
}

/* argv: a file that everybody may write */
static int attribute_absolute(int argc, char **argv)
{
	(void)argc;
	if (setxattr(argv[1], "user.vitro", "x", 1, 0) < 0)
		return denied(errno, "setxattr %s", argv[1]);
	(void)removexattr(argv[1], "user.vitro"); /* else it goes with the file */
	return reached("set an attribute of %s", argv[1]);
}

/* Until the pipe's other end is closed: where signals are denied, nobody could end it. */
static void swap_on(int pipe_fd, const char *one, const char *other)
{
	struct pollfd end = { .fd = pipe_fd };

	while (poll(&end, 1, 0) == 0)
		(void)syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other,
			      2 /* RENAME_EXCHANGE */);
}

static int race(const char *path, const char *target)
{
	struct timespec now, began;
	struct stat st;
	int tries = 0;

	if (stat(target, &st) < 0 || clock_gettime(CLOCK_MONOTONIC, &began) < 0)
		return broken("stat %s", target);
	const mode_t old = st.st_mode & 0777, new = old ^ 0100;

	do {
		(void)chmod(path, new); /* what it hit is seen below */
		(void)sched_yield();    /* on one CPU the other would not get to it */
		tries++;
		if (stat(target, &st) == 0 && (st.st_mode & 0777) == new) {
			(void)chmod(target, old);
			return reached("changed the mode of %s at try %d", target, tries);
		}
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000 <
		 RACE_MS);
	return denied(0, "%d tries hit nothing", tries);
}

/*
 * A folder and a link take each other's name all the time. argv: a folder that may be written, one
 * that may only be read
 */
static int mode_race(int argc, char **argv)
{
	char folder[PATH_MAX], link[PATH_MAX], path[PATH_MAX + 8];

	(void)argc;
	(void)snprintf(folder, sizeof(folder), "%s/swapped", argv[1]); /* these fit */
	(void)snprintf(link, sizeof(link), "%s/lure", argv[1]);
	(void)snprintf(path, sizeof(path), "%s/file", folder);
	if (mkdir(folder, 0755) < 0 || symlink(argv[2], link) < 0)
		return broken("make %s", folder);
	int ends[2];
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	pid_t child = fd < 0 || pipe(ends) < 0 ? -1 : fork();

	if (child < 0)
		return broken("begin in %s", folder);
	if (child == 0) {
		(void)close(ends[1]);
		swap_on(ends[0], folder, link);
		_exit(0);
	}
	(void)close(ends[0]);
	int result = race(path, join(argv[2], "file"));

	(void)close(ends[1]);
	(void)waitpid(child, NULL, 0);
	/* One of them is the link, whichever, and is taken away first. */
	const char *left = unlink(link) == 0 ? folder : link;

	(void)unlink(folder);
	(void)unlink(join(left, "file"));
	(void)rmdir(left);
	return result;
}

const struct act mode_acts[] = {
	{ "mode_absolute", "chmod of a path", "changes a file's mode", mode_absolute },
	{ "times_absolute", "utimensat of a path", "changes a file's times", times_absolute },
	{ "mode_symlink", "chmod of a planted link", "changes a file's mode", mode_symlink },
	{ "times_symlink", "utimensat past a planted link", "changes a file's times",
	  times_symlink },
	{ "mode_dotdot", "fchmodat of a path with ..", "changes a file's mode", mode_dotdot },
	{ "mode_descriptor", "fchmod of a file open for reading", "changes a file's mode",
	  mode_descriptor },
	{ "times_descriptor", "futimens of a file open for reading", "changes a file's times",
	  times_descriptor },
	{ "mode_proc_fd", "chmod of /proc/self/fd/N", "changes a file's mode", mode_proc_fd },
	{ "mode_proc_root", "chmod past /proc/PID/root", "changes a file's mode", mode_proc_root },
	{ "owner_absolute", "chown of a path to nobody else", "takes away a file's capabilities",
	  owner_absolute },
	{ "owner_descriptor", "fchown of a file open for reading",
	  "takes away a file's capabilities", owner_descriptor },
	{ "attribute_absolute", "setxattr of a path", "changes a file's attributes",
	  attribute_absolute },
	{ "mode_race", "chmod while a folder becomes a link", "changes a file's mode", mode_race },
	{ NULL }
};
