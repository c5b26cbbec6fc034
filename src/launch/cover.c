/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/cover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/beneath.h"
#include "kernel/mount.h"
#include "launch/writable.h"
#include "plan/pooled.h"

enum { EMPTY_BYTES = 1 << 16, EMPTY_INODES = 8 };

struct vt_covering {
	int root_fd;
	int empty_fd; /* of a tmpfs with an empty folder and an empty file */
	dev_t dev;    /* its device */
	struct vt_err *err;
};

static int look(const struct vt_covering *c, const char *path, struct stat *ret_st)
{
	AUTO_CLOSE int fd = vt_beneath_open(c->root_fd, path);

	return fd < 0 || fstat(fd, ret_st) < 0 ? -errno : 0;
}

/* What is not there may be under a cover already; else it is elsewhere by now, and nobody knows
 * where. */
static bool is_under_cover(const struct vt_covering *c, const char *path)
{
	char around[PATH_MAX];
	struct stat st = { 0 };
	int r = -ENOENT;

	(void)snprintf(around, sizeof(around), "%s", path); /* plans have no longer ones */
	for (char *slash; r == -ENOENT && (slash = strrchr(around, '/'));) {
		*slash = '\0';
		r = look(c, *around ? around : "/", &st);
	}
	return r == 0 && st.st_dev == c->dev;
}

int vt_cover_path(const struct vt_covering *c, const char *path)
{
	const struct vt_mount_traits read_only = { .idmap_fd = -1 };
	struct stat st = { 0 };
	int r = look(c, path, &st);

	if (r == -ENOENT && is_under_cover(c, path))
		return 0;
	if (r < 0)
		return vt_fail_at(c->err, VT_STEP_MOUNTS, -r, "look at", path);
	if (st.st_dev == c->dev)
		return 0;
	AUTO_CLOSE int empty = vt_mount_copy(c->empty_fd, S_ISDIR(st.st_mode) ? "folder" : "file",
					     c->err);

	r = empty < 0 ? empty : vt_mount_restrict(empty, &read_only, path, c->err);
	return r < 0 ? r : vt_mount_attach_nested(empty, c->root_fd, path, c->err);
}

int vt_cover(const char *stage, int (*list)(const struct vt_covering *covering, void *user),
	     void *user, struct vt_err *err)
{
	AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int empty = vt_mount_tmpfs(EMPTY_BYTES, EMPTY_INODES, err);
	struct vt_covering c = { .root_fd = root, .empty_fd = empty, .err = err };
	struct stat st;

	if (root < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open the root", NULL);
	/* The kernel copies only what is attached somewhere. */
	int r = empty < 0 ? empty : vt_mount_attach(empty, root, stage, err);

	if (r < 0)
		return r;
	if (fstat(empty, &st) < 0 || mkdirat(empty, "folder", 0555) < 0 ||
	    mknodat(empty, "file", S_IFREG | 0444, 0) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make what is empty", NULL);
	c.dev = st.st_dev;
	r = list(&c, user);
	return r < 0 ? r : vt_mount_detach(root, stage, err);
}

static int cover_place(void *user, const char *path)
{
	return vt_cover_path(user, path);
}

/* That there are no other names, the plan has made sure of. */
static int list_written(const struct vt_covering *covering, void *user)
{
	return vt_writable_list(user, cover_place, (void *)covering);
}

int vt_cover_written(const struct vt_plan *plan, struct vt_err *err)
{
	return vt_cover(VT_POOLED_STAGE, list_written, (void *)plan, err);
}
