/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/overlay.h"

#include <errno.h>

#include "base/fd.h"
#include "base/fdlink.h"
#include "uapi/mount.h"

/* By the names of descriptors, since layers are paths to all but the newest kernels. */
static int set_fd(int fs, const char *key, int fd)
{
	char path[VT_FDLINK];

	(void)vt_fdlink(path, fd);
	return sys_fsconfig(fs, FSCONFIG_SET_STRING, key, path, 0);
}

/*
 * What a distribution may have switched on, and what would follow or leave marks on the host's
 * files.
 */
static int set_plain(int fs)
{
	static const char *const off[][2] = {
		{ "redirect_dir", "nofollow" },
		{ "metacopy", "off" },
		{ "index", "off" },
		{ "xino", "off" },
	};

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		if (sys_fsconfig(fs, FSCONFIG_SET_STRING, off[i][0], off[i][1], 0) < 0)
			return -1;
	return sys_fsconfig(fs, FSCONFIG_SET_STRING, "source", "vitro", 0);
}

static int mount_new(int fs, unsigned attrs, const char *path, struct vt_err *err)
{
	if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, VT_OVERLAY_FAILED, path);
	int fd = sys_fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | attrs);

	return fd < 0 ? vt_fail_at(err, VT_STEP_MOUNTS, errno, "mount the overlay of", path) : fd;
}

int vt_overlay_read(int upper_fd, int lower_fd, const char *path, struct vt_err *err)
{
	char layers[2 * VT_FDLINK];
	AUTO_CLOSE int fs = sys_fsopen("overlay", FSOPEN_CLOEXEC);
	size_t len = vt_fdlink(layers, upper_fd);

	layers[len++] = ':'; /* the first is the uppermost */
	(void)vt_fdlink(layers + len, lower_fd);
	if (fs < 0 || set_plain(fs) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", layers, 0) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open an overlay for", path);
	return mount_new(fs, MOUNT_ATTR_RDONLY, path, err);
}

int vt_overlay_write(int marks_fd, int folder_fd, int work_fd, const char *path, struct vt_err *err)
{
	AUTO_CLOSE int fs = sys_fsopen("overlay", FSOPEN_CLOEXEC);

	if (fs < 0 || set_plain(fs) < 0 ||
	    sys_fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0 ||
	    set_fd(fs, "lowerdir", marks_fd) < 0 || set_fd(fs, "upperdir", folder_fd) < 0 ||
	    set_fd(fs, "workdir", work_fd) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open an overlay for", path);
	return mount_new(fs, 0, path, err);
}

int vt_overlay_pick(int mount_fd, const char *path, struct vt_err *err)
{
	int fd = sys_fspick(mount_fd, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);

	return fd < 0 ? vt_fail_at(err, VT_STEP_MOUNTS, errno, "pick the overlay of", path) : fd;
}

int vt_overlay_refresh(int picked_fd, bool writable, struct vt_err *err)
{
	/* What is changed of it is nothing; that lets the kernel drop all names that nobody uses.
	 */
	if ((!writable && sys_fsconfig(picked_fd, FSCONFIG_SET_FLAG, "ro", NULL, 0) < 0) ||
	    sys_fsconfig(picked_fd, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "let an overlay look again", NULL);
	return 0;
}
