/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parent side of a launch: makes the cell that a plan describes and gives its handles to
 * whoever watches it. Runs in the supervisor. It decides nothing and waits for nothing: what the
 * child finds comes as notes on the status socket.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "kernel/cgroup.h"
#include "kernel/work.h"
#include "launch/cell.h"
#include "launch/inside.h"
#include "plan/plan.h"

struct vt_cell {
	pid_t init; /* as the supervisor sees it; a child of the supervisor, to be waited for */
	int   init_fd;   /* pidfd: says when the cell has ended */
	bool  bare;      /* without namespaces: init ends it, not init's own end */
	int   status_fd; /* notes, see launch/cell.h */
	struct vt_outer  outer; /* its ids on the host */
	struct vt_cgroup cgroup;
	struct vt_work  *works; /* folders that overlays of the cell work in */
	size_t           work_count;
	/*
	 * Of a hull: who makes it, and removes such folders at its end. The supervisor's child too.
	 * 0, -1: nobody.
	 */
	pid_t            maker;
	int              maker_fd;
};

/* A cell that vt_cell_done() accepts. */
void vt_cell_init(struct vt_cell *cell);

/* The host ids that a cell of this plan has, if this process spawns it. */
struct vt_outer vt_spawn_ids(const struct vt_plan *plan);

/*
 * The same of a cell of a pool of this process's, which has that one of the plan's ids for cells.
 */
struct vt_outer vt_spawn_slot_ids(const struct vt_plan *plan, uint32_t slot);

/* Starts it. On failure nothing is left behind and *ret_cell is untouched. */
int vt_spawn(const struct vt_plan *plan, const struct vt_stdio *stdio, struct vt_cell *ret_cell,
	     struct vt_err *err);

/*
 * Starts the hull of a pooled plan. What it says comes as notes, as of a cell: VT_NOTE_BORN with
 * its init, VT_NOTE_HULL, and once it has been told the plan VT_NOTE_READY. spawner_fd is the
 * program that its init becomes, which calls vt_spawner_run(). It is killed and done with like a
 * cell, and all cells in it end with it.
 *
 * A plan's paths may be on a file system that does not answer, so that none of them is asked by the
 * caller, but by a fork of it: *ret_hull has that one's handles, and no init yet. It ends when the
 * hull is started, or, where it has made work folders, when the hull has ended and these are
 * removed. Before init is born, killing it is the hull's end.
 */
int vt_spawn_hull(const struct vt_plan *plan, int spawner_fd, struct vt_cell *ret_hull,
		  struct vt_err *err);

/*
 * Removes what killed vitro processes left where this plan makes folders; those of a hull its maker
 * does.
 */
void vt_spawn_sweep(const struct vt_plan *plan);

/*
 * Reads one note without blocking: 1 if there was one, 0 if not, -errno; -EPIPE when the other side
 * is gone. fds gets the descriptors that came with it (VT_NOTE_FDS of them), -1 where there is
 * none.
 */
int vt_cell_note(const struct vt_cell *cell, struct vt_note *ret_note, int ret_fds[VT_NOTE_FDS],
		 struct vt_err *err);

/*
 * Ends everything in the cell: SIGKILL to init, and the kernel does the rest; a bare cell's init is
 * told to, and does it.
 */
int vt_cell_kill(const struct vt_cell *cell, struct vt_err *err);

/*
 * Whether a cell of this plan has a user id that nobody else has, by which vt_cell_bury() can end
 * it.
 */
bool vt_cell_can_bury(const struct vt_plan *plan);

/*
 * The init of a bare cell was killed and reaped, and nobody ended the rest. If vt_cell_can_bury(),
 * this ends all of that user's and removes the private folder, and says whether that is done. It
 * waits no longer than this.
 */
bool vt_cell_bury(const struct vt_plan *plan, int patience_ms);

/*
 * The same of a cell of a pool, which has ids and a private folder of its own, without waiting: in
 * a child, whose wait status is 0 if all is done. Returns its pid, or -errno.
 */
pid_t vt_cell_bury_as(const struct vt_plan *plan, struct vt_outer outer, const char *scratch,
		      int patience_ms, int *ret_pidfd, struct vt_err *err);

/* Closes handles, removes the cgroup and the work folders. The cell must be dead and reaped. */
int vt_cell_done(struct vt_cell *cell, struct vt_err *err);
