/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of a hull: starts it, tells its spawner the plan, hears what that says, and
 * notices when it ends. Part of a pool.
 *
 *	none ──► building ──► ready ──► ending ──► none
 *	             └──────────────────►┘
 *
 * Its maker (launch/spawn.h) is there while it is begun, and where it has work folders until these
 * are removed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "launch/cell.h"
#include "launch/spawn.h"
#include "plan/plan.h"
#include "pool/children.h"
#include "watch/loop.h"

struct vt_pool_hull {
	/* the owner's */
	struct vt_loop       *loop;
	struct vt_children   *children;
	const struct vt_plan *plan;
	int                   spawner_fd, image_fd; /* borrowed */
	void (*is_built)(void *user); /* its namespaces can be joined */
	void (*is_ready)(void *user); /* its spawner takes orders */
	void (*is_refreshed)(void *user);
	/* What is protected was judged, when nothing of a call was left; fd: vt_warm_judged(). */
	void (*is_judged)(void *user, int fd);
	void (*is_unguarded)(void *user); /* no call may begin in it: it is to be killed */
	void (*note)(void *user, const struct vt_note *note, int fds[VT_NOTE_FDS]);
	/* It is on its way to its end, and all cells with it. Whoever knows more says so in err. */
	void (*is_ending)(void *user, const struct vt_err *err);
	void (*ended)(void *user); /* nothing of it is left, and another can be started */
	void *user;

	/* its own */
	struct vt_cell  cell;
	struct vt_child child; /* its init, the spawner; pid 0: not born yet, or gone */
	struct vt_child maker; /* pid 0: it has ended */
	struct vt_watch notes, end, made;
	/* the last that was asked for, ordered, and done */
	uint64_t        refreshes, ordered, refreshed;
	unsigned        looks; /* that were ordered, and are not done */
	int             fds[VT_HULL_FDS]; /* the namespaces; -1 until they are there */
	int64_t         started; /* since when it is to become ready */
	bool            ready, ending;
	bool            unguarded; /* the host changed a protected name since it was made */
	bool            doomed; /* it is to end as soon as it is born */
	struct vt_err   failure; /* what it said; num 0: nothing */
};

void vt_pool_hull_init(struct vt_pool_hull *hull);

/* There must be none. What happens to it is told, but not from within. */
int  vt_pool_hull_start(struct vt_pool_hull *hull, struct vt_err *err);

/* Whether there is one, be it on its way to its end. */
bool vt_pool_hull_lives(const struct vt_pool_hull *hull);

/*
 * Has folders that are shown by an overlay look again for what the host has changed, but for names
 * that a call has open; and what is protected compared with what was mounted. Returns the number
 * that `refreshed` has when that is done; 0: there is nothing to be done.
 */
uint64_t vt_pool_hull_refresh(struct vt_pool_hull *hull);

/*
 * Has what is protected judged, since a call is over. A note about the cell says when that is done,
 * or, of cell 0, is_judged. False: it cannot be.
 */
bool vt_pool_hull_judge(struct vt_pool_hull *hull, uint64_t cell, const char *call, size_t len);

/* Begins its end, for this reason, and tells so. */
void vt_pool_hull_kill(struct vt_pool_hull *hull, const struct vt_err *why);

/* The same without telling: only that it has ended is told. */
void vt_pool_hull_quit(struct vt_pool_hull *hull);

/* Looks whether one whose end has begun has come to it, where that could not be watched. */
void vt_pool_hull_look(struct vt_pool_hull *hull);

/*
 * Ends it, without telling, and waits for that no longer than this. What has not ended then is left
 * to its end.
 */
void vt_pool_hull_done(struct vt_pool_hull *hull, int64_t patience_ns);
