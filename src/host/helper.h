/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of vitro's own that are installed beside it: vitro-escape, which the self-test runs, and
 * vitro-object, which loads shared objects. And files that interpreters load, in the folder python.
 */
#pragma once

#include <limits.h>

#include "base/err.h"

/*
 * Where one is, free of links. One that others than root, the caller and those who can replace vitro
 * itself may write is refused: -EPERM. -ENOENT: it is not there.
 */
int vt_helper_find(const char *name, char path[PATH_MAX], struct vt_err *err);

/* The same of a file that a program of somebody else's loads: it must be readable. */
int vt_helper_find_file(const char *name, char path[PATH_MAX], struct vt_err *err);
