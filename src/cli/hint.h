/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about a command that failed, as far as its arguments and its last words tell. */
#pragma once

#include <stddef.h>

#include "base/str.h"
#include "plan/plan.h"
#include "policy/policy.h"

/* Adds a path, or its beginning, as a shell takes it for one word. */
void vt_hint_add_path(struct vt_str *out, const char *path, size_t len);

/*
 * Adds a sentence about the first argument, or word in one, that exists here and that the command
 * did not get to, as long as said, the end of the command's standard error, names it; else one that
 * there is such a name in said, without it; else one about a missing network, what cannot be
 * written, or a limit, where it has the words of such an error; else nothing. said is the cell's,
 * may hold anything, and is only searched: no name in a hint is of its choice.
 */
void vt_hint_make(const struct vt_plan *plan, enum vt_network network, char *const *argv,
		  const char *said, size_t len, struct vt_str *out);
