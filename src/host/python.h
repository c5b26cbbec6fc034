/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds Python functions ready: files in the folder python beside vitro, which an interpreter of the
 * caller's choice loads. Not every vitro is built with them.
 */
#pragma once

#include <limits.h>

#include "base/err.h"

/*
 * Where zygote.py is, free of links. -ENOENT: it is not there, or its extension is not; -EPERM: others may
 * write to it, or to some of what is beside it.
 */
int vt_python_find(char path[PATH_MAX], struct vt_err *err);

/*
 * Calls each with all that decides what zygotes of Python load of vitro's: as vt_helper_follow() does for the
 * folder, and with every link in it.
 */
int vt_python_follow(int (*each)(void *arg, const char *path, struct vt_err *err), void *arg,
		     struct vt_err *err);

/*
 * Whether everyone can go where the interpreter lies, and where links on the way to it lead: -EPERM, of
 * VT_STEP_PLAN, if not. For cells in the host's own folders.
 */
int vt_python_check_open(const char *path, struct vt_err *err);
