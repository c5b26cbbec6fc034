/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zygote: a program that was started afresh with everything loaded that its occupants need. It
 * joins a hull, where it is root and outside nobody, and forks occupants into cells when the
 * supervisor orders one. It never runs anything untrusted. It has one thread, or others that sleep,
 * and nothing of the supervisor's memory.
 *
 * Its children are the supervisor's, who reaps them: a cell's init does not go before they are
 * reaped.
 */
#pragma once

#include "base/err.h"
#include "launch/cell.h"
#include "plan/plan.h"

enum { VT_OCCUPANT_CALL_FD = 3 }; /* where an occupant hears of its call */

struct vt_zygote {
	const struct vt_plan *plan;
	int                   control_fd; /* to the supervisor; owned */
	int                   tasks_fd;   /* the process's own folder of threads */
	int                   home_fd;    /* the hull's pid namespace; -1: cells are bare */
	/*
	 * Threads beside the one, of which a fork needs none: at each fork there are as many, and
	 * asleep. The owner's to set once it has joined.
	 */
	int                   helpers;
	bool                  loads_ahead; /* it sees nothing that cells can write, and may load
					      what is the caller's */
};

/*
 * What the supervisor wants: VT_NOTE_ENTER, or VT_NOTE_LEARN with a module's name in note.err.what.
 */
struct vt_zygote_order {
	struct vt_note note;
	int            fds[VT_NOTE_FDS];
};

/*
 * Waits for the plan and joins the hull; the supervisor is told where that fails. control_fd is
 * taken over. -EPIPE: the supervisor is gone.
 */
int vt_zygote_join(struct vt_zygote *zygote, int control_fd, struct vt_err *err);

/* Tells the supervisor why there will be no occupants. The zygote is to end then. */
void vt_zygote_fail(struct vt_zygote *zygote, const struct vt_err *why);

/*
 * Tells the supervisor that it is ready, and obeys orders until he is gone: -EPIPE. Returns 0 in
 * each new occupant, which is sealed, and has its call socket at VT_OCCUPANT_CALL_FD and its output
 * at 1 and 2. It tells that it is ready by vt_zygote_park(), once it has done what it can do ahead
 * of a call.
 */
int vt_zygote_serve(struct vt_zygote *zygote, struct vt_err *err);

/*
 * The same one by one, for who has something to do between: that it is ready, or why it cannot be,
 * which is told where forks would have memory in common (shared.h); the next order, which is waited
 * for (-EPIPE: he is gone); and that one is obeyed, which closes its descriptors: 1 in the zygote,
 * 0 in the occupant.
 */
int vt_zygote_ready(struct vt_zygote *zygote, struct vt_err *err);
int vt_zygote_take(struct vt_zygote *zygote, struct vt_zygote_order *ret_order, struct vt_err *err);
int vt_zygote_enter(struct vt_zygote *zygote, struct vt_zygote_order *order, struct vt_err *err);

/*
 * Tells the supervisor a VT_NOTE_LEARNED, VT_NOTE_LOADS or VT_NOTE_TOLD. What does not fit of text
 * is cut.
 */
int vt_zygote_tell(struct vt_zygote *zygote, enum vt_note_kind kind, int num, const char *text,
		   struct vt_err *err);

/* How many threads the process has, or a failure. */
int vt_zygote_threads(const struct vt_zygote *zygote);

/* How many pieces of memory it would have in common with its forks (shared.h); or a failure. */
int vt_zygote_shared(const struct vt_zygote *zygote);

/*
 * Gives the zygote, which has joined, mounts of its own with what each cell has below its private
 * folders at the place where cells have it, and such folders. Where cells are bare there is nothing
 * to do.
 */
int vt_zygote_furnish(struct vt_zygote *zygote, struct vt_err *err);

/*
 * Covers, in mounts that it was furnished with, all that cells can write (cover.h). Where that
 * cannot be done, as the plan says or as it turns out, zygote->loads_ahead stays false, and the
 * supervisor is told why.
 */
int vt_zygote_cover(struct vt_zygote *zygote, struct vt_err *err);

/*
 * From now on, and until it turns to a cell, children of the zygote are in the hull, and end with
 * that. The kernel gives it no thread then. Where there is no hull, nothing happens.
 */
int vt_zygote_turn_home(const struct vt_zygote *zygote, struct vt_err *err);

/*
 * A fork in no cell, with the zygote's rights: 1 in the zygote, and 0 in the fork, which ends with
 * the supervisor at the latest and has nothing to say to him. It is his child, whom he has to
 * sweep. There is one thread, or it fails.
 */
int vt_zygote_fork_apart(struct vt_zygote *zygote, int *ret_pidfd, struct vt_err *err);

/* In an occupant: what comes next on the call socket is its call. */
int vt_zygote_park(struct vt_err *err);
