/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zygote: a program that was started afresh with everything loaded that its occupants need. It joins a
 * hull, where it is root and outside nobody, and forks occupants into cells when the supervisor orders
 * one. It never runs anything untrusted. It has one thread, and nothing of the supervisor's memory.
 *
 * Its children are the supervisor's, who reaps them: a cell's init does not go before they are reaped.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"

enum { VT_OCCUPANT_CALL_FD = 3 }; /* where an occupant hears of its call */

struct vt_zygote {
	const struct vt_plan *plan;
	int                   control_fd; /* to the supervisor; owned */
	int                   tasks_fd;   /* the process's own folder of threads */
};

/*
 * Waits for the plan and joins the hull; the supervisor is told where that fails. control_fd is taken over.
 * -EPIPE: the supervisor is gone.
 */
int vt_zygote_join(struct vt_zygote *zygote, int control_fd, struct vt_err *err);

/* Tells the supervisor why there will be no occupants. The zygote is to end then. */
void vt_zygote_fail(struct vt_zygote *zygote, const struct vt_err *why);

/*
 * Tells the supervisor that it is ready, and obeys orders until he is gone: -EPIPE. Returns 0 in each new
 * occupant, which is sealed, and has its call socket at VT_OCCUPANT_CALL_FD and its output at 1 and 2. It
 * tells that it is ready by vt_zygote_park(), once it has done what it can do ahead of a call.
 */
int vt_zygote_serve(struct vt_zygote *zygote, struct vt_err *err);

/* In an occupant: what comes next on the call socket is its call. */
int vt_zygote_park(struct vt_err *err);
