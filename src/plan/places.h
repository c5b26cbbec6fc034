/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is where in the new root: the user's grants, the system's runtime, the command's own prefix,
 * and what every cell has of its own. Pure; used by plan.c alone.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/command.h"
#include "host/host.h"
#include "plan/plan.h"
#include "policy/policy.h"

/*
 * Fills the part of the plan that is about the root. command may be NULL. *ret_foreign: folders are
 * there that are neither the system's nor the cell's own.
 */
int vt_places_decide(struct vt_plan *plan, const struct vt_policy *policy,
		     const struct vt_host *host, const struct vt_command *command,
		     bool *ret_foreign, struct vt_err *err);
