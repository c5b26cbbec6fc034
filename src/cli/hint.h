/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about a command that failed, as far as its arguments and its last words tell. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "plan/plan.h"
#include "policy/policy.h"

/* Adds a path, or its beginning, as a shell takes it for one word. */
void vt_hint_add_path(struct vt_str *out, const char *path, size_t len);

/*
 * Whether code of an evaluation is the name of a file in the current folder. Code is told nothing
 * of other folders, nor of where a link leads.
 */
bool vt_hint_is_file(const char *code);

/*
 * Adds a sentence about the first argument, or word in one, that exists here and that the command
 * did not get to, as long as said, the end of the command's standard error, names it; else one that
 * there is such a name in said, without it; else one about a missing network, what cannot be
 * written, or a limit, where it has the words of such an error; else nothing. said is the cell's,
 * may hold anything, and is only searched: no name in a hint is of its choice. Names are looked up
 * for a bounded time; by words, and by arguments if they are code, through no link. At the root,
 * where all that exists is in the current folder, there is none about words.
 */
void vt_hint_make(const struct vt_plan *plan, enum vt_network network, char *const *argv,
		  bool is_code, const char *said, size_t len, struct vt_str *out);
