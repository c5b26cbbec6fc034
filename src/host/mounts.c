/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mounts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

/* The names in mountinfo have blanks and backslashes as octal numbers. In place. */
static void unescape(char *name)
{
	char *to = name;

	for (const char *from = name; *from; to++) {
		unsigned code;

		if (from[0] == '\\' && sscanf(from + 1, "%3o", &code) == 1) {
			*to = (char)code;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static void add_text(struct vt_str *texts, const char *text)
{
	vt_str_addn(texts, text, strlen(text) + 1);
}

int vt_mounts_read(struct vt_mounts *mounts, FILE *file)
{
	struct vt_str *texts = &mounts->texts;
	/* Four characters may stand for one. */
	char id[32], parent[32], device[32], root[4 * PATH_MAX], point[4 * PATH_MAX];
	char *line = NULL;
	size_t size = 0;

	errno = 0;
	/* "36 35 98:0 /root /mount-point options ..." */
	while (getline(&line, &size, file) > 0) {
		if (sscanf(line, "%31s %31s %31s %16383s %16383s", id, parent, device, root,
			   point) != 5)
			continue;
		unescape(root);
		unescape(point);
		add_text(texts, id);
		add_text(texts, parent);
		add_text(texts, device);
		add_text(texts, root);
		add_text(texts, point);
	}
	int r = !feof(file) || ferror(file) ? -(errno ? errno : EIO) : 0;

	free(line);
	if (r == 0 && !vt_str_ok(texts))
		r = -ENOMEM;
	/* A part of them would hide other names of what is denied. */
	if (r < 0) {
		vt_mounts_done(mounts);
		vt_mounts_init(mounts);
	}
	mounts->err = r;
	return r;
}

static int read_own(struct vt_mounts *mounts)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");

	if (!file)
		return mounts->err = -errno;
	int r = vt_mounts_read(mounts, file);

	(void)fclose(file); /* only read from */
	return r;
}

struct mount {
	const char *id, *parent, *device, *root, *point;
};

/* The mount after another, or the first after none. */
static bool next_mount(const struct vt_str *texts, struct mount *mount)
{
	const char *at = mount->point ? mount->point + strlen(mount->point) + 1 : texts->text;

	if (at >= texts->text + texts->len)
		return false;
	mount->id = at;
	mount->parent = mount->id + strlen(mount->id) + 1;
	mount->device = mount->parent + strlen(mount->parent) + 1;
	mount->root = mount->device + strlen(mount->device) + 1;
	mount->point = mount->root + strlen(mount->root) + 1;
	return true;
}

void vt_mounts_init(struct vt_mounts *mounts)
{
	vt_str_init(&mounts->texts);
	mounts->err = 0;
}

void vt_mounts_done(struct vt_mounts *mounts)
{
	vt_str_done(&mounts->texts);
}

bool vt_mounts_know(struct vt_mounts *mounts)
{
	return mounts->texts.len > 0 || (read_own(mounts) == 0 && mounts->texts.len > 0);
}

bool vt_mounts_below(struct vt_mounts *mounts, const char *path)
{
	struct mount mount = { 0 };

	if (!vt_mounts_know(mounts) || path[0] != '/')
		return true;
	while (next_mount(&mounts->texts, &mount))
		if (vt_path_lies_in(mount.point, path) && strcmp(mount.point, path) != 0)
			return true;
	return false;
}

/* Whether a mount is on another; on none: the one that it is on is not to be seen from here. */
static bool is_on(const struct vt_str *texts, const struct mount *mount, const struct mount *below)
{
	struct mount other = { 0 };

	if (below->point)
		return strcmp(mount->parent, below->id) == 0;
	while (next_mount(texts, &other))
		if (strcmp(mount->parent, other.id) == 0 && other.point != mount->point)
			return false;
	return true;
}

/*
 * The mount that a path is on, as the kernel walks: from each mount to the first on the way that is
 * on it. By names alone it could be one that is hidden, since another was mounted above it later.
 */
static struct mount mount_of(const struct vt_str *texts, const char *path)
{
	struct mount found = { 0 };

	for (;;) {
		struct mount mount = { 0 }, next = { 0 };

		while (next_mount(texts, &mount))
			if (vt_path_lies_in(path, mount.point) && is_on(texts, &mount, &found) &&
			    (!next.point || strlen(mount.point) <= strlen(next.point)))
				next = mount;
		if (!next.point || next.point == found.point)
			return found;
		found = next;
	}
}

/* What is left of a path below a folder that it lies in, with its '/'; "" is the folder itself. */
static const char *rest_of(const char *path, const char *folder)
{
	return strcmp(folder, "/") == 0 ? (path[1] ? path : "") : path + strlen(folder);
}

/* A path of two parts, of which the first may be the root. */
static bool join(char buf[PATH_MAX], const char *folder, const char *rest)
{
	const char *first = strcmp(folder, "/") == 0 && *rest ? "" : folder;

	return snprintf(buf, PATH_MAX, "%s%s", first, rest) < PATH_MAX;
}

/* Something of a file system, which a mount shows. */
struct shown {
	struct mount mount;
	const char *inside; /* as the file system itself names it */
	const char *path;   /* that was asked for */
};

static int tell_aliases(const struct vt_str *texts, const struct shown *shown,
			void (*each)(void *arg, const char *alias), void *arg)
{
	char alias[PATH_MAX];
	struct mount other = { 0 };

	while (next_mount(texts, &other)) {
		if (other.point == shown->mount.point ||
		    strcmp(other.device, shown->mount.device) != 0)
			continue;
		bool around = vt_path_lies_in(shown->inside, other.root);

		if (!around && !vt_path_lies_in(other.root, shown->inside))
			continue;
		if (!join(alias, other.point, around ? rest_of(shown->inside, other.root) : ""))
			return -ENAMETOOLONG;
		/* What lies in it is no other name, and what is covered by another mount is not to
		 * be seen there. */
		if (!vt_path_lies_in(alias, shown->path) &&
		    mount_of(texts, alias).point == other.point)
			each(arg, alias);
	}
	return 0;
}

int vt_mounts_aliases(struct vt_mounts *mounts, const char *path,
		      void (*each)(void *arg, const char *alias), void *arg)
{
	const struct vt_str *texts = &mounts->texts;
	char inside[PATH_MAX];
	struct mount below = { 0 };

	if (!vt_mounts_know(mounts))
		return mounts->err ? mounts->err : -EIO;
	if (path[0] != '/')
		return -EINVAL;
	const struct mount own = mount_of(texts, path);

	if (!own.point || !join(inside, own.root, rest_of(path, own.point)))
		return -EIO;
	int r = tell_aliases(texts, &(struct shown){ own, inside, path }, each, arg);

	/* Of what is mounted in it, the other names are its own, too. */
	while (r == 0 && next_mount(texts, &below))
		if (below.point != own.point && vt_path_lies_in(below.point, path) &&
		    mount_of(texts, below.point).point == below.point)
			r = tell_aliases(texts, &(struct shown){ below, below.root, path }, each,
					 arg);
	return r;
}
