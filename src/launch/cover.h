/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zygote sees nothing that cells can write: in its own mounts, empty files and folders cover it.
 * All later calls have what a zygote loads. So whatever a module opens there, by whatever way, and
 * whatever a program that it starts does, no call has written it.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"

struct vt_covering;

/*
 * Has all covered that list asks for, in the mount namespace of the calling process, for good.
 * stage is a folder in its root, free of links, of which nobody needs anything meanwhile.
 */
int vt_cover(const char *stage, int (*list)(const struct vt_covering *covering, void *user),
	     void *user, struct vt_err *err);

/*
 * Covers what is at a path free of links. Where it is under a cover already, there is nothing to
 * do. -ENOENT: it is not there.
 */
int vt_cover_path(const struct vt_covering *covering, const char *path);

/* Covers all that cells can write, by the names that it has in their hull. */
int vt_cover_written(const struct vt_plan *plan, struct vt_err *err);
