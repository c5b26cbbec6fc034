/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a root is built once for all cells of a pool, and what in each. Pure.
 *
 * The hull has everything that the host shows and that nobody can change. A cell starts with a copy
 * of its mounts, and gets what is its own: a tmpfs for its writable folders, with whatever lies
 * below them, a proc, and its masks. What was mounted from the host below such a folder is mounted
 * aside in the hull, where cells take it from before they cover the place.
 */
#pragma once

#include "host/host.h"
#include "plan/plan.h"

/*
 * Where the cell's tmpfs is attached while folders of it are mounted, in the root. Empty otherwise.
 */
#define VT_POOLED_STAGE ".vitro"

/*
 * Whether what cells can write can be kept from the pool's zygotes. It can where cells write
 * nothing; or where there are mounts, and all names of what they write are known, so that these can
 * be covered (launch/cover.h). Not all are known where the host mounts such a folder, or a part of
 * it, at a second place that is granted for reading. And a cover does not last over a single file
 * of it that is granted at another place. To be asked before the builds are divided.
 */
bool vt_pooled_loads_ahead(const struct vt_plan *plan, const struct vt_host *host);

/* Divides the builds of a plan with namespaces. */
int vt_pooled_divide(struct vt_plan *plan, struct vt_err *err);
