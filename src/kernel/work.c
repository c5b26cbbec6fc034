/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "kernel/beneath.h"
#include "kernel/closed.h"

/* An overlay leaves work/incompat/volatile/dirty, and at the worst a file it was about to move. */
enum { MAX_DEPTH = 5 };

void vt_work_init(struct vt_work *work)
{
	*work = (struct vt_work){ .parent_fd = -1, .fd = -1 };
}

static bool is_name(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* On its own open file, whose position nobody else moves. */
static bool is_empty(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool empty = stream;

	if (!stream)
		vt_fd_close(&fd);
	while (empty && (entry = readdir(stream)))
		empty = !is_name(entry->d_name);
	if (stream)
		(void)closedir(stream); /* nothing was written */
	return empty;
}

/*
 * Gives it to the user that the overlay writes as. Whoever may rename in the folder around it may
 * have put another in its place: of an empty one nothing is lost.
 */
static int give(int fd, uid_t uid, gid_t gid)
{
	if (geteuid() == uid && getegid() == gid)
		return 0;
	if (!is_empty(fd))
		return -EAGAIN;
	return fchown(fd, uid, gid) < 0 ? -errno : 0;
}

/*
 * Makes it, opens it and takes the lock. A sweep may come between and remove it: -EAGAIN. Once the
 * lock is held on what is still there, no sweep does.
 */
static int make_locked(int parent, const char *name, uid_t uid, gid_t gid, int *ret_fd)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int num;

	if (mkdirat(parent, name, 0700) < 0)
		return errno == EEXIST ? -EAGAIN : -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 ||
	    fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		num = errno == ENOENT || errno == EWOULDBLOCK ? EAGAIN : errno;
		goto fail;
	}
	num = -give(fd, uid, gid);
	if (num)
		goto fail;
	*ret_fd = vt_fd_take(&fd);
	return 0;
fail:
	(void)unlinkat(parent, name, AT_REMOVEDIR); /* gone already, or the next sweep's */
	return -num;
}

/* Through no link: another cell may write on the way to a folder that this one's grant lies in. */
static int open_folder(const char *folder)
{
	AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int fd = root < 0 ? -1 : vt_beneath_open(root, folder);

	return fd < 0 ? -1 : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int vt_work_make(const char *folder, uid_t uid, gid_t gid, struct vt_work *ret_work,
		 struct vt_err *err)
{
	enum { TRIES = 16 };
	AUTO_CLOSE int parent = open_folder(folder);
	struct vt_work work;
	int r = -EAGAIN;

	if (parent < 0)
		return vt_fail(err, VT_STEP_MOUNTS, errno, "open '%s'", folder);
	vt_work_init(&work);
	for (int i = 0; i < TRIES && r == -EAGAIN; i++) {
		/* The clock's nanoseconds are a serial number without a counter to keep. */
		(void)snprintf(work.name, sizeof(work.name), ".vitro-%d.%lld", (int)getpid(),
			       (long long)vt_clock_now());
		r = make_locked(parent, work.name, uid, gid, &work.fd);
	}
	if (r < 0)
		return vt_fail(err, VT_STEP_MOUNTS, -r, "make a work folder for an overlay in '%s'",
			       folder);
	work.parent_fd = vt_fd_take(&parent);
	*ret_work = work;
	return 0;
}

/* What overlays call what they leave; of a folder that somebody put there nothing else goes. */
static bool is_overlays(const char *name)
{
	static const char *const names[] = { "work", "incompat", "volatile", "dirty" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return name[0] == '#';
}

/* Removes a name, and what overlays leave if it is a folder. */
static bool remove_name(int parent, const char *name, int depth)
{
	const struct dirent *entry;

	if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return true;
	if (errno == ENOTDIR)
		return unlinkat(parent, name, 0) == 0;
	if (depth == 0)
		return false;
	int fd = vt_closed_open(parent, name);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (!stream) {
		vt_fd_close(&fd);
		return false;
	}
	while ((entry = readdir(stream)))
		if (is_overlays(entry->d_name))
			(void)remove_name(fd, entry->d_name, depth - 1); /* the end will tell */
	(void)closedir(stream);                                          /* nothing was written */
	return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

int vt_work_remove(struct vt_work *work, struct vt_err *err)
{
	bool gone = work->parent_fd < 0 || remove_name(work->parent_fd, work->name, MAX_DEPTH);
	int num = gone ? 0 : errno;

	vt_fd_close(&work->fd);
	vt_fd_close(&work->parent_fd);
	return gone ? 0 : vt_fail(err, VT_STEP_MOUNTS, num, "remove '%s'", work->name);
}

static bool sweep_one(int parent, const char *name)
{
	AUTO_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && remove_name(parent, name, MAX_DEPTH);
}

int vt_work_sweep(const char *folder)
{
	int fd = open_folder(folder);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int swept = 0;

	if (!stream) {
		vt_fd_close(&fd);
		return 0;
	}
	while ((entry = readdir(stream)))
		if (vt_path_is_numbered(entry->d_name, ".vitro-") &&
		    sweep_one(dirfd(stream), entry->d_name))
			swept++;
	(void)closedir(stream); /* nothing was written */
	return swept;
}
