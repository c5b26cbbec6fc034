/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "uapi/dirent.h"

int vt_scratch_make(const char *path, uid_t uid, gid_t gid, struct vt_err *err)
{
	struct stat st;

	(void)umask(077); /* the caller's may be anything; returns it, cannot fail */
	if (mkdir(path, 0700) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the private folder", path);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 ||
	    ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0)) {
		int num = errno;

		(void)rmdir(path); /* it is empty, and the failure is what is told */
		return vt_fail_at(err, VT_STEP_MOUNTS, num, "give out the private folder", path);
	}
	return vt_fd_take(&fd);
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* A folder that its owner closed to himself is opened again. */
static int open_folder(int at, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(at, name, flags);

	if (fd < 0 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0)
		fd = openat(at, name, flags);
	return fd;
}

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
	*ret_folder = open_folder(at, name);
	return false;
}

enum {
	REMEMBERED = 1024,
	MAX_FRUITLESS = 8, /* ways up in a row, without anything removed between them */
};

/*
 * Where the reading of the folders above goes on: to begin anew after each folder in one would take
 * the square of their number. Of those that are further up than this the place is forgotten; it
 * takes as many folders each time to make that happen.
 */
struct removal {
	off_t places[REMEMBERED];
	unsigned depth, known;
	unsigned fruitless;
};

static void remember(struct removal *removal, off_t place)
{
	removal->places[removal->depth++ % REMEMBERED] = place;
	if (removal->known < REMEMBERED)
		removal->known++;
}

static off_t recall(struct removal *removal)
{
	removal->depth--;
	removal->fruitless++;
	if (removal->known == 0)
		return 0;
	removal->known--;
	return removal->places[removal->depth % REMEMBERED];
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

/*
 * Down into each folder, and up again by ".." when it is empty: one descriptor, however deep a cell
 * went. Nobody moves folders meanwhile, since the cell is gone. A folder is empty when a reading
 * from its beginning says so: in some file systems places move as entries go.
 */
void vt_scratch_remove(int fd, const char *path)
{
	struct removal removal = { .depth = 0 };
	int at = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	off_t place = 0;

	(void)fchmod(fd, 0700); /* the cell may have closed it; if not, the removals tell */
	while (at >= 0 && removal.fruitless < MAX_FRUITLESS) {
		bool left, whole = place == 0;
		int next = remove_entries(&removal, at, &place, &left);

		if (next < 0 && !left && !whole) {
			place = 0;
			continue;
		}
		if (next >= 0) {
			remember(&removal, place);
			place = 0;
		} else if (left || removal.depth == 0) {
			break;
		} else {
			next = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			place = recall(&removal);
		}
		(void)close(at); /* only read from */
		at = next;
	}
	if (at >= 0)
		(void)close(at); /* only read from */
	(void)rmdir(path);       /* what would not go keeps it there */
}
