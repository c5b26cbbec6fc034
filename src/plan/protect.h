/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that programs of the host run or trust for being there: the configuration and hooks of a
 * git repository, what an editor or an agent reads where it starts, what a shell reads in a home.
 * In a folder granted for writing a call must not change them, or it runs code on the host with the
 * next `git status`. This decides which these are, once per plan, by asking the host;
 * launch/guard.h holds them. Pure; used by plan.c alone.
 *
 * It also has the folders around a grant for reading inside one for writing, which would not hold
 * if the cell could rename them.
 */
#pragma once

#include "base/err.h"
#include "host/host.h"
#include "plan/plan.h"
#include "policy/policy.h"

/*
 * Adds guards to the plan's builds, once these are listed. environ is the caller's. -EPERM: what
 * the policy wants cannot be held here.
 */
int vt_protect_decide(struct vt_plan *plan, const struct vt_policy *policy,
		      const struct vt_host *host, char *const *environ, struct vt_err *err);
