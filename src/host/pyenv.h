/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyenv's choice, made without running it: its shims are shell scripts that take 120 ms, and inside
 * a cell there is no pyenv to run. Used by finder.c alone.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"

/* Whether dir is pyenv's folder of shims: it is called so, and versions are beside it. */
bool vt_pyenv_is_shims(const char *dir);

/*
 * The program that the shim stands for, from the versions that `version` (PYENV_VERSION, may be
 * NULL) names, else .python-version in cwd or a folder around it, else PYENV_ROOT/version.
 * *ret_path is NULL where it is the system's: then the rest of PATH decides.
 */
int vt_pyenv_find(struct vt_arena *arena, const char *shims, const char *name, const char *version,
		  const char *cwd, const char **ret_path);
