/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's children that execute programs of their own, and the occupants: who they are,
 * and how they ended. One table serves all pools of a process.
 *
 * A zygote makes occupants that are the supervisor's children. Of one whose zygote is killed before
 * it has told of it, nobody knows; but as long as it is not reaped, its cell's init cannot go, nor
 * the hull. So whoever waits for a cell in vain sweeps: every child that has ended is reaped, and
 * of those that are known the status is kept.
 *
 * Forks of the supervisor that execute nothing (lookers, brokers) have no exit signal, which keeps
 * a sweep from finding them. They belong to those who made them.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "watch/loop.h"

/* Its owner embeds it. All zero: nobody. */
struct vt_child {
	pid_t            pid; /* 0: nobody, or his end was taken */
	bool             swept;
	int              status; /* then */
	struct vt_child *next, **link;
};

enum { VT_CHILD_BUCKETS = 256 };

struct vt_left;

struct vt_children {
	struct vt_child *buckets[VT_CHILD_BUCKETS];
	struct vt_loop  *loop; /* its owner's to set; NULL: whoever is left is not waited for */
	struct vt_left  *left;
	unsigned         left_count;
};

/* A child that is not reaped yet becomes known. */
void vt_child_know(struct vt_children *children, struct vt_child *child, pid_t pid);

/*
 * Takes the end of a known one, which is nobody from then on: waits for it, and returns its status.
 */
int vt_child_reap(struct vt_child *child);
/* The same without waiting. False: it has not ended, and is known as before. */
bool vt_child_try_reap(struct vt_child *child, int *ret_status);

/* Nobody is interested in its end any more. Fine if it is nobody. */
void vt_child_forget(struct vt_child *child);

/*
 * The same of one that was killed, and may take long to end, or never do: it is reaped when it has
 * ended, from the loop. Beyond a few hundred of them, the child is only forgotten. Takes over its
 * pidfd, which is closed in any case.
 */
void vt_children_leave(struct vt_children *children, struct vt_child *child, int *pidfd);
/*
 * Closes a socket of base/stranger.h; or, if it is wary, a listener for such. Where descriptors may
 * be waiting in one that is wary, another process has the last hold of it, and waits if need be.
 */
void vt_children_shut(struct vt_children *children, int *fd, bool wary);
/* Reaps those that were left, and end within so long. All others are forgotten. */
void vt_children_done(struct vt_children *children, int64_t patience_ns);

/* Whether the process of this pidfd is a child that is not reaped yet. */
bool vt_child_is_ours(int pidfd);

/* Reaps whoever has ended. Waits for nobody. */
void vt_children_sweep(struct vt_children *children);
