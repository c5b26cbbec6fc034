/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a name leads, in one walk. Rules are about what a name leads to, and whoever can put a link
 * on its way chooses that: a cell that may write there, or one that could. So the walk itself goes
 * through no link: it meets each, notes it and goes on from where it leads. What is there in the
 * end was found under a name free of links, and the links that were noted are all that led to it,
 * whatever changes meanwhile. Pure: the host is asked.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/host.h"

/* A symbolic link on the way. */
struct vt_link {
	const char *path; /* free of links itself */
	uid_t       owner;
};

struct vt_way {
	const char    *path; /* as it was named; borrowed */
	const char    *name; /* what that names itself: a link by its own place; else as real */
	const char    *real; /* where it leads, free of links; past what is not there, as written */
	int            err;  /* why there is nothing to be seen: an errno; 0: there is */
	struct vt_path seen; /* what is there */
	const struct vt_link *links; /* in the order in which they were met */
	size_t         link_count;
};

/*
 * Walks an absolute path; origin is for messages. That nothing is there is no failure, but that the
 * way changed under the walk is: -ESTALE.
 */
int vt_way_find(const struct vt_host *host, struct vt_arena *arena, const char *path,
		const char *origin, struct vt_way *ret_way, struct vt_err *err);

/* What is wrong with what a way led to: -ESTALE, that it is not what was there. */
int vt_way_fail(const struct vt_way *way, const char *origin, int num, struct vt_err *err);

/* Whether a link is the system's own: no cell of the caller's can have made it. */
bool vt_link_is_trusted(const struct vt_host *host, const struct vt_link *link);
