/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is different about a pool's cell where cells are bare. Part of warm.c, which has the cell's
 * life:
 *
 *	BUILT ──► ENTERING ──► PARKED ──► ...
 *
 * There is nothing to build ahead, so that one begins as BUILT. The zygote forks its init, which is
 * the supervisor's child, and the only one who can end the cell: it is told to on its status
 * socket, and says on it that nobody is left.
 */
#pragma once

#include "pool/warm.h"

/* For every new cell, bare or not, as are the functions below that say "Of any". */
void vt_warm_bare_init(struct vt_warm *warm);

/* Makes its status socket, before init is ordered. *ret_theirs is init's end. */
int vt_warm_bare_order(struct vt_warm *warm, int *ret_theirs, struct vt_err *err);

/* Takes what init has said by now. Of any. */
void vt_warm_bare_hear(struct vt_warm *warm);

/* Takes the filter's listener, whatever it returns. */
int vt_warm_bare_listen(struct vt_warm *warm, int listener_fd, struct vt_err *err);

/* Has init end the cell, where it is bare. Of any. */
void vt_warm_bare_kill(struct vt_warm *warm);

/* Init has ended, and nobody has reaped it: hears its last words. The cell is ENDING then. */
void vt_warm_bare_ended(struct vt_warm *warm);

/* With this wait status. Where its work is left undone, another child has its place then. */
void vt_warm_bare_reaped(struct vt_warm *warm, int status);

/* It takes too long. Returns whether init was killed, and will be buried. Of any. */
bool vt_warm_bare_give_up(struct vt_warm *warm);

/* Whether nothing of it is to come that nobody has heard of yet. Of any. */
bool vt_warm_bare_gone(const struct vt_warm *warm);

/*
 * Waits for what comes next at the end of one that was killed, and whose zygote is gone; until
 * then.
 */
void vt_warm_bare_await(struct vt_warm *warm, int64_t until);

/* Of any. */
void vt_warm_bare_done(struct vt_warm *warm);
