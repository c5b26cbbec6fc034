/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a running cell uses, looked at again and again and held against the plan's limits: by the
 * cell's cgroup, and where limits are sampled by a looker. Part of the supervisor's loop; it
 * decides that a limit is passed, and its owner ends the call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/err.h"
#include "launch/spawn.h"
#include "plan/plan.h"
#include "watch/looker.h"
#include "watch/loop.h"
#include "watch/verdict.h"

struct vt_look {
	const struct vt_plan *plan;
	struct vt_loop       *loop;
	const struct vt_cell *cell;
	struct vt_findings   *findings;
	/*
	 * The owner's: a limit is passed; or it cannot be watched any more, through vitro's own
	 * fault.
	 */
	void (*stop)(void *owner, enum vt_stop why);
	void (*lose)(void *owner, const struct vt_err *failure);
	void *owner;

	/* the most that was seen */
	int64_t  peak_memory, cpu_ns;
	unsigned processes;

	/* its own */
	struct vt_timer  timer;
	struct vt_watch  reports;
	struct vt_looker looker;
	int              proc_fd, root_fd; /* the cell's; borrowed */
	int64_t          deadline; /* the call's */
	bool             over;
	bool             counted; /* peak_memory is a cgroup's */
	bool             above;  /* the last look saw more memory than the limit */
	unsigned         unseen; /* so many looks in a row could not see all */
	unsigned         unmeasured; /* the same of the private folder */
};

/* Joins the loop, where nothing is looked at yet. All up to `owner` is set by the caller. */
void vt_look_init(struct vt_look *look);

/* The occupant runs. A look that is given up after the deadline counts as that having passed. */
void vt_look_begin(struct vt_look *look, int proc_fd, int root_fd, int64_t deadline);

/*
 * The cell has ended, and what its cgroup and the looker have said of it is found: either may be
 * why, and be heard of later than the end.
 */
void vt_look_conclude(struct vt_look *look);

/*
 * What the kernel says of processes that ended. Their resident memory has all mapped files in it,
 * also what others read before: where a cgroup counts the cell's own, that is the peak.
 */
void vt_look_take_rusage(struct vt_look *look, const struct rusage *usage);

/* Looks no more, without waiting for a look that is under way. */
void vt_look_stop(struct vt_look *look);

/* Releases all. A zeroed look is fine. */
void vt_look_done(struct vt_look *look);
