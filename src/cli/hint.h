/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about a command that failed, as far as its arguments and its last words tell. */
#pragma once

#include <stddef.h>

#include "base/str.h"
#include "plan/plan.h"
#include "policy/policy.h"

/*
 * Adds a sentence about the first argument, or word in one, that exists here and that the command did not get to,
 * as long as said, the end of the command's standard error, names it; else one about a missing network, what
 * cannot be written, or a limit, where it has the words of such an error; else nothing.
 * said is the cell's, may hold anything, and is only searched: no name in a hint is of its choice.
 */
void vt_hint_make(const struct vt_plan *plan, enum vt_network network, char *const *argv,
		  const char *said, size_t len, struct vt_str *out);
