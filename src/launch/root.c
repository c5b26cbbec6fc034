/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root of a cell in namespaces, built by init as the plan lists it; or that of a hull, and what
 * a cell in it has of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "kernel/mount.h"
#include "launch/guard.h"
#include "launch/inside_private.h"
#include "plan/pooled.h"

/* While still the caller's user, who can look into folders that the cell's user cannot. */
static int copy_mount(const struct vt_building *b, const struct vt_build *build, int *mount,
		      struct vt_err *err)
{
	int work = build->veil ? build->veil->work : -1;

	if (*mount < 0)
		*mount = vt_mount_copy(AT_FDCWD, work < 0 ? build->from : build->veil->base, err);
	if (*mount < 0)
		return *mount;
	if (work < 0)
		return vt_mount_check(*mount, build->dev, build->ino, build->from, err);
	/* Of what the parent has mapped, it has opened the layers. */
	if (build->idmap >= 0)
		return 0;
	return vt_veil_open(build, *mount, &b->in->works[work], &b->in->layers[work], err);
}

int vt_inside_copy_mounts(struct vt_building *b, struct vt_err *err)
{
	const struct vt_plan *plan = b->plan;
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->build_count; i++)
		if (plan->builds[i].act == VT_ACT_BIND && !plan->builds[i].inner)
			r = copy_mount(b, &plan->builds[i], &b->in->mounts[i], err);
	return r;
}

int vt_inside_attach_root(struct vt_building *b, struct vt_err *err)
{
	b->root_fd = vt_mount_new_root(b->plan->scratch_bytes, b->plan->scratch_inodes, err);
	return b->root_fd < 0 ? b->root_fd : 0;
}

static int make_file(int root_fd, const struct vt_build *build, struct vt_err *err)
{
	size_t len = strlen(build->from);

	/* Most are only the place that a file is mounted on: one call is enough. */
	if (mknodat(root_fd, build->to, S_IFREG | 0644, 0) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the file", build->to);
	if (len == 0)
		return 0;
	AUTO_CLOSE int fd = openat(root_fd, build->to, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, build->from, len) != (ssize_t)len)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the file", build->to);
	return 0;
}

static int attach(const struct vt_building *b, const struct vt_build *build, int mount_fd,
		  struct vt_err *err)
{
	return build->nested ? vt_mount_attach_nested(mount_fd, b->root_fd, build->to, err)
			     : vt_mount_attach(mount_fd, b->root_fd, build->to, err);
}

static int bind_mount(struct vt_building *b, const struct vt_build *build, int mount_fd,
		      struct vt_err *err)
{
	/* The parent has restricted what it mapped: a map can be set only once. */
	if (build->idmap < 0) {
		const struct vt_mount_traits traits = {
			.writable = build->writable,
			.device = build->device,
			.idmap_fd = -1,
		};
		int r = vt_mount_restrict(mount_fd, &traits, build->from, err);

		if (r < 0)
			return r;
	}
	if (build->veil)
		return vt_veil_bind(build, b->stage_fd, mount_fd, b->in->layers, b->root_fd,
				    b->in->picked ? &b->in->picked[b->veils++] : NULL, err);
	return attach(b, build, mount_fd, err);
}

/* On what is attached by now: a guard's place is one in the mount, or in that of one before. */
static int bind_guarded(struct vt_building *b, const struct vt_build *build, int mount_fd,
			struct vt_err *err)
{
	int r = bind_mount(b, build, mount_fd, err);

	return r == 0 && build->guard_count ? vt_guard_bind(build, b->root_fd, err) : r;
}

/* What the hull has put aside, restricted as it is. */
static int bind_inner(const struct vt_building *b, const struct vt_build *build, struct vt_err *err)
{
	AUTO_CLOSE int fd = vt_mount_copy(b->root_fd, build->from, err);

	return fd < 0 ? fd : attach(b, build, fd, err);
}

/* A folder of the root's own tmpfs, mounted on itself: it stays writable when the root is not. */
static int open_scratch(const struct vt_building *b, const struct vt_build *build,
			struct vt_err *err)
{
	AUTO_CLOSE int fd = vt_mount_copy(b->root_fd, build->to, err);

	return fd < 0 ? fd : vt_mount_attach(fd, b->root_fd, build->to, err);
}

static int mount_proc(struct vt_building *b, const struct vt_build *build, struct vt_err *err)
{
	AUTO_CLOSE int fd = vt_mount_proc(build->writable, err);
	int r = fd < 0 ? fd : vt_mount_attach(fd, b->root_fd, build->to, err);

	if (r == 0 && !build->writable)
		b->proc_fd = vt_fd_take(&fd);
	return r;
}

/* Covers a path with an empty file or folder of the root's, `from`. What is not there needs none.
 */
static int mask(const struct vt_building *b, const struct vt_build *build, struct vt_err *err)
{
	if (vt_file_access(b->root_fd, build->to, F_OK) < 0 && errno == ENOENT)
		return 0;
	AUTO_CLOSE int fd = vt_mount_copy(b->root_fd, build->from, err);
	const struct vt_mount_traits traits = { .idmap_fd = -1 };

	if (fd < 0)
		return fd;
	int r = vt_mount_restrict(fd, &traits, build->to, err);

	return r < 0 ? r : vt_mount_attach(fd, b->root_fd, build->to, err);
}

static int do_build(struct vt_building *b, size_t i, struct vt_err *err)
{
	const struct vt_build *build = &b->plan->builds[i];

	switch (build->act) {
	case VT_ACT_DIR:
		if (mkdirat(b->root_fd, build->to, build->mode) < 0)
			return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the folder", build->to);
		return 0;
	case VT_ACT_LINK:
		if (symlinkat(build->from, b->root_fd, build->to) < 0)
			return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the link", build->to);
		return 0;
	case VT_ACT_FILE:
		return make_file(b->root_fd, build, err);
	case VT_ACT_BIND:
		return build->inner ? bind_inner(b, build, err)
				    : bind_guarded(b, build, b->in->mounts[i], err);
	case VT_ACT_SCRATCH:
		return open_scratch(b, build, err);
	case VT_ACT_PROC:
		return mount_proc(b, build, err);
	case VT_ACT_MASK:
		return mask(b, build, err);
	}
	return vt_fail_at(err, VT_STEP_MOUNTS, EINVAL, "understand the plan", NULL);
}

int vt_inside_build_root(struct vt_building *b, struct vt_err *err)
{
	const struct vt_mount_traits read_only = { .here = true, .idmap_fd = -1 };
	const bool veils = b->plan->veil_count;
	int r = 0;

	(void)umask(0); /* modes are what the plan says; returns the old one, cannot fail */
	if (veils)
		r = b->stage_fd = vt_veil_stage(b->plan, b->root_fd, err);
	for (size_t i = 0; r >= 0 && i < b->plan->build_count; i++)
		if (!b->plan->builds[i].per_cell)
			r = do_build(b, i, err);
	/* With it goes what layers were found through: folders around those that were granted. */
	if (r >= 0 && veils)
		r = vt_veil_unstage(b->root_fd, err);
	if (r >= 0)
		r = vt_mount_restrict(b->root_fd, &read_only, "/", err);
	return r < 0 ? r : vt_mount_enter_root(b->root_fd, err);
}

/* One tmpfs for all writable folders of a cell, which are mounted from where it is staged. */
static int make_scratch(struct vt_building *b, struct vt_err *err)
{
	AUTO_CLOSE int fd = vt_mount_tmpfs(b->plan->scratch_bytes, b->plan->scratch_inodes, err);
	char name[] = "a"; /* plans have two of them, or one */
	int r = fd < 0 ? fd : vt_mount_attach(fd, b->root_fd, VT_POOLED_STAGE, err);

	for (size_t i = 0; r == 0 && i < b->plan->build_count; i++) {
		const struct vt_build *build = &b->plan->builds[i];

		if (build->act != VT_ACT_SCRATCH)
			continue;
		if (mkdirat(fd, name, build->mode) < 0)
			return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the folder", build->to);
		AUTO_CLOSE int folder = vt_mount_copy(fd, name, err);

		r = folder < 0 ? folder : vt_mount_attach(folder, b->root_fd, build->to, err);
		name[0]++;
	}
	return r < 0 ? r : vt_mount_detach(b->root_fd, VT_POOLED_STAGE, err);
}

static int finish_root(struct vt_building *b, bool has_proc, struct vt_err *err)
{
	(void)umask(0); /* modes are what the plan says; returns the old one, cannot fail */
	b->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->root_fd < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open the hull's root", NULL);
	int r = make_scratch(b, err);

	for (size_t i = 0; r == 0 && i < b->plan->build_count; i++) {
		const struct vt_build *build = &b->plan->builds[i];
		bool of_proc = build->act == VT_ACT_PROC || build->act == VT_ACT_MASK;

		if (build->per_cell && build->act != VT_ACT_SCRATCH && (has_proc || !of_proc))
			r = do_build(b, i, err);
	}
	return r;
}

int vt_inside_finish_root(struct vt_building *b, struct vt_err *err)
{
	return finish_root(b, true, err);
}

int vt_inside_furnish_root(struct vt_building *b, struct vt_err *err)
{
	return finish_root(b, false, err);
}
