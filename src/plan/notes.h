/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be known of a plan beside its grades: sentences for a person, which `explain` prints
 * and results have some of. Pure; used by grade.c alone.
 */
#pragma once

#include "base/err.h"
#include "host/host.h"
#include "plan/plan.h"
#include "policy/policy.h"

/* Fills notes and ids_note, the plan's warnings among them. -ENOMEM. */
int vt_notes_make(struct vt_plan *plan, const struct vt_policy *policy, const struct vt_host *host,
		  struct vt_err *err);
