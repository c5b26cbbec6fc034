/* SPDX-License-Identifier: Apache-2.0 */
/* The occupant's environment: nothing is inherited but what the policy passes. Pure. */
#pragma once

#include "base/arena.h"
#include "host/command.h"
#include "policy/policy.h"

/*
 * A NULL-terminated array of "NAME=value" from arena, or NULL when out of memory. scratch is a
 * private folder that stands in for /tmp; NULL: there is a /tmp.
 */
char **vt_environment_make(struct vt_arena *arena, const struct vt_policy *policy,
			   char *const *caller, const struct vt_command *command,
			   const char *scratch);
