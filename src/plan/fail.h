/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that several decisions share, so that users read the same words for the same thing. */
#pragma once

#include "base/err.h"

/* Out of memory. */
int vt_plan_nomem(struct vt_err *err);

/*
 * The other names of a path, by the host's mounts, could not be found out: r is what
 * host->aliases() returned, and origin the field or flag that needs them. Always refused: a call
 * could reach the path by such a name.
 */
int vt_plan_fail_aliases(const char *origin, const char *path, int r, struct vt_err *err);
