/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipes between the supervisor and a cell's standard streams, while somebody has to own them.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * One pipe, of which the end that *ours is does not block. What was made before a failure is there
 * to be closed.
 */
int vt_pipe_make(int *ret_read, int *ret_write, const int *ours, struct vt_err *err);

struct vt_pipes {
	int in_read, in_write, out_read, out_write, err_read, err_write; /* -1: none */
	int report_read, report_write; /* what an evaluation tells of itself; -1: none */
};

#define VT_PIPES_NONE { -1, -1, -1, -1, -1, -1, -1, -1 }

/*
 * Makes those for output, for input where it is relayed, and for a report where there is one. The
 * supervisor's ends do not block; the cell's do, as programs expect. What was made before a failure
 * is there to be closed.
 */
int vt_pipes_make(struct vt_pipes *pipes, bool relay, bool report, struct vt_err *err);

/*
 * Makes them the cell's user's, who opens them by name: /dev/stderr. Only root can, and only for
 * root it matters.
 */
int vt_pipes_give(const struct vt_pipes *pipes, uid_t uid, gid_t gid, struct vt_err *err);

/* Closes what is left of them. */
void vt_pipes_close(struct vt_pipes *pipes);

#define AUTO_PIPES __attribute__((cleanup(vt_pipes_close)))
