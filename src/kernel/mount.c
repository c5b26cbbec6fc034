/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/fd.h"
#include "kernel/beneath.h"
#include "uapi/mount.h"

static int set(int fs, const char *key, const char *value, struct vt_err *err)
{
	if (sys_fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "set the mount option", key);
	return 0;
}

static int set_number(int fs, const char *key, int64_t number, struct vt_err *err)
{
	char digits[VT_DECIMAL + 1];

	digits[vt_decimal(digits, (uint64_t)number)] = '\0';
	return set(fs, key, digits, err);
}

static int create(int fs, unsigned attrs, const char *name, struct vt_err *err)
{
	if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make a file system", name);
	int fd = sys_fsmount(fs, FSMOUNT_CLOEXEC, attrs);

	return fd < 0 ? vt_fail_at(err, VT_STEP_MOUNTS, errno, "mount a new", name) : fd;
}

int vt_mount_tmpfs(int64_t bytes, int64_t inodes, struct vt_err *err)
{
	/* To the kernel 0 means without bounds. */
	if (bytes <= 0 || inodes <= 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, EINVAL, "bound a tmpfs", NULL);
	AUTO_CLOSE int fs = sys_fsopen("tmpfs", FSOPEN_CLOEXEC);

	if (fs < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open a tmpfs", NULL);
	int r = set_number(fs, "size", bytes, err);

	if (r == 0)
		r = set_number(fs, "nr_inodes", inodes, err);
	if (r == 0)
		r = set(fs, "mode", "0755", err);
	return r < 0 ? r : create(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, "tmpfs", err);
}

int vt_mount_new_root(int64_t bytes, int64_t inodes, struct vt_err *err)
{
	AUTO_CLOSE int fd = vt_mount_tmpfs(bytes, inodes, err);

	if (fd < 0)
		return fd;
	AUTO_CLOSE int old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (old_root < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open the old root", NULL);
	int r = vt_mount_attach(fd, old_root, ".", err);

	return r < 0 ? r : vt_fd_take(&fd);
}

int vt_mount_proc(bool writable, struct vt_err *err)
{
	const unsigned attrs = (writable ? 0 : MOUNT_ATTR_RDONLY) | MOUNT_ATTR_NOSUID |
			       MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	AUTO_CLOSE int fs = sys_fsopen("proc", FSOPEN_CLOEXEC);
	int r = fs < 0 ? -errno : 0;

	/* Init is not dumpable, so that to the occupant it is not there at all. */
	if (r == 0 && !writable)
		r = set(fs, "hidepid", "ptraceable", err);
	if (r == 0)
		r = create(fs, attrs, "proc", err);
	return r < 0 ? vt_fail_at(err, VT_STEP_MOUNTS, -r, VT_MOUNT_PROC, NULL) : r;
}

int vt_mount_copy(int dir_fd, const char *path, struct vt_err *err)
{
	/* Recursive, or a mount with others locked below it cannot be copied in a user namespace.
	 */
	int fd = sys_open_tree(dir_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	return fd < 0 ? vt_fail_at(err, VT_STEP_MOUNTS, errno, "copy the mount of", path) : fd;
}

int vt_mount_copy_alone(int dir_fd, const char *path, struct vt_err *err)
{
	int fd = sys_open_tree(dir_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	return fd < 0 ? vt_fail_at(err, VT_STEP_MOUNTS, errno, "copy the mount of", path) : fd;
}

int vt_mount_check(int mount_fd, uint64_t dev, uint64_t ino, const char *path, struct vt_err *err)
{
	struct stat st;

	if (fstat(mount_fd, &st) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "look at", path);
	if (st.st_dev != dev || st.st_ino != ino)
		return vt_fail_at(err, VT_STEP_MOUNTS, ESTALE,
				  "replaced while it was being mounted:", path);
	return 0;
}

int vt_mount_restrict(int mount_fd, const struct vt_mount_traits *traits, const char *path,
		      struct vt_err *err)
{
	/*
	 * Private: on most hosts a copy is a peer of the mount it was made of. What is mounted in
	 * the cell would show up there, and what the host mounts below it would show up here,
	 * unrestricted.
	 */
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE };
	unsigned flags = AT_EMPTY_PATH | (traits->here ? 0 : AT_RECURSIVE);

	if (!traits->writable)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (!traits->device)
		attr.attr_set |= MOUNT_ATTR_NODEV;
	if (traits->idmap_fd >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)traits->idmap_fd;
	}
	if (sys_mount_setattr(mount_fd, "", flags, &attr) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "restrict the mount of", path);
	return 0;
}

int vt_mount_attach(int mount_fd, int root_fd, const char *path, struct vt_err *err)
{
	if (sys_move_mount(mount_fd, "", root_fd, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "mount", path);
	return 0;
}

int vt_mount_attach_nested(int mount_fd, int root_fd, const char *path, struct vt_err *err)
{
	AUTO_CLOSE int at = vt_beneath_open(root_fd, path);

	if (at < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, VT_MOUNT_PLACE, path);
	if (sys_move_mount(mount_fd, "", at, "",
			   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "mount", path);
	return 0;
}

int vt_mount_on_itself(int at_fd, bool read_only, const char *path, struct vt_err *err)
{
	const struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	AUTO_CLOSE int fd = sys_open_tree(
		at_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);

	if (fd < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "copy the mount of", path);
	if (read_only && sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "restrict the mount of", path);
	if (sys_move_mount(fd, "", at_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) <
	    0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "mount", path);
	return 0;
}

int vt_mount_detach(int root_fd, const char *name, struct vt_err *err)
{
	/* The working directory is the one way to name a place by descriptor here. */
	if (fchdir(root_fd) < 0 || umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "unmount", name);
	return 0;
}

int vt_mount_enter_root(int root_fd, struct vt_err *err)
{
	/* The old root ends up stacked on the new one at "/", and is detached from there. */
	if (fchdir(root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "enter the new root", NULL);
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "leave the old root", NULL);
	return 0;
}
