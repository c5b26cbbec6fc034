/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects in a cell's stead. Where folders of the host's are there inside, every connect() of the
 * cell waits at the filter's listener; a process of the supervisor's answers, and lets it reach the
 * cell's own sockets and those that the plan names. It is made when the first connect() comes: most
 * calls never pay for it.
 *
 * The broker has three descriptors: the listener, the cell's root, a leash. It looks at nothing
 * of the cell itself. For each connect() it forks a helper, since a connect, a page of the cell's
 * memory or a file system can make it wait. A helper gets the socket and the address from the
 * caller, once, then becomes the cell's user, finds what is named and connects to what it found.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "kernel/notify.h"
#include "launch/spawn.h"
#include "plan/plan.h"
#include "watch/loop.h"

struct vt_broker {
	struct vt_loop       *loop; /* NULL: nothing to broker */
	const struct vt_plan *plan;
	struct vt_outer       ids;      /* whom the cell is on the host */
	int                   root_fd;  /* borrowed, until the broker is there */
	struct vt_watch       listener; /* watched, and owned, until the broker is there */
	struct vt_notice      first;    /* the call that it is made for */
	pid_t                 pid;      /* 0: none */
	int                   pid_fd, leash_fd;
};

/*
 * Watches for the cell's first connect(); ids are whom the cell is on the host. Takes the listener,
 * whatever it returns; root_fd must stay open until vt_broker_stop(). A zeroed broker is needed,
 * and is fine for the other two.
 */
int vt_broker_listen(struct vt_broker *broker, struct vt_loop *loop, const struct vt_plan *plan,
		     struct vt_outer ids, int listener_fd, int root_fd, struct vt_err *err);

/* Tells it to end, without waiting. Calls that wait get ECONNREFUSED, later ones ENOSYS. */
void vt_broker_stop(struct vt_broker *broker);

/* Ends it, and its helpers. */
void vt_broker_done(struct vt_broker *broker);
