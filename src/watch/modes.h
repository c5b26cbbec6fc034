/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes modes and times in a bare cell's stead, where its user is the caller. Landlock has no
 * right for either, and every file of the caller's has a name there; so chmod(), fchmod(),
 * fchmodat() and utimensat() wait at the filter's listener. What they name is changed if it lies
 * inside the private folder or a folder that was granted for writing, and the folders themselves
 * are not.
 *
 * A thread of the supervisor's answers, one call after the other, from the first one on. It is no
 * process, since Yama lets memory be read only by those that a process descends from, and no part
 * of the loop, since the cell can make it wait. It has no capability, takes no lock and allocates
 * nothing: the loop may fork at any time.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"
#include "watch/loop.h"

struct vt_modes_work;

struct vt_modes {
	struct vt_loop       *loop; /* NULL: it does not watch */
	const struct vt_plan *plan;
	int                   scratch_fd; /* borrowed, until the thread is there */
	struct vt_watch       listener;   /* watched, and owned, until the thread is there */
	struct vt_modes_work *work;       /* NULL: there is no thread */
};

/*
 * Watches for the cell's first change. Takes the listener, whatever it returns; scratch_fd must
 * stay open until vt_modes_stop(). A zeroed one is needed, and is fine for the other two.
 */
int vt_modes_listen(struct vt_modes *modes, struct vt_loop *loop, const struct vt_plan *plan,
		    int listener_fd, int scratch_fd, struct vt_err *err);

/* Tells it to end, without waiting. Calls that wait, and later ones, get ENOSYS. */
void vt_modes_stop(struct vt_modes *modes);

/* Ends it. */
void vt_modes_done(struct vt_modes *modes);
