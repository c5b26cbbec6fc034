/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a program by its name, as a shell would: by its path, or on PATH, through the shims of
 * pyenv. What it needs beside it is command.c's to find, which alone uses this.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

enum { VT_MAX_BIN_DIRS = 11 }; /* one for each program that is looked for: two for each of 5
				  scripts */

struct vt_bin_dir {
	const char *path;
	size_t      order; /* its place on search_path */
};

struct vt_finder {
	struct vt_arena  *arena;
	const char       *search_path;   /* the caller's PATH; NULL: the default one */
	const char       *cwd;           /* NULL: it is gone */
	const char       *pyenv_version; /* may be NULL */
	struct vt_bin_dir bin_dirs[VT_MAX_BIN_DIRS]; /* where programs were found on PATH */
	size_t            bin_dir_count;
	struct vt_err    *err;
};

/*
 * By path or on PATH. asker is the script that wants it, or NULL. Fills err, as nothing else here
 * but vt_finder_list() does.
 */
int vt_finder_find(struct vt_finder *finder, const char *name, const char *asker,
		   const char **ret_path);

/*
 * The folders to put in front of PATH inside, in its order, without those of the system that are
 * last.
 */
int vt_finder_list(const struct vt_finder *finder, const char ***ret_dirs, size_t *ret_count);

/*
 * name as an absolute path: against dir, and without detours, for inside the cell the folders that
 * a detour passes through may not exist. The last part stays a link if it is one.
 */
int vt_finder_absolute(const struct vt_finder *finder, const char *dir, const char *name,
		       const char **ret_path);

/* 0, or why the kernel would not execute it; -EPERM where a folder around it is closed to us. */
int vt_finder_check(const char *path);

/*
 * dirname and basename of an absolute path without a '/' at its end, in the arena. NULL: no memory.
 */
const char *vt_finder_dir(const struct vt_finder *finder, const char *path);
const char *vt_finder_base(const char *path);

/* dir/name, in the arena. NULL: no memory. */
const char *vt_finder_join(const struct vt_finder *finder, const char *dir, const char *name);
