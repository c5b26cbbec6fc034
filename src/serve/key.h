/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pools may share cells: all in which they must be the same, as one text. Runs in a server's
 * scout, else in the supervisor.
 */
#pragma once

#include "base/err.h"
#include "serve/cells.h"

/*
 * Makes the key of cells whose policy, plan and program are there. It begins with what the files of
 * the policy had in them when they were read, which may not show in the rest. What bare cells have
 * for themselves is left out. Modules that a zygote may load ahead of calls count as they are now:
 * modules.h.
 */
int vt_cells_key(struct vt_cells *cells, const struct vt_cells_wish *wish,
		 const struct vt_command *command, struct vt_err *err);
