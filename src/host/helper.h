/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of vitro's own that are installed beside it: vitro-escape, which the self-test runs, and
 * vitro-object, which loads shared objects. And files that interpreters load, in a folder for each
 * language.
 */
#pragma once

#include <limits.h>

#include "base/err.h"

/*
 * Where one is, free of links. One that others than root, the caller and those who can replace
 * vitro itself may write is refused: -EPERM. -ENOENT: it is not there.
 */
int vt_helper_find(const char *name, char path[PATH_MAX], struct vt_err *err);

/* The same of a file that a program of somebody else's loads: it must be readable. */
int vt_helper_find_file(const char *name, char path[PATH_MAX], struct vt_err *err);

/*
 * Calls each with all that decides where one of that name is found: vitro's own program, and every
 * place that is looked at for it. A place that is not there is named, free of links, by the first
 * part of it that is missing. What each returns, if it is not 0, ends it and is returned.
 */
int vt_helper_follow(const char *name, int (*each)(void *arg, const char *path, struct vt_err *err),
		     void *arg, struct vt_err *err);
