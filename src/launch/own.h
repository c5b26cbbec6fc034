/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no other live cell has: its ids on the host, and the name of its private folder. The
 * supervisor and the child ask the same, each for itself, so that neither has to tell the other. No
 * malloc, no stdio: it runs between clone and exec, too.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "plan/plan.h"

/* The host ids that a cell has. */
struct vt_outer {
	uid_t uid;
	gid_t gid;
};

/* Those of the cell whose owner is this process: no two live ones have the same. */
struct vt_outer vt_own_ids(const struct vt_plan *plan, pid_t owner);

/* The private folder of a pool's bare cell: PATH_MAX bytes at the most, with the last one's NUL. */
void vt_own_scratch(const struct vt_plan *plan, uint64_t cell, char *ret_path);
