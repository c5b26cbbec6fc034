/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the paths that a client's pool is made of, ahead of the server: a path may lead to a file system that
 * does not answer, as of a FUSE daemon or an NFS server that hangs, and who looks at it then waits, in the kernel, for
 * as long as that is so. So a fork of the server makes the same plan first, and only tells that it came to an end.
 * One that does not within 10 s is killed, and its client refused; where it cannot be killed it is left behind, with no
 * descriptor of the server's. The fewer there can still be, the fewer one client may have of them, so that its mounts keep
 * nobody else out. Runs in the server, on its loop.
 */
#pragma once

#include "base/err.h"
#include "serve/cells.h"
#include "serve/client.h"
#include "watch/loop.h"

struct vt_scout;

enum { VT_SCOUTS_KNOWN = 16 };

struct vt_scouts {
	struct vt_cells_maker *maker;
	struct vt_scout *waiting, **last; /* for others to come back, of its client or of anybody */
	struct vt_scout *out;  /* who are there, and those that were left behind */
	unsigned         out_count, lost_count;
	unsigned         most; /* of both together */
	/* What has just answered. */
	struct {
		uint64_t hash; /* of the wish */
		int64_t  until;
	} known[VT_SCOUTS_KNOWN];
	unsigned         known_next;
};

void vt_scouts_init(struct vt_scouts *scouts, struct vt_cells_maker *maker);
/* Kills all of them, and waits for none. Nobody waits for one any more. */
void vt_scouts_done(struct vt_scouts *scouts);

/* Whether one came back from the same paths within the last second: then none need be sent. */
bool vt_scouts_know(const struct vt_scouts *scouts, const struct vt_cells_wish *wish);

/* err: NULL where it has come to an end. It is nobody's to leave any more. */
typedef void vt_scout_back(void *user, const struct vt_err *err);

/* Sends one. What the wish points to stays until it is back, which is told from the loop, or left. */
int vt_scout_send(struct vt_scouts *scouts, struct vt_client *client, const struct vt_cells_wish *wish,
		  vt_scout_back *back, void *user, struct vt_scout **ret_scout, struct vt_err *err);
/* Nobody waits for it any more. NULL is fine. */
void vt_scout_leave(struct vt_scout *scout);
