/* SPDX-License-Identifier: Apache-2.0 */
#include "host/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "host/try.h"
#include "kernel/idmap.h"
#include "kernel/mount.h"
#include "kernel/overlay.h"
#include "uapi/magic.h"

/* What is to be laid under an overlay: a mount that is made already, or a path. */
struct trial {
	const char *path;
	int mount_fd; /* -1: to be copied */
};

static int make_trial(const void *arg, struct vt_err *err)
{
	const struct trial *trial = arg;
	const struct vt_mount_traits traits = { .idmap_fd = -1 };
	const bool made = trial->mount_fd >= 0;
	AUTO_CLOSE int own = made ? -1 : vt_mount_copy(AT_FDCWD, trial->path, err);
	const int copy = made ? trial->mount_fd : own;
	int r = copy < 0 || made ? copy : vt_mount_restrict(copy, &traits, trial->path, err);

	if (r < 0)
		return r;
	AUTO_CLOSE int stage = vt_mount_new_root(1 << 20, 16, err);

	if (stage < 0)
		return stage;
	if (mkdirat(stage, "layer", 0700) < 0 || mkdirat(stage, "marks", 0700) < 0 ||
	    mknodat(stage, "marks/closed", S_IFCHR, 0) < 0)
		return vt_fail(err, VT_STEP_MOUNTS, errno, "mark what is closed");
	r = vt_mount_attach(copy, stage, "layer", err);
	if (r < 0)
		return r;
	AUTO_CLOSE int marks = openat(stage, "marks", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (marks < 0)
		return vt_fail(err, VT_STEP_MOUNTS, errno, "open what is closed");
	AUTO_CLOSE int overlay = vt_overlay_read(marks, copy, trial->path, err);

	return overlay < 0 ? overlay : 0;
}

/*
 * File systems whose names change only through this kernel. On others (FUSE, NFS, ...) it may find
 * a name gone at any time, and drops what is mounted on it.
 */
static bool is_local(const char *path)
{
	static const unsigned long known[] = { BCACHEFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
					       EXT4_SUPER_MAGIC,     F2FS_SUPER_MAGIC,
					       TMPFS_MAGIC,          XFS_SUPER_MAGIC };
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if ((unsigned long)fs.f_type == known[i])
			return true;
	return false;
}

/* With the map that the launcher would give it: not every kernel takes that for a layer. */
static int copy_mapped(const struct vt_host *host, const char *path, const struct vt_path *seen,
		       struct vt_err *err)
{
	AUTO_CLOSE int userns = vt_idmap_open(seen->uid, host->id_base, seen->gid, host->id_base,
					      err);
	const struct vt_mount_traits traits = { .idmap_fd = userns };
	AUTO_CLOSE int fd = userns < 0 ? userns : vt_mount_copy(AT_FDCWD, path, err);

	if (fd < 0)
		return fd;
	int r = vt_mount_restrict(fd, &traits, path, err);

	return r < 0 ? r : vt_fd_take(&fd);
}

int vt_layer_try(const struct vt_host *host, const char *path, const struct vt_path *seen,
		 struct vt_layer_tries *tries, struct vt_layer *ret_layer)
{
	const size_t room = sizeof(tries->items) / sizeof(tries->items[0]);
	struct vt_err err = { 0 };
	AUTO_CLOSE int mapped = -1;
	int r = 0;

	for (size_t i = 0; i < tries->count; i++) {
		if (tries->items[i].dev != seen->dev || tries->items[i].idmap != seen->idmap)
			continue;
		*ret_layer = tries->items[i].answer;
		return 0;
	}
	if (seen->idmap)
		r = mapped = copy_mapped(host, path, seen, &err);
	const struct trial trial = { .path = path, .mount_fd = mapped };

	if (r >= 0)
		r = vt_try_with(host, CLONE_NEWUSER | CLONE_NEWNS, make_trial, &trial, &err);
	/* Nothing to remember: the next plan may find that it can be had. */
	if (r < 0 && vt_err_passes(-r))
		return r;
	*ret_layer = (struct vt_layer){
		.overlay = { r < 0 ? -r : 0, "an overlay of it in a user namespace" },
		.upper = r >= 0 && is_local(path),
	};
	if (tries->count < room) {
		tries->items[tries->count].dev = seen->dev;
		tries->items[tries->count].idmap = seen->idmap;
		tries->items[tries->count++].answer = *ret_layer;
	}
	return 0;
}

/* The number of the mount that a path is on, or -errno. */
static int64_t mount_of(const char *path)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &st) < 0)
		return -errno;
	return st.stx_mask & STATX_MNT_ID ? (int64_t)st.stx_mnt_id : -ENOTSUP;
}

int vt_layer_can_work(const struct vt_host *host, const char *path, const char *folder,
		      const char *base, struct vt_path *ret_base)
{
	int64_t mount = mount_of(path);

	if (mount < 0)
		return (int)mount;
	if (mount_of(folder) != mount || mount_of(base) != mount)
		return -EXDEV;
	if (vt_file_access(AT_FDCWD, folder, W_OK | X_OK) < 0)
		return -errno;
	return host->look(host, base, ret_base);
}
