/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rig.h"

/* Namespaces by their name in /proc, and the option of bubblewrap that makes one. */
static const struct {
	const char *name, *option;
} namespaces[] = {
	{ "user", "--unshare-user" }, { "pid", "--unshare-pid" }, { "net", "--unshare-net" },
	{ "ipc", "--unshare-ipc" },   { "uts", "--unshare-uts" }, { "cgroup", "--unshare-cgroup" },
};

enum { NAMESPACES = sizeof(namespaces) / sizeof(namespaces[0]) };

/* Links in the root of a system whose /usr is merged. */
static const char *const root_links[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };

struct line {
	char device[32], at[PATH_MAX], options[256], type[64];
};

/* "ID PARENT DEVICE ROOT AT OPTIONS [TAGS...] - TYPE SOURCE OPTIONS". */
static bool parse_line(const char *text, struct line *ret_line)
{
	const char *type = strstr(text, " - ");

	return sscanf(text, "%*d %*d %31s %*s %4095s %255s", ret_line->device, ret_line->at,
		      ret_line->options) == 3 &&
	       type && sscanf(type, " - %63s", ret_line->type) == 1;
}

static bool is_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	return strncmp(path, folder, len) == 0 && path[len] == '/';
}

/* A mount below a granted folder came with it, and comes with it for others too. */
static bool came_along(const struct mounts *mounts, const char *path)
{
	for (size_t i = 0; i < mounts->count; i++)
		if (mounts->items[i].kind == MOUNT_BIND && is_below(path, mounts->items[i].at))
			return true;
	return false;
}

static void mounts_add(struct mounts *mounts, enum mount_kind kind, const char *at, bool writable,
		       bool folder)
{
	mounts->items = need(realloc(mounts->items, (mounts->count + 1) * sizeof(*mounts->items)));
	mounts->items[mounts->count++] = (struct mount){
		.kind = kind,
		.at = need(strdup(at)),
		.writable = writable,
		.folder = folder,
	};
}

static bool has_proc(const struct mounts *mounts)
{
	for (size_t i = 0; i < mounts->count; i++)
		if (mounts->items[i].kind == MOUNT_PROC)
			return true;
	return false;
}

static void add_line(struct mounts *mounts, const struct line *line, const char *root_device)
{
	bool writable = strncmp(line->options, "rw", 2) == 0;
	struct stat st;

	if (strcmp(line->at, "/proc") == 0) {
		/* a pool's cell covers its hull's */
		if (!has_proc(mounts))
			mounts_add(mounts, MOUNT_PROC, line->at, false, true);
		return;
	}
	if (is_below(line->at, "/proc")) {
		/* gone since, or never here: then others need no mask either */
		if (stat(line->at, &st) == 0)
			mounts_add(mounts, MOUNT_MASK, line->at, false, S_ISDIR(st.st_mode));
		return;
	}
	if (strcmp(line->device, root_device) == 0) {
		mounts_add(mounts, MOUNT_SCRATCH, line->at, true, true);
		return;
	}
	if (came_along(mounts, line->at))
		return;
	if (stat(line->at, &st) < 0)
		die("the cell has a mount at %s, which the host has not: %s", line->at,
		    strerror(errno));
	mounts_add(mounts, S_ISCHR(st.st_mode) ? MOUNT_DEVICE : MOUNT_BIND, line->at, writable,
		   S_ISDIR(st.st_mode));
}

static void add_links(struct mounts *mounts)
{
	for (size_t i = 0; i < sizeof(root_links) / sizeof(root_links[0]); i++) {
		char target[PATH_MAX];
		ssize_t len = readlink(root_links[i], target, sizeof(target) - 1);

		if (len < 0)
			continue;
		target[len] = '\0';
		mounts->links[mounts->link_count] = need(strdup(root_links[i]));
		mounts->targets[mounts->link_count++] = need(strdup(target));
	}
}

void mounts_read(char *text, struct mounts *ret_mounts)
{
	struct mounts mounts = { 0 };
	char root_device[32] = "", *rest = text;

	for (char *row; (row = strsep(&rest, "\n")) && *row;) {
		struct line line;

		if (!parse_line(row, &line))
			die("a line of mountinfo that makes no sense: %s", row);
		if (strcmp(line.at, "/") == 0)
			(void)snprintf(root_device, sizeof(root_device), "%s", line.device);
		else
			add_line(&mounts, &line, root_device);
	}
	if (mounts.count == 0)
		die("the cell has no mounts");
	add_links(&mounts);
	*ret_mounts = mounts;
}

void mounts_of_cell(const char *vitro, struct mounts *ret_mounts)
{
	struct words argv = { 0 };

	words_add(&argv, vitro);
	words_add(&argv, "run");
	words_add(&argv, "--");
	words_add(&argv, "/bin/cat");
	words_add(&argv, "/proc/self/mountinfo");
	char *text = output_of(argv.items);

	mounts_read(text, ret_mounts);
	free(text);
}

void mounts_extend(const struct mounts *base, char *const *folders, size_t count,
		   struct mounts *ret_mounts)
{
	struct mounts mounts = *base;

	mounts.items = NULL;
	mounts.count = 0;
	for (size_t i = 0; i < base->count; i++)
		mounts_add(&mounts, base->items[i].kind, base->items[i].at, base->items[i].writable,
			   base->items[i].folder);
	for (size_t i = 0; i < count; i++)
		mounts_add(&mounts, MOUNT_BIND, folders[i], false, true);
	*ret_mounts = mounts;
}

/* Adds the option for each namespace that the cell does not share with us. */
static void add_namespaces(struct words *bwrap, const char *vitro)
{
	struct words argv = { 0 };

	words_add(&argv, vitro);
	words_add(&argv, "run");
	words_add(&argv, "--");
	words_add(&argv, "/bin/readlink");
	for (size_t i = 0; i < NAMESPACES; i++)
		words_addf(&argv, "/proc/self/ns/%s", namespaces[i].name);
	char *text = output_of(argv.items), *rest = text;

	for (size_t i = 0; i < NAMESPACES; i++) {
		char path[64], ours[64];
		char *theirs = strsep(&rest, "\n");

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", namespaces[i].name);
		ssize_t len = readlink(path, ours, sizeof(ours) - 1);

		if (len < 0 || !theirs || !*theirs)
			die("read %s: %s", path, len < 0 ? strerror(errno) : "not in the cell");
		ours[len] = '\0';
		if (strcmp(ours, theirs) != 0)
			words_add(bwrap, namespaces[i].option);
	}
	free(text);
}

static void add_mount(struct words *bwrap, const struct mount *mount)
{
	switch (mount->kind) {
	case MOUNT_BIND:
		words_add(bwrap, mount->writable ? "--bind" : "--ro-bind");
		words_add(bwrap, mount->at);
		break;
	case MOUNT_DEVICE:
		words_add(bwrap, "--dev-bind");
		words_add(bwrap, mount->at);
		break;
	case MOUNT_SCRATCH:
		words_add(bwrap, "--tmpfs");
		break;
	case MOUNT_PROC:
		words_add(bwrap, "--proc");
		break;
	case MOUNT_MASK:
		words_add(bwrap, mount->folder ? "--tmpfs" : "--ro-bind");
		if (!mount->folder)
			words_add(bwrap, "/dev/null");
		break;
	}
	words_add(bwrap, mount->at);
}

char **bwrap_argv(const char *vitro, const struct mounts *mounts, const char *program)
{
	struct words bwrap = { 0 };

	words_add(&bwrap, "/usr/bin/bwrap");
	add_namespaces(&bwrap, vitro);
	words_add(&bwrap, "--die-with-parent");
	words_add(&bwrap, "--new-session");
	words_add(&bwrap, "--clearenv");
	words_add(&bwrap, "--cap-drop");
	words_add(&bwrap, "ALL");
	for (size_t i = 0; i < mounts->count; i++)
		add_mount(&bwrap, &mounts->items[i]);
	for (size_t i = 0; i < mounts->link_count; i++) {
		words_add(&bwrap, "--symlink");
		words_add(&bwrap, mounts->targets[i]);
		words_add(&bwrap, mounts->links[i]);
	}
	words_add(&bwrap, "--remount-ro");
	words_add(&bwrap, "/");
	words_add(&bwrap, "--");
	if (program)
		words_add(&bwrap, program);
	return bwrap.items;
}
