/* SPDX-License-Identifier: Apache-2.0 */
/* Changing what is mounted where, by the old and the new calls, and leaving the root. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static int mount_tmpfs(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (mount("none", "/tmp", "tmpfs", 0, NULL) < 0)
		return gated(errno, "mount");
	return reached("mounted a tmpfs");
}

static int mount_proc(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (mount("proc", "/tmp", "proc", 0, NULL) < 0)
		return gated(errno, "mount");
	return reached("mounted a proc");
}

static int mount_bind(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (mount("/usr", "/tmp", NULL, MS_BIND, NULL) < 0)
		return gated(errno, "mount");
	return reached("bound a folder");
}

/* argv: a mount that is read-only. What else is forbidden there stays so: the kernel may insist on
 * it. */
static int remount_writable(int argc, char **argv)
{
	struct statvfs st;

	(void)argc;
	if (statvfs(argv[1], &st) < 0)
		return unclear("statvfs: %s", strerrorname_np(errno));
	const unsigned long kept = (st.f_flag & ST_NOSUID ? MS_NOSUID : 0) |
				   (st.f_flag & ST_NODEV ? MS_NODEV : 0) |
				   (st.f_flag & ST_NOEXEC ? MS_NOEXEC : 0);

	if (mount(NULL, argv[1], NULL, MS_REMOUNT | MS_BIND | kept, NULL) < 0)
		return gated(errno, "remount");
	return reached("%s is writable", argv[1]);
}

static int mount_new(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int fs = (int)syscall(SYS_fsopen, "tmpfs", 0);
	if (fs < 0)
		return gated(errno, "fsopen");
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return gated(errno, "fsconfig");
	int made = (int)syscall(SYS_fsmount, fs, 0, 0);
	if (made < 0)
		return gated(errno, "fsmount");
	if (syscall(SYS_move_mount, made, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return gated(errno, "move_mount");
	return reached("mounted a tmpfs");
}

static int clone_tree(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/usr",
				OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return gated(errno, "open_tree");
	return reached("cloned a mount");
}

static int set_mount_attributes(int argc, char **argv)
{
	(void)argc;
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };
	if (syscall(SYS_mount_setattr, AT_FDCWD, argv[1], 0, &attr, sizeof(attr)) < 0)
		return gated(errno, "mount_setattr");
	return reached("%s is writable", argv[1]);
}

static int unmount(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const char *const points[] = { "/proc", "/tmp", "/dev", "/usr", "/" };
	int err = 0;
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		if (umount2(points[i], MNT_DETACH) == 0)
			return reached("unmounted %s", points[i]);
		/* EINVAL: not a mount point, or locked: past the door */
		err = err && errno == EINVAL ? err : errno;
	}
	return gated(err, "umount2");
}

static int change_root(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (chroot("/usr") < 0)
		return gated(errno, "chroot");
	return reached("changed the root");
}

/* argv: a folder that is a mount point, in the control */
static int pivot(int argc, char **argv)
{
	(void)argc;
	if (chdir(argv[1]) < 0)
		return broken("chdir %s", argv[1]);
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return gated(errno, "pivot_root");
	return reached("the root is another");
}

const struct act mount_acts[] = {
	{ "mount_tmpfs", "mount of a tmpfs", "covers a folder, unbounded", mount_tmpfs },
	{ "mount_proc", "mount of a proc", "gets a proc without masks", mount_proc },
	{ "mount_bind", "mount --bind", "moves a folder to another place", mount_bind },
	{ "remount_writable", "mount -o remount,rw", "makes a read grant writable",
	  remount_writable },
	{ "mount_new", "fsopen, fsmount, move_mount", "mounts by the new calls", mount_new },
	{ "clone_tree", "open_tree", "takes a copy of a mount", clone_tree },
	{ "set_mount_attributes", "mount_setattr", "makes a read grant writable by the new call",
	  set_mount_attributes },
	{ "unmount", "umount", "takes a mask away", unmount },
	{ "change_root", "chroot", "starts to climb out of the root", change_root },
	{ "pivot", "pivot_root", "changes the root", pivot },
	{ NULL }
};
