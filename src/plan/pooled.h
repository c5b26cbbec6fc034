/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a root is built once for all cells of a pool, and what in each. Pure.
 *
 * The hull has everything that the host shows and that nobody can change. A cell starts with a copy of
 * its mounts, and gets what is its own: a tmpfs for its writable folders, with whatever lies below them,
 * a proc, and its masks. What was mounted from the host below such a folder is mounted aside in the hull,
 * where cells take it from before they cover the place.
 */
#pragma once

#include "host/host.h"
#include "plan/plan.h"

/* Where the cell's tmpfs is attached while folders of it are mounted, in the root. Empty otherwise. */
#define VT_POOLED_STAGE ".vitro"

/*
 * Whether what cells can write can be kept from the pool's zygotes: there is nothing of that; or there are mounts, and all names are
 * known under which it is to be seen, so that they can be covered (launch/cover.h). They are not where the host mounts such a folder,
 * or a part of it, at a second place that is granted for reading; nor is one file of it covered for long that is granted to be elsewhere. Before the builds are divided.
 */
bool vt_pooled_loads_ahead(const struct vt_plan *plan, const struct vt_host *host);

/* Divides the builds of a plan with namespaces. */
int vt_pooled_divide(struct vt_plan *plan, struct vt_err *err);
