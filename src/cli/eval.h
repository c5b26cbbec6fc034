/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vitro eval`: code in place of a command. It becomes the command of an interpreter that runs it
 * and reports its value; all else is as in `vitro run`.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "cli/options.h"

/* Makes a command of the code that the options of `vitro eval` have in place of one. */
int vt_eval_command(struct vt_options *options, struct vt_arena *arena, struct vt_err *err);

/*
 * Whether the code, as far as it is known here, lacks the word without which its language gives no
 * value. False: it may have one.
 */
bool vt_eval_lacks_value(const struct vt_options *options);
