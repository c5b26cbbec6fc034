/* SPDX-License-Identifier: Apache-2.0 */
#include "host/helper.h"

#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* From the folder of vitro's own program; set by the build, as they are installed. */
#ifndef VITRO_HELPER_DIR
#define VITRO_HELPER_DIR "../libexec/vitro"
#endif

/* Where this program is. Without a /proc, as it was started. */
static int find_self(char path[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (len > 0) {
		path[len] = '\0';
		return 0;
	}
	const char *started = (const char *)getauxval(AT_EXECFN);

	return started && realpath(started, path) ? 0 : -ENOENT;
}

/* Whether only root, the caller and those who can replace vitro itself can write there. */
static bool is_trusted(const struct stat *st, const struct stat *self)
{
	bool sticky = S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX;
	bool group = self->st_mode & S_IWGRP && st->st_gid == self->st_gid;

	if (st->st_uid != 0 && st->st_uid != geteuid() && st->st_uid != self->st_uid)
		return false;
	if (sticky)
		return true;
	return !(st->st_mode & S_IWOTH) && (group || !(st->st_mode & S_IWGRP));
}

/* A program at a real path: it, and every folder on the way to it. */
static int check_program(const char *path, const struct stat *self, struct vt_err *err)
{
	char at[PATH_MAX];
	struct stat st;

	(void)snprintf(at, sizeof(at), "%s", path); /* fits */
	for (;;) {
		if (stat(at, &st) < 0)
			return vt_fail(err, VT_STEP_COMMAND, errno, "look at '%s'", at);
		if (!is_trusted(&st, self))
			return vt_fail(err, VT_STEP_COMMAND, EPERM,
				       "refused: '%s' is not run, since others may write '%s'",
				       path, at);
		if (strcmp(at, "/") == 0)
			return 0;
		(void)dirname(at);
	}
}

static const char *const places[] = { VITRO_HELPER_DIR, ".", "test" };

/* Where it would be in a place; what is cut is not there. */
static void name_place(const char *folder, const char *place, const char *name,
		       char named[2 * PATH_MAX])
{
	if (*place == '/')
		(void)snprintf(named, (size_t)2 * PATH_MAX, "%s/%s", place, name);
	else if (strcmp(place, ".") == 0)
		(void)snprintf(named, (size_t)2 * PATH_MAX, "%s/%s", folder, name);
	else
		(void)snprintf(named, (size_t)2 * PATH_MAX, "%s/%s/%s", folder, place, name);
}

static int find(const char *name, int mode, char path[PATH_MAX], struct vt_err *err)
{
	char self[PATH_MAX], named[2 * PATH_MAX];
	struct stat st;

	if (find_self(self) < 0 || stat(self, &st) < 0)
		return vt_fail(err, VT_STEP_COMMAND, ENOENT,
			       "cannot find %s: vitro's own program is not found", name);
	const char *folder = dirname(self);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		name_place(folder, places[i], name, named);
		if (realpath(named, path) && access(path, mode) == 0)
			return check_program(path, &st, err);
	}
	return vt_fail(err, VT_STEP_PLAN, ENOENT,
		       "%s is not in '%s/%s', where make install puts it", name, folder,
		       VITRO_HELPER_DIR);
}

int vt_helper_find(const char *name, char path[PATH_MAX], struct vt_err *err)
{
	return find(name, X_OK, path, err);
}

int vt_helper_find_file(const char *name, char path[PATH_MAX], struct vt_err *err)
{
	return find(name, R_OK, path, err);
}

/* Cuts the path down to what is there; real becomes that, and the part that is missing behind it.
 */
static bool find_missing(char named[2 * PATH_MAX], char real[2 * PATH_MAX])
{
	char *slash, part[NAME_MAX + 1];

	while ((slash = strrchr(named, '/')) && slash > named) {
		(void)snprintf(part, sizeof(part), "%s", slash + 1); /* no name is longer */
		*slash = '\0';
		if (realpath(named, real)) {
			size_t len = strlen(real);

			(void)snprintf(real + len, (size_t)2 * PATH_MAX - len, "/%s",
				       part); /* fits */
			return true;
		}
	}
	return false;
}

int vt_helper_follow(const char *name, int (*each)(void *arg, const char *path, struct vt_err *err),
		     void *arg, struct vt_err *err)
{
	char self[PATH_MAX], named[2 * PATH_MAX], real[2 * PATH_MAX];

	if (find_self(self) < 0)
		return 0; /* nor is anything found by it */
	int r = each(arg, self, err);
	const char *folder = dirname(self);

	for (size_t i = 0; r == 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		name_place(folder, places[i], name, named);
		bool is_there = realpath(named, real) != NULL;

		/* With the links on the way to it. */
		r = each(arg, named, err);
		if (is_there)
			return r;
		if (r == 0 && find_missing(named, real))
			r = each(arg, real, err);
	}
	return r;
}
