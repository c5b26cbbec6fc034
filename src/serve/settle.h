/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the cells of a session's pools can be made in namespaces, by trying. */
#pragma once

#include "base/err.h"
#include "host/host.h"
#include "policy/policy.h"

/*
 * Lets the host learn what stands against it, so that a plan for a pool is one that can be carried
 * out: without namespaces, where a cell cannot be built in them, or where a pool could not be and a
 * single cell can. Fails where no cell can be made at all, or no pool of either kind, and says why.
 */
int vt_serve_settle(struct vt_policy *policy, struct vt_host *host, struct vt_err *err);
