/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Others may rename around here meanwhile: whoever may write to the place that private folders are
 * made in, such as another call of the same user's. So nothing is done by a path. Making: what was
 * made is opened, and what was opened must be new as far as it matters, that is empty and the
 * caller's. From then on the folder is its descriptor, for the rules and the working directory too.
 *
 * Removing: all that is removed lies in a folder which is the private one, or was opened by its
 * name in such a folder, through no link. Of a way up by ".." that holds only if it leads to the
 * very folder that the way down came from: a folder that was moved meanwhile has another parent,
 * which nobody wants emptied. The number of an inode that is gone may be another's by then: but to
 * move a folder into that one takes the right to write there, and so to empty it oneself.
 *
 * What is left to somebody who moves a folder away while it is being emptied: what is put into it
 * at its new place goes too. It was in the private folder when it was opened, so that whoever moved
 * it could have removed it as well. Where there is Landlock, vt_scratch_confine() ends that: the
 * kernel looks where a file lies when it is to be removed.
 */
#include "kernel/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/caps.h"
#include "kernel/closed.h"
#include "kernel/landlock.h"
#include "uapi/dirent.h"
#include "uapi/landlock.h"

/* ---- making -------------------------------------------------------------------------------- */

static const char *last_name(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

/* The folder around it. */
static int open_place(const char *path)
{
	size_t len = (size_t)(last_name(path) - path);
	char place[PATH_MAX];

	if (len == 0 || len >= sizeof(place)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(place, path, len);
	place[len] = '\0';
	return open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static bool is_empty(int fd)
{
	_Alignas(struct linux_dirent64) char buffer[1024];
	long got;

	while ((got = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0) {
		for (long i = 0; i < got;) {
			const struct linux_dirent64 *entry =
				(const struct linux_dirent64 *)(buffer + i);

			if (!is_dots(entry->name))
				return false;
			i += entry->size;
		}
	}
	return got == 0;
}

/* Whether a folder that was opened can be the one that was just made. 0 or an errno. */
static int judge_new(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return errno;
	return st.st_uid == geteuid() && (st.st_mode & ACCESSPERMS) == 0700 && is_empty(fd)
		       ? 0
		       : ESTALE;
}

static int give(int fd, uid_t uid, gid_t gid)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return errno;
	if ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0)
		return errno;
	return 0;
}

int vt_scratch_make(const char *path, uid_t uid, gid_t gid, int *ret_place, struct vt_err *err)
{
	const char *name = last_name(path);
	AUTO_CLOSE int place = open_place(path);

	(void)umask(077); /* the caller's may be anything; returns it, cannot fail */
	if (place < 0 || mkdirat(place, name, 0700) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the private folder", path);
	AUTO_CLOSE int fd = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *what = "find the private folder that was made at";
	int num = fd < 0 ? errno : judge_new(fd);

	if (num == 0) {
		what = "give out the private folder";
		num = give(fd, uid, gid);
	}
	if (num) {
		/* whatever it is, if it is empty; and the failure is what is told */
		(void)unlinkat(place, name, AT_REMOVEDIR);
		return vt_fail_at(err, VT_STEP_MOUNTS, num, what, path);
	}
	*ret_place = vt_fd_take(&place);
	return vt_fd_take(&fd);
}

int vt_scratch_find(const char *path, uid_t uid, int *ret_place)
{
	AUTO_CLOSE int place = open_place(path);
	AUTO_CLOSE int fd = place < 0 ? -1 : vt_closed_open(place, last_name(path));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != uid)
		return -EPERM;
	*ret_place = vt_fd_take(&place);
	return vt_fd_take(&fd);
}

/* ---- removing ------------------------------------------------------------------------------ */

static bool unlink_any(int at, const char *name)
{
	return unlinkat(at, name, 0) == 0 || unlinkat(at, name, AT_REMOVEDIR) == 0;
}

/* Whether the entry is gone. A folder with something in it is opened as *ret_folder instead. */
static bool remove_one(int at, const char *name, int *ret_folder)
{
	if (unlink_any(at, name))
		return true;
	/* By the descriptor: in a folder that cannot be searched not even "." is found. */
	if (errno == EACCES && fchmod(at, 0700) == 0 && unlink_any(at, name))
		return true;
	*ret_folder = vt_closed_open(at, name);
	return false;
}

enum {
	REMEMBERED = 1024,
	MAX_FRUITLESS = 8, /* ways up in a row, without anything removed between them */
};

/*
 * The folders above: which they are, and where the reading of each goes on, since to begin anew
 * after each folder in one would take the square of their number. Of those that are further up than
 * this all is forgotten, and the way to them is the one from the top; it takes as many folders each
 * time to make that happen.
 */
struct removal {
	int top; /* the private folder; borrowed */
	struct {
		dev_t dev;
		ino_t ino;
		off_t place;
	} way[REMEMBERED];
	unsigned depth, known;
	unsigned fruitless;
};

/* Of the folder that the way leads down from. */
static void remember(struct removal *removal, const struct stat *st, off_t place)
{
	const unsigned i = removal->depth++ % REMEMBERED;

	removal->way[i].dev = st->st_dev;
	removal->way[i].ino = st->st_ino;
	removal->way[i].place = place;
	if (removal->known < REMEMBERED)
		removal->known++;
}

static int open_top(const struct removal *removal)
{
	return fcntl(removal->top, F_DUPFD_CLOEXEC, 3);
}

/* The folder around, if it is the one that the way down came from; else -1. */
static int open_remembered(struct removal *removal, int at, off_t *ret_place)
{
	struct stat st;

	removal->depth--;
	if (removal->known == 0)
		return -1;
	removal->known--;
	const unsigned i = removal->depth % REMEMBERED;
	AUTO_CLOSE int up = removal->depth == 0
				    ? open_top(removal)
				    : openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (up < 0 || fstat(up, &st) < 0 || st.st_dev != removal->way[i].dev ||
	    st.st_ino != removal->way[i].ino)
		return -1;
	*ret_place = removal->way[i].place;
	return vt_fd_take(&up);
}

/*
 * Up by one, or to the beginning where that cannot be trusted. So also where something would not
 * go: it may lie elsewhere by now.
 */
static int climb(struct removal *removal, int at, bool left, off_t *ret_place)
{
	int up = left ? -1 : open_remembered(removal, at, ret_place);

	removal->fruitless++;
	if (up >= 0)
		return up;
	removal->depth = removal->known = 0;
	*ret_place = 0;
	return open_top(removal);
}

/*
 * Removes what is in a folder from *place on, up to the first one in it that is not empty, which is
 * returned, and *place is its own; -1: there is none. *ret_left says whether something was left
 * that would not go.
 */
static int remove_entries(struct removal *removal, int at, off_t *place, bool *ret_left)
{
	_Alignas(struct linux_dirent64) char buffer[4096];
	long got;

	*ret_left = false;
	if (lseek(at, *place, SEEK_SET) < 0)
		return -1;
	while ((got = syscall(SYS_getdents64, at, buffer, sizeof(buffer))) > 0) {
		for (long i = 0; i < got;) {
			const struct linux_dirent64 *entry =
				(const struct linux_dirent64 *)(buffer + i);
			int folder = -1;

			i += entry->size;
			if (is_dots(entry->name))
				;
			else if (remove_one(at, entry->name, &folder))
				removal->fruitless = 0;
			else if (folder >= 0)
				return folder;
			else
				*ret_left = true;
			*place = entry->next;
		}
	}
	return -1;
}

/* Down into a folder of this one. */
static bool descend(struct removal *removal, int at, off_t *place)
{
	struct stat st;

	if (fstat(at, &st) < 0)
		return false;
	remember(removal, &st, *place);
	*place = 0;
	return true;
}

/*
 * Down into each folder, and up again when it is empty: one descriptor, however deep a cell went. A
 * folder is empty when a reading from its beginning says so: in some file systems places move as
 * entries go.
 */
static void empty(int fd)
{
	struct removal removal = { .top = fd };
	int at = open_top(&removal);
	off_t place = 0;

	(void)fchmod(fd, 0700); /* the cell may have closed it; if not, the removals tell */
	while (at >= 0 && removal.fruitless < MAX_FRUITLESS) {
		bool left, whole = place == 0;
		int next = remove_entries(&removal, at, &place, &left);

		if (next < 0 && !left && !whole) {
			place = 0;
			continue;
		}
		if (next >= 0 ? !descend(&removal, at, &place) : removal.depth == 0) {
			vt_fd_close(&next);
			break;
		}
		if (next < 0)
			next = climb(&removal, at, left, &place);
		(void)close(at); /* only read from */
		at = next;
	}
	vt_fd_close(&at);
}

void vt_scratch_remove(int fd, int place, const char *path)
{
	const char *name = last_name(path);
	struct stat own, named;

	empty(fd);
	/* What has its name by now may not be it, and stays. */
	if (fstat(fd, &own) == 0 && fstatat(place, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    own.st_dev == named.st_dev && own.st_ino == named.st_ino)
		(void)unlinkat(place, name, AT_REMOVEDIR); /* what would not go keeps it there */
}

int vt_scratch_confine(int fd, int place, uint64_t rights, struct vt_err *err)
{
	const uint64_t folders = LANDLOCK_ACCESS_FS_REMOVE_DIR;
	const struct vt_landlock_abi handled = { .fs = rights & vt_landlock_write() };

	if (!handled.fs)
		return 0;
	AUTO_CLOSE int ruleset = vt_landlock_new(&handled, err);

	if (ruleset < 0)
		return ruleset;
	int r = vt_landlock_allow_fd(ruleset, fd, folders | LANDLOCK_ACCESS_FS_REMOVE_FILE,
				     "the private folder", err);

	/* An empty folder is all that goes there, and it is the private one. */
	if (r == 0)
		r = vt_landlock_allow_fd(ruleset, place, folders, "its place", err);
	return r < 0 ? r : vt_landlock_enter(ruleset, err);
}

int vt_scratch_discard(const char *path, uid_t uid, bool confine, int patience_ms)
{
	enum { PAUSE_MS = 20 };
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
	const char *name = last_name(path);
	struct stat st;
	struct vt_err err;

	/* What is to go has a name of its own, by which its place is known. */
	if (!*name || is_dots(name))
		return -EINVAL;
	AUTO_CLOSE int place = -1;
	AUTO_CLOSE int fd = vt_scratch_find(path, uid, &place);

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	if (confine && vt_caps_no_new_privs(&err) == 0) {
		int abi = sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

		/* without Landlock there is one wall less */
		(void)vt_scratch_confine(fd, place, vt_landlock_rights(abi).fs, &err);
	}
	for (;; patience_ms -= PAUSE_MS) {
		vt_scratch_remove(fd, place, path);
		if (fstatat(place, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : -errno;
		if (patience_ms < PAUSE_MS)
			return -ENOTEMPTY;
		(void)nanosleep(&pause, NULL);
	}
}
