/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the occupant can get to where it begins and to what it is granted, and to no other call's
 * private folder, as far as that can be seen beforehand. Pure.
 */
#pragma once

#include "base/err.h"
#include "host/host.h"
#include "plan/plan.h"
#include "policy/policy.h"

/*
 * Refuses a working directory that is not there inside, is denied, or is no folder. Where the
 * cell's user is nobody's owner and ids cannot be mapped, refuses also what only an owner gets to,
 * and warns of folders for writing that only an owner writes. Where it is the caller, refuses to
 * have the place written that private folders are made in, or warns of that. plan's root, kind, ids
 * and cwd are decided; what its cwd is on the host is noted.
 */
int vt_reach_check(struct vt_plan *plan, const struct vt_policy *policy, const struct vt_host *host,
		   struct vt_err *err);
