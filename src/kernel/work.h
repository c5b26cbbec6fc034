/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work folders of overlays, which must lie on the host, beside the folder that an overlay writes
 * to. Each is a folder ".vitro-PID.N" whose maker holds a lock on it, so that vt_work_sweep() can
 * tell what a killed vitro left behind. Runs in the supervisor.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

enum { VT_WORK_NAME_MAX = 64 };

struct vt_work {
	int  parent_fd; /* the folder that it lies in; -1: there is none */
	int  fd;        /* itself, with its lock */
	char name[VT_WORK_NAME_MAX];
};

/* An empty value that vt_work_remove() accepts. */
void vt_work_init(struct vt_work *work);

/*
 * Makes one in a folder, for the user that the overlay writes as on disk. *ret_work is untouched on
 * failure, and nothing is left behind.
 */
int vt_work_make(const char *folder, uid_t uid, gid_t gid, struct vt_work *ret_work,
		 struct vt_err *err);

/*
 * Removes it and what an overlay left in it; the overlay's cell must be dead. In any case the
 * descriptors are closed.
 */
int vt_work_remove(struct vt_work *work, struct vt_err *err);

/* Removes what killed vitro processes left in a folder. Best effort; returns how many went. */
int vt_work_sweep(const char *folder);
