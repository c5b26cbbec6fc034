/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about a command that failed, as far as its arguments and its last words tell. */
#pragma once

#include <stddef.h>

#include "base/str.h"
#include "plan/plan.h"

/*
 * Adds a sentence about the first argument that exists here and that the command did not get to, as long as
 * said, the end of the command's standard error, names it; else one about missing sockets or a limit, where it
 * has the words of such an error; else nothing.
 * said is the cell's, may hold anything, and is only searched.
 */
void vt_hint_make(const struct vt_plan *plan, char *const *argv, const char *said, size_t len,
		  struct vt_str *out);
