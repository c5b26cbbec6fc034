/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of the guards of a plan around one call of a single cell: what is there is noted
 * before it, and judged after it, when no process of the cell is left. Runs in the supervisor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launch/guard.h"
#include "plan/plan.h"
#include "watch/result.h"

struct vt_guarded {
	const struct vt_plan *plan;
	struct vt_inode
		*seen;       /* of all guards, one build after the other; NULL: nothing is judged */
	size_t first_unseen; /* builds from this one on were not there to be noted */
};

/* Costs nothing where the plan has no guards. */
int vt_guarded_begin(struct vt_guarded *guarded, const struct vt_plan *plan, struct vt_err *err);
/* Tells the result what it did. */
void vt_guarded_end(struct vt_guarded *guarded, struct vt_result *result);

/*
 * Adds one event to a result, as JSON: {"set_apart": [{"path":, "to":}], "replaced": [path],
 * "unseen": [{"path":, "error":}]}. folder is the granted one, path lies in it.
 */
void vt_guarded_tell(struct vt_result *result, const char *folder, enum vt_guard_event event,
		     const char *path, const char *to, int num);
