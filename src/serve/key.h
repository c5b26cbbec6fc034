/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which clients may share cells: all in which they must be the same, as one text. Runs in the
 * supervisor.
 */
#pragma once

#include "base/err.h"
#include "serve/cells.h"

/*
 * Makes the key of cells whose policy, plan and program are there. Of a policy the files that it
 * was read from count, too: what they say may not show in the rest. Bare cells have folders of
 * their own on the host, and are not shared.
 */
int vt_cells_key(struct vt_cells *cells, const struct vt_cells_wish *wish, struct vt_err *err);
