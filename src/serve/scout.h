/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the paths that a client's pool is made of, in the server's stead: a path may lead to a file
 * system that does not answer, as of a FUSE daemon or an NFS server that hangs, and who asks it
 * then waits, in the kernel, for as long as that is so. So a fork of the server reads the policy,
 * finds the program and makes the plan, and hands over what it came to; the server's loop asks none
 * of them. One that is not back within 10 s is killed, and its client refused; where it cannot be
 * killed it is left behind, with no descriptor of the server's. The fewer there can still be, the
 * fewer one client may have of them, so that its mounts keep nobody else out. Runs in the server,
 * on its loop.
 */
#pragma once

#include "base/err.h"
#include "serve/cells.h"
#include "serve/client.h"
#include "watch/loop.h"

struct vt_scout;

struct vt_scouts {
	struct vt_cells_maker *maker;
	struct vt_scout *waiting, **last; /* for others to come back, of its client or of anybody */
	struct vt_scout *out;  /* who are there, and those that were left behind */
	unsigned         out_count, lost_count;
	unsigned         most; /* of both together */
};

void vt_scouts_init(struct vt_scouts *scouts, struct vt_cells_maker *maker);
/* Kills all of them, and waits for none. Nobody waits for one any more. */
void vt_scouts_done(struct vt_scouts *scouts);

/*
 * found: NULL where err says why there is nothing; else its descriptors may be taken. It is
 * nobody's to leave any more.
 */
typedef void vt_scout_back(void *user, struct vt_cells_found *found, const struct vt_err *err);

/*
 * Sends one. What the wish points to stays until it is back, which is told from the loop, or left.
 */
int vt_scout_send(struct vt_scouts *scouts, struct vt_client *client,
		  const struct vt_cells_wish *wish,
		  vt_scout_back *back, void *user, struct vt_scout **ret_scout, struct vt_err *err);
/* Nobody waits for it any more. NULL is fine. */
void vt_scout_leave(struct vt_scout *scout);
