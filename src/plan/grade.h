/* SPDX-License-Identifier: Apache-2.0 */
/* How well each restriction of a plan holds on this host, and whether that is enough. Pure. */
#pragma once

#include "base/err.h"
#include "host/host.h"
#include "plan/plan.h"
#include "policy/policy.h"

/*
 * Fills holdings, level and notes. -EPERM where what the policy requires does not hold: the text
 * names the key, the reason, and what would run it all the same.
 */
int vt_grade_plan(struct vt_plan *plan, const struct vt_policy *policy, const struct vt_host *host,
		  struct vt_err *err);

/* Whether a property holds as well as that requires. One that is not asked for does. */
bool vt_grade_suffices(const struct vt_holding *holding, enum vt_property property,
		       enum vt_require require);
