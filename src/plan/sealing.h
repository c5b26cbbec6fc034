/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds an occupant that runs code of its own, beside the namespaces: the rules of Landlock,
 * the system call filters in their order, who answers for calls that they stop, and what ends a
 * cell without a pid namespace. launch/seal.c does as it is decided here. Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/host.h"
#include "plan/plan.h"
#include "policy/policy.h"

/*
 * Decides it for a plan whose root and ids are decided. foreign: folders that are neither the
 * system's nor the cell's own are there, and may hold sockets of the host's.
 */
int vt_sealing_decide(struct vt_plan *plan, const struct vt_policy *policy,
		      const struct vt_host *host, bool foreign, struct vt_err *err);
