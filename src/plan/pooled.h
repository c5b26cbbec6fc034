/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a root is built once for all cells of a pool, and what in each. Used by plan.c alone.
 *
 * The hull has everything that the host shows and that nobody can change. A cell starts with a copy of
 * its mounts, and gets what is its own: a tmpfs for its writable folders, with whatever lies below them,
 * a proc, and its masks. What was mounted from the host below such a folder is mounted aside in the hull,
 * where cells take it from before they cover the place.
 */
#pragma once

#include "plan/plan.h"

/* Where the cell's tmpfs is attached while folders of it are mounted, in the root. Empty otherwise. */
#define VT_POOLED_STAGE ".vitro"

/* Divides the builds of a plan with namespaces. */
int vt_pooled_divide(struct vt_plan *plan, struct vt_err *err);
