/* SPDX-License-Identifier: Apache-2.0 */
#include "host/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/layer.h"
#include "host/mounts.h"
#include "host/runtime.h"
#include "host/survey.h"
#include "host/trust.h"
#include "kernel/idmap.h"
#include "uapi/mount.h"

enum { MAX_MOUNTS = 64 }; /* answers that are remembered; others are asked again */

/*
 * Whether a folder takes an id map with all that is mounted below it, or a file's mount does.
 * Another folder of the same mount can have another answer, since other mounts may lie in it;
 * nothing lies in a file.
 */
struct mount_answer {
	uint64_t dev, mount_id;
	uint64_t ino; /* of a folder with mounts below it, for which it speaks alone; else 0 */
	bool idmap;
};

struct context {
	struct mount_answer mounts[MAX_MOUNTS];
	size_t mount_count;
	int userns_fd;                /* a map to try with; -1: not made yet */
	int userns_err;               /* and cannot be: a negative errno */
	struct vt_mounts mounts_here; /* read when first needed */
	int trouble;                  /* see vt_host_trouble() */
	struct vt_layer_tries layers;
};

/* Remembers a failure that says nothing about what was asked for. Gives what it got. */
static int noted(const struct vt_host *host, int r)
{
	struct context *context = host->context;

	if (r < 0 && context && vt_err_passes(-r))
		context->trouble = -r;
	return r;
}

/*
 * One try with a map of our own making, on a copy of the mount that nobody else sees; with the
 * mounts below it, as the launcher maps them. Returns 0 or a negative errno.
 */
static int try_idmap(struct context *context, const struct vt_host *host, int folder,
		     const char *name)
{
	if (context->userns_fd < 0) {
		struct vt_err err;
		int fd = context->userns_err;

		if (fd == 0)
			fd = vt_idmap_open(0, host->id_base, 0, host->id_base, &err);
		if (fd < 0 && !vt_err_passes(-fd))
			context->userns_err = fd;
		if (fd < 0)
			return fd;
		context->userns_fd = fd;
	}
	const struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)context->userns_fd,
	};
	AUTO_CLOSE int fd = sys_open_tree(folder, name,
					  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (fd < 0 || sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0)
		return -errno;
	return 0;
}

static bool has_mounts(const struct vt_host *host, const char *path)
{
	struct context *context = host->context;
	bool below = vt_mounts_below(&context->mounts_here, path);

	(void)noted(host, context->mounts_here.err); /* then it is taken to be so */
	return below;
}

/* path is what name in folder is. */
static bool can_idmap(const struct vt_host *host, int folder, const char *name, const char *path,
		      const struct vt_path *seen, uint64_t mount_id)
{
	struct context *context = host->context;
	uint64_t ino = 0;

	if (!host->privileged || host->id_count == 0 || vt_runtime_has(path) ||
	    !(S_ISDIR(seen->mode) || S_ISREG(seen->mode) || S_ISSOCK(seen->mode)))
		return false;
	if (S_ISDIR(seen->mode) && has_mounts(host, path))
		ino = seen->ino;
	for (size_t i = 0; i < context->mount_count; i++) {
		const struct mount_answer *known = &context->mounts[i];

		if (known->dev != seen->dev || known->mount_id != mount_id)
			continue;
		if (known->ino == ino)
			return known->idmap;
		/* What the mount itself does not take, no folder of it does. */
		if (known->ino == 0 && !known->idmap)
			return false;
	}
	int r = noted(host, try_idmap(context, host, folder, name));
	bool idmap = r == 0;

	/* A shortage says nothing about the mount: a host lives long, and would remember it. */
	if (r < 0 && vt_err_passes(-r))
		return false;
	if (context->mount_count < MAX_MOUNTS)
		context->mounts[context->mount_count++] = (struct mount_answer){ seen->dev,
										 mount_id, ino,
										 idmap };
	return idmap;
}

#define SEEN (STATX_BASIC_STATS | STATX_MNT_ID)

static struct vt_path describe(const struct statx *st, bool link)
{
	return (struct vt_path){
		.mode = st->stx_mode,
		.uid = st->stx_uid,
		.gid = st->stx_gid,
		.dev = makedev(st->stx_dev_major, st->stx_dev_minor),
		.ino = st->stx_ino,
		.link = link,
	};
}

static uint64_t mount_of(const struct statx *st)
{
	return st->stx_mask & STATX_MNT_ID ? st->stx_mnt_id : 0;
}

static int look(const struct vt_host *host, const char *path, struct vt_path *ret_path)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, SEEN, &st) < 0)
		return noted(host, -errno);
	bool link = S_ISLNK(st.stx_mode);

	if (link && statx(AT_FDCWD, path, 0, SEEN, &st) < 0)
		return noted(host, -errno);
	*ret_path = describe(&st, link);
	ret_path->idmap = can_idmap(host, AT_FDCWD, path, path, ret_path, mount_of(&st));
	return 0;
}

/* A folder, through no link. */
static int open_folder(const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	/* Not in a container, or a cell. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = vt_trust_open(AT_FDCWD, path, O_PATH | O_DIRECTORY);
	return fd < 0 ? -errno : (int)fd;
}

/*
 * The link that has a name, by a descriptor: its owner and where it leads are of one and the same.
 * What is in "/" nobody swaps but root, and each call asks for some of that.
 */
static int read_link(int folder, const char *name, struct statx *st, char *target, size_t size)
{
	const bool top = folder == AT_FDCWD;
	AUTO_CLOSE int fd = top ? -1 : openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (!top && (fd < 0 || statx(fd, "", AT_EMPTY_PATH, SEEN, st) < 0))
		return -errno;
	if (!S_ISLNK(st->stx_mode))
		return -ESTALE;
	ssize_t len = top ? readlink(name, target, size) : readlinkat(fd, "", target, size);

	if (len < 0 || (size_t)len >= size)
		return len < 0 ? -errno : -ENAMETOOLONG;
	target[len] = '\0';
	return 0;
}

int vt_paths_step(const struct vt_host *host, const char *path, struct vt_path *ret_path,
		  char *target, size_t size)
{
	const char *base = strrchr(path, '/');
	char around[PATH_MAX];
	struct statx st;

	if (path[0] != '/' || base - path >= PATH_MAX)
		return path[0] == '/' ? -ENAMETOOLONG : -EINVAL;
	(void)snprintf(around, sizeof(around), "%.*s", (int)(base - path), path); /* fits */
	/* On the way to what is in "/" there can be no link. */
	AUTO_CLOSE int folder = *around ? open_folder(around) : AT_FDCWD;
	const char *name = *around ? base + 1 : path;

	if (folder < 0 && folder != AT_FDCWD)
		return noted(host, folder);
	/* By its name, since only that has what is mounted there on demand. */
	if (statx(folder, name, AT_SYMLINK_NOFOLLOW, SEEN, &st) < 0)
		return noted(host, -errno);
	bool link = S_ISLNK(st.stx_mode);
	int r = link ? read_link(folder, name, &st, target, size) : 0;

	if (r < 0)
		return noted(host, r);
	*ret_path = describe(&st, link);
	ret_path->idmap = can_idmap(host, folder, name, path, ret_path, mount_of(&st));
	return 0;
}

int vt_paths_list(const struct vt_host *host, const char *path,
		  void (*each)(void *arg, const char *name), void *arg)
{
	DIR *dir = opendir(path);

	if (dir == NULL)
		return noted(host, -errno);
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(dir);

		if (entry == NULL)
			break;
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			each(arg, entry->d_name);
	}
	int r = -errno;

	(void)closedir(dir); /* only read from */
	return noted(host, r);
}

static int aliases(const struct vt_host *host, const char *path,
		   void (*each)(void *arg, const char *alias), void *arg)
{
	struct context *context = host->context;

	return noted(host, vt_mounts_aliases(&context->mounts_here, path, each, arg));
}

static int layer(const struct vt_host *host, const char *path, const struct vt_path *seen,
		 struct vt_layer *ret_layer)
{
	struct context *context = host->context;
	struct vt_layer answer;
	int r = vt_layer_try(host, path, seen, &context->layers, &answer);

	if (noted(host, r) < 0)
		return r;
	answer.submounts = has_mounts(host, path);
	*ret_layer = answer;
	return 0;
}

int vt_paths_init(struct vt_host *host)
{
	struct context *context = calloc(1, sizeof(*context));

	if (context == NULL)
		return -ENOMEM;
	context->userns_fd = -1;
	vt_mounts_init(&context->mounts_here);
	host->look = look;
	host->step = vt_paths_step;
	host->list = vt_paths_list;
	host->entries = vt_survey_entries;
	host->read_file = vt_survey_read;
	host->aliases = aliases;
	host->layer = layer;
	host->can_work = vt_layer_can_work;
	host->context = context;
	return 0;
}

void vt_host_look_anew(const struct vt_host *host)
{
	struct context *context = host->context;

	if (context && host->look == look) {
		vt_mounts_done(&context->mounts_here);
		vt_mounts_init(&context->mounts_here);
	}
}

int vt_host_trouble(const struct vt_host *host)
{
	struct context *context = host->context;
	int trouble = context && host->look == look ? context->trouble : 0;

	if (trouble)
		context->trouble = 0;
	return trouble;
}

void vt_paths_done(struct vt_host *host)
{
	struct context *context = host->context;

	if (context == NULL)
		return;
	vt_fd_close(&context->userns_fd);
	vt_mounts_done(&context->mounts_here);
	free(context);
	host->context = NULL;
}
