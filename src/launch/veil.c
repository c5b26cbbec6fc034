/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/veil.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/mount.h"
#include "kernel/overlay.h"

/* In the new root, and in the stage: where layers are attached, and what closed names are covered
 * with.
 */
#define STAGE        ".vitro-stage"
#define LAYER        "layer"
#define COVER_FILE   "file"
#define COVER_FOLDER "folder"
#define COVER_EMPTY  "empty"

enum { STAGE_INODES = 16, BYTES_PER_INODE = 1024, STAGE_BYTES = 1 << 20 };

/* Goes down from a folder of somebody else's: through no link, and not out of it. */
static int open_below(int dir_fd, const char *path, struct vt_err *err)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, dir_fd, *path ? path : ".", &how, sizeof(how));

	return fd < 0 ? vt_fail_at(err, VT_STEP_MOUNTS, errno, "open", path) : fd;
}

/* The work folder as seen from the copied mount; it must be the one that the supervisor made. */
static int open_work(const struct vt_veil *veil, int base_fd, const struct vt_work *work,
		     struct vt_err *err)
{
	AUTO_CLOSE int parent = open_below(base_fd, veil->base_to_work, err);
	struct stat st;

	if (parent < 0)
		return parent;
	AUTO_CLOSE int fd = open_below(parent, work->name, err);

	if (fd < 0)
		return fd;
	if (fstat(work->fd, &st) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "look at", work->name);
	int r = vt_mount_check(fd, st.st_dev, st.st_ino, work->name, err);

	return r < 0 ? r : vt_fd_take(&fd);
}

int vt_veil_open(const struct vt_build *build, int base_fd, const struct vt_work *work,
		 struct vt_layers *ret_layers, struct vt_err *err)
{
	const struct vt_veil *veil = build->veil;
	int r = vt_mount_check(base_fd, veil->base_dev, veil->base_ino, veil->base, err);

	if (r < 0)
		return r;
	AUTO_CLOSE int folder = open_below(base_fd, veil->base_to_folder, err);

	if (folder < 0)
		return folder;
	r = vt_mount_check(folder, build->dev, build->ino, build->from, err);
	if (r < 0)
		return r;
	int work_fd = open_work(veil, base_fd, work, err);

	if (work_fd < 0)
		return work_fd;
	ret_layers->folder_fd = vt_fd_take(&folder);
	ret_layers->work_fd = work_fd;
	return 0;
}

/* An empty thing that nobody can change, to cover others with. */
static int make_cover(int stage_fd, const char *name, mode_t mode, struct vt_err *err)
{
	const struct vt_mount_traits traits = { .idmap_fd = -1 };
	int r = S_ISDIR(mode) ? mkdirat(stage_fd, name, mode & 0777)
			      : mknodat(stage_fd, name, mode, 0);

	if (r < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the cover", name);
	AUTO_CLOSE int fd = vt_mount_copy(stage_fd, name, err);

	if (fd < 0)
		return fd;
	r = vt_mount_restrict(fd, &traits, name, err);
	/* On itself: copies of it are read-only too. */
	return r < 0 ? r : vt_mount_attach(fd, stage_fd, name, err);
}

int vt_veil_stage(const struct vt_plan *plan, int root_fd, struct vt_err *err)
{
	int64_t inodes = STAGE_INODES + (int64_t)(plan->veil_count + plan->veiled_count);
	AUTO_CLOSE int fd = vt_mount_tmpfs(STAGE_BYTES + inodes * BYTES_PER_INODE, inodes, err);

	if (fd < 0)
		return fd;
	if (mkdirat(root_fd, STAGE, 0700) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the folder", STAGE);
	int r = vt_mount_attach(fd, root_fd, STAGE, err);

	if (r == 0 && mkdirat(fd, LAYER, 0700) < 0)
		r = vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the folder", LAYER);
	if (r == 0 && plan->work_count)
		r = make_cover(fd, COVER_FILE, S_IFREG, err);
	if (r == 0 && plan->work_count)
		r = make_cover(fd, COVER_FOLDER, S_IFDIR, err);
	if (r == 0 && plan->work_count && plan->guard_count)
		r = make_cover(fd, COVER_EMPTY, S_IFDIR | 0555, err);
	return r < 0 ? r : vt_fd_take(&fd);
}

/* What hides a closed name that is for reading, or what is to be covered where it can be written.
 */
static int make_mark(int marks_fd, const struct vt_veiled *name, bool writable, struct vt_err *err)
{
	int r;

	if (name->kind == VT_VEILED_WAY)
		r = mkdirat(marks_fd, name->path, name->mode & 0777);
	else if (!writable)
		r = mknodat(marks_fd, name->path, S_IFCHR, 0);
	else if (name->kind == VT_VEILED_FOLDER || name->kind == VT_VEILED_EMPTY)
		r = mkdirat(marks_fd, name->path, name->mode);
	else
		r = mknodat(marks_fd, name->path, S_IFREG, 0);
	return r < 0 ? vt_fail_at(err, VT_STEP_MOUNTS, errno, "mark", name->path) : 0;
}

static int make_marks(const struct vt_build *build, int stage_fd, struct vt_err *err)
{
	const struct vt_veil *veil = build->veil;

	if (mkdirat(stage_fd, veil->name, veil->mode & 0777) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the folder", veil->name);
	AUTO_CLOSE int fd = openat(stage_fd, veil->name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open the marks of", build->from);
	for (size_t i = 0; i < veil->count; i++) {
		int r = make_mark(fd, &veil->names[i], veil->work >= 0, err);

		if (r < 0)
			return r;
	}
	return vt_fd_take(&fd);
}

/* Returns the overlay's mount, which is not attached yet. */
static int make_overlay(const struct vt_build *build, int stage_fd, int mount_fd,
			const struct vt_layers *layers, struct vt_err *err)
{
	const int work = build->veil->work;
	AUTO_CLOSE int marks = make_marks(build, stage_fd, err);

	if (marks < 0)
		return marks;
	/* Kernels before 6.15 take only what is attached as a layer. One may cover the other. */
	int r = vt_mount_attach(mount_fd, stage_fd, LAYER, err);

	if (r < 0)
		return r;
	if (work >= 0)
		return vt_overlay_write(marks, layers[work].folder_fd, layers[work].work_fd,
					build->from, err);
	/* Without marks the folder is uppermost: whose it is and when it changed are its own. */
	return build->veil->count ? vt_overlay_read(marks, mount_fd, build->from, err)
				  : vt_overlay_read(mount_fd, marks, build->from, err);
}

static int cover_names(const struct vt_veil *veil, int stage_fd, int overlay_fd, struct vt_err *err)
{
	for (size_t i = 0; i < veil->count; i++) {
		const struct vt_veiled *name = &veil->names[i];

		if (name->kind == VT_VEILED_WAY)
			continue;
		const char *cover = name->kind == VT_VEILED_EMPTY    ? COVER_EMPTY
				    : name->kind == VT_VEILED_FOLDER ? COVER_FOLDER
								     : COVER_FILE;
		AUTO_CLOSE int fd = vt_mount_copy(stage_fd, cover, err);

		if (fd < 0)
			return fd;
		int r = vt_mount_attach_nested(fd, overlay_fd, name->path, err);

		if (r < 0)
			return r;
	}
	return 0;
}

int vt_veil_bind(const struct vt_build *build, int stage_fd, int mount_fd,
		 const struct vt_layers *layers, int root_fd, int *ret_picked, struct vt_err *err)
{
	AUTO_CLOSE int fd = make_overlay(build, stage_fd, mount_fd, layers, err);

	if (fd < 0)
		return fd;
	int r = ret_picked ? *ret_picked = vt_overlay_pick(fd, build->from, err) : 0;

	if (r < 0)
		return r;
	r = build->nested ? vt_mount_attach_nested(fd, root_fd, build->to, err)
			  : vt_mount_attach(fd, root_fd, build->to, err);

	/* In one for reading, what is closed is not there. */
	return r < 0 || build->veil->work < 0 ? r : cover_names(build->veil, stage_fd, fd, err);
}

int vt_veil_unstage(int root_fd, struct vt_err *err)
{
	int r = vt_mount_detach(root_fd, STAGE, err);

	if (r == 0 && unlinkat(root_fd, STAGE, AT_REMOVEDIR) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "remove the folder", STAGE);
	return r;
}
