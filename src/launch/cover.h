/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cover: mounts of a zygote's in which nothing is that cells can write; empty folders and files are in the place of it. A zygote
 * turns to them while it starts a program for a module of the caller's, since a program opens what it likes, and a call could
 * have written that.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"

struct vt_cover {
	int own_fd, covered_fd; /* mount namespaces; -1: nothing was covered yet */
	int cwd_fd;             /* what is to be the working directory again; -1: it is under no cover */
};

#define VT_COVER_NONE ((struct vt_cover){ -1, -1, -1 })

/*
 * The calling thread alone has these mounts from here on, and so does what it starts. Its working directory is the one of that name
 * there, or the root. proc_fd is the process's own folder of a proc. On failure everything is as it was; -ENOTRECOVERABLE: it is not,
 * and the process has to end. -ENOTSUP: the plan says that it cannot be done.
 */
int vt_cover_enter(struct vt_cover *cover, const struct vt_plan *plan, int proc_fd, struct vt_err *err);

/* Back to where it was. Whoever cannot go back has to end. */
int vt_cover_leave(struct vt_cover *cover, struct vt_err *err);

void vt_cover_done(struct vt_cover *cover);
