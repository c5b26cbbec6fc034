/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/held.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "watch/procfs.h"

static uint64_t device(unsigned major, unsigned minor)
{
	return (uint64_t)major << 32 | minor;
}

/* Where it is in the set, or where it would be: ino is 0 there. There always is such a place. */
static size_t find(const struct vt_held *held, uint64_t dev, uint64_t ino)
{
	size_t at = (size_t)((ino ^ dev << 7) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % VT_HELD_FILES;

	while (held->files[at].ino && (held->files[at].ino != ino || held->files[at].dev != dev))
		at = (at + 1) % VT_HELD_FILES;
	return at;
}

/* Adds to the set, and says whether it was new to it. A full set takes everything for new. */
static bool remember(struct vt_held *held, uint64_t dev, uint64_t ino)
{
	size_t at = find(held, dev, ino);

	if (held->files[at].ino)
		return false;
	if (held->count < VT_HELD_FILES * 3 / 4) {
		held->files[at].dev = dev;
		held->files[at].ino = ino;
		held->count++;
	}
	return true;
}

bool vt_held_knows(const struct vt_held *held, unsigned major, unsigned minor, uint64_t ino)
{
	return ino && held->files[find(held, device(major, minor), ino)].ino;
}

/* Of a kernel that does not tell mounts, the device has to do. */
static uint64_t mount_of(const struct statx *st)
{
	return st->stx_mask & STATX_MNT_ID ? st->stx_mnt_id : 0;
}

void vt_held_want_nameless(struct vt_held *held, int folder_fd)
{
	struct statx st;

	/* The descriptor is the supervisor's own, of a folder that was opened: this works. */
	if (statx(folder_fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &st) < 0)
		return;
	held->nameless = true;
	held->dev = device(st.stx_dev_major, st.stx_dev_minor);
	held->mount = mount_of(&st);
}

static bool is_nameless(const struct vt_held *held, const struct statx *st)
{
	/* In an overlay the device of a file is not always that of its folder. */
	bool there = device(st->stx_dev_major, st->stx_dev_minor) == held->dev ||
		     (held->mount && mount_of(st) == held->mount);

	return there && S_ISREG(st->stx_mode) && st->stx_nlink == 0;
}

static bool begins_with(const char *text, size_t len, const char *start)
{
	return len >= strlen(start) && memcmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	return len >= strlen(end) && memcmp(text + len - strlen(end), end, strlen(end)) == 0;
}

static int ask(int dir, const char *name, struct statx *ret_st)
{
	const unsigned wanted = STATX_BASIC_STATS | STATX_MNT_ID;

	if (statx(dir, name, AT_STATX_DONT_SYNC, wanted, ret_st) == 0)
		return 0;
	/* Where a filter denies the call as unknown, libc asks fstatat(), and takes no such flag.
	 */
	if (errno != EINVAL)
		return -errno;
	return statx(dir, name, 0, wanted, ret_st) < 0 ? -errno : 0;
}

/*
 * The link is read before anything is asked of the file: a stat of whatever a cell has open may
 * wait for a network or a process. What begins like a memfd is one, whose name the cell chose, and
 * which is the kernel's own; or else a file in the root of the cell, which costs nothing but its
 * size. What was deleted says so at its end, and what is too deep for a link says nothing.
 */
static int look_at_descriptor(int fd_dir, const char *name, void *arg)
{
	struct vt_held *held = arg;
	char target[PATH_MAX + 64];
	struct statx st;
	ssize_t got = readlinkat(fd_dir, name, target, sizeof(target));

	if (got < 0 && errno != ENAMETOOLONG)
		return vt_proc_refused(errno) ? -errno : 0; /* closed meanwhile */
	size_t len = got < 0 ? 0 : (size_t)got;
	bool memfd = held->memfds && begins_with(target, len, "/memfd:");
	bool nameless = held->nameless && (got < 0 || ends_with(target, len, " (deleted)"));

	if (!memfd && !nameless)
		return 0;
	int r = ask(fd_dir, name, &st);

	/* Of a memfd nothing but its end is a reason not to be counted. */
	if (r < 0)
		return vt_proc_refused(-r) || (memfd && !vt_proc_vanished(-r)) ? r : 0;
	nameless = nameless && is_nameless(held, &st);
	if ((memfd || nameless) &&
	    remember(held, device(st.stx_dev_major, st.stx_dev_minor), st.stx_ino))
		vt_proc_add_scaled(nameless ? &held->nameless_bytes : &held->memfd_bytes,
				   (int64_t)st.stx_blocks, 512);
	return 0;
}

/* The kernel's own mount, on which all memfds are, as fdinfo numbers it; -errno. */
static int64_t memfd_mount(void)
{
	AUTO_CLOSE int fd = memfd_create("vitro", MFD_CLOEXEC);
	char path[32], text[512];

	if (fd < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd); /* fits */
	ssize_t len = vt_file_read(AT_FDCWD, path, text, sizeof(text));

	return len < 0 ? len : vt_proc_number_of(text, "mnt_id");
}

static int look_at_hidden_descriptor(int dir, const char *name, void *arg)
{
	const int64_t *memfds = arg;
	char text[512]; /* what comes later is the file's own kind of news */
	ssize_t len = vt_file_read(dir, name, text, sizeof(text));

	if (len < 0)
		return vt_proc_vanished((int)-len) ? 0 : (int)len;
	return vt_proc_number_of(text, "mnt_id") == *memfds ? -EACCES : 0;
}

/*
 * The links of a process that is not dumpable, by its own wish or because its program cannot be
 * read, are root's. Its fdinfo is open to whoever may trace it, as the maker of its user namespace
 * may; that says which descriptors are memfds, though not how large. (pidfd_getfd would get at
 * them, but not from a number in the cell's pid namespace.) So such a process may have none: hardly
 * a program that hides its memory uses them, and a cell must not hide any by wishing so.
 */
static int look_at_hidden_table(int dir, unsigned *left)
{
	char statm[128];
	ssize_t len = vt_file_read(dir, "statm", statm, sizeof(statm));

	if (len < 0)
		return vt_proc_vanished((int)-len) ? 0 : (int)len;
	if (vt_proc_number_at(statm, 0) == 0)
		return 0; /* a zombie's are root's too, and none */

	int64_t memfds = memfd_mount();
	if (memfds < 0)
		return -EACCES;

	int r = vt_proc_walk(dir, "fdinfo", left, look_at_hidden_descriptor, &memfds);
	return vt_proc_vanished(-r) ? 0 : r;
}

int vt_held_look(struct vt_held *held, int dir, unsigned *left)
{
	if (!held->memfds && !held->nameless)
		return 0;
	int r = vt_proc_walk(dir, "fd", left, look_at_descriptor, held);

	if (vt_proc_refused(-r))
		return held->memfds ? look_at_hidden_table(dir, left) : 0;
	return vt_proc_vanished(-r) ? 0 : r;
}
