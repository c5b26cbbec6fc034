/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy denies, decided on the finished tree of the new root: what lies in a deny as a
 * whole is taken out of it, and a folder with a deny somewhere inside gets a veil. A deny that no
 * veil can hold is refused. Pure; used by places.c alone.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"
#include "plan/root.h"
#include "policy/policy.h"

/* Changes the tree, and counts the plan's veils. */
int vt_deny_decide(struct vt_root *root, const struct vt_policy *policy, struct vt_plan *plan,
		   struct vt_err *err);
