/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/cover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/mount.h"
#include "launch/writable.h"
#include "plan/pooled.h"

enum { EMPTY_BYTES = 1 << 16, EMPTY_INODES = 8 };

struct covering {
	int root_fd;
	int empty_fd; /* of a tmpfs with an empty folder and an empty file */
	struct vt_err *err;
};

/* Whether there is a folder at a path, without links on it; -ENOENT: what is around it is covered
 * already. */
static int is_folder(int root_fd, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	AUTO_CLOSE int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	struct stat st;

	return fd < 0 || fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode);
}

static int cover_path(void *user, const char *path)
{
	const struct vt_mount_traits read_only = { .idmap_fd = -1 };
	const struct covering *c = user;
	int r = is_folder(c->root_fd, path);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return vt_fail_at(c->err, VT_STEP_MOUNTS, -r, "look at", path);
	AUTO_CLOSE int empty = vt_mount_copy(c->empty_fd, r ? "folder" : "file", c->err);

	r = empty < 0 ? empty : vt_mount_restrict(empty, &read_only, path, c->err);
	return r < 0 ? r : vt_mount_attach_nested(empty, c->root_fd, path, c->err);
}

static int cover_all(const struct vt_plan *plan, struct vt_err *err)
{
	AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int empty = vt_mount_tmpfs(EMPTY_BYTES, EMPTY_INODES, err);
	struct covering c = { root, empty, err };

	if (root < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open the root", NULL);
	/* The kernel copies only what is attached somewhere. */
	int r = empty < 0 ? empty : vt_mount_attach(empty, root, VT_POOLED_STAGE, err);

	if (r < 0)
		return r;
	if (mkdirat(empty, "folder", 0555) < 0 || mknodat(empty, "file", S_IFREG | 0444, 0) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make what is empty", NULL);
	/* That there are no other names, the plan has made sure of. */
	r = vt_writable_list(plan, &(struct vt_writable){ .path = cover_path, .user = &c });
	return r < 0 ? r : vt_mount_detach(root, VT_POOLED_STAGE, err);
}

static int open_own(int proc_fd, struct vt_err *err)
{
	int fd = openat(proc_fd, "ns/mnt", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? vt_fail_at(err, VT_STEP_MOUNTS, errno, "name the zygote's mounts", NULL)
		      : fd;
}

static int turn_to(int ns_fd, struct vt_err *err)
{
	/* Threads share a root and a working directory, which are of a mount namespace. */
	if (unshare(CLONE_FS) < 0 || setns(ns_fd, CLONE_NEWNS) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "turn to other mounts", NULL);
	return 0;
}

static int make(struct vt_cover *cover, const struct vt_plan *plan, int proc_fd, struct vt_err *err)
{
	struct vt_err unheard;
	AUTO_CLOSE int own = open_own(proc_fd, err);

	if (own < 0)
		return own;
	if (unshare(CLONE_NEWNS) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make mounts for programs", NULL);
	int r = cover_all(plan, err);

	if (r == 0)
		r = cover->covered_fd = open_own(proc_fd, err);
	if (r < 0)
		return turn_to(own, &unheard) < 0 ? -ENOTRECOVERABLE : r;
	cover->own_fd = vt_fd_take(&own);
	return 0;
}

int vt_cover_enter(struct vt_cover *cover, const struct vt_plan *plan, int proc_fd,
		   struct vt_err *err)
{
	char cwd[PATH_MAX];
	AUTO_CLOSE int folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (!plan->can_cover)
		return vt_fail_at(err, VT_STEP_MOUNTS, ENOTSUP, "cover what cells can write", NULL);
	if (folder < 0 || !getcwd(cwd, sizeof(cwd)))
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "find the working directory", NULL);
	int r = cover->covered_fd < 0 ? make(cover, plan, proc_fd, err)
				      : turn_to(cover->covered_fd, err);

	if (r < 0) {
		if (fchdir(folder) < 0)
			return -ENOTRECOVERABLE;
		return r;
	}
	cover->cwd_fd = vt_fd_take(&folder);
	/* Where it was under the cover, it has nothing to do there. */
	if (chdir(cwd) < 0 && chdir("/") < 0)
		return -ENOTRECOVERABLE;
	return 0;
}

int vt_cover_leave(struct vt_cover *cover, struct vt_err *err)
{
	int r = turn_to(cover->own_fd, err);

	if (r == 0 && fchdir(cover->cwd_fd) < 0)
		r = vt_fail_at(err, VT_STEP_MOUNTS, errno, "go back to the working directory",
			       NULL);
	vt_fd_close(&cover->cwd_fd);
	return r;
}

void vt_cover_done(struct vt_cover *cover)
{
	vt_fd_close(&cover->own_fd);
	vt_fd_close(&cover->covered_fd);
	vt_fd_close(&cover->cwd_fd);
}
