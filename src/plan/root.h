/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The new root, as a tree of paths while it is being decided, and as a list of acts once it is.
 * Pure: what exists on the host is asked through the host.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/host.h"
#include "plan/plan.h"
#include "plan/way.h"

struct vt_root;

struct vt_root *vt_root_new(struct vt_arena *arena, const struct vt_host *host);

/* How a host path comes in. */
struct vt_entry {
	const char *from;
	const char *to;       /* absolute */
	const char *origin;   /* for messages */
	bool        writable;
	bool        optional; /* not being there is fine */
	bool        device;
	bool        socket;   /* must be one */
	bool        granted;  /* by the user */
	const struct vt_way *way; /* how it was found and what was seen there; NULL: look */
	bool        mapped;   /* its owner is the cell's user, where root launches */
};

/*
 * Adds a host path. What is already inside, from the same place and with the same rights, is not
 * mounted again. Outer folders may come first or last; a grant inside another keeps its own
 * rights. A path that does not exist, or cannot be placed, is an error that says so.
 */
int vt_root_mount(struct vt_root *root, const struct vt_entry *entry, struct vt_err *err);

/*
 * The same for one that may be a link on the host: then the link is made anew, and not followed,
 * unless something was granted below it.
 */
int vt_root_link_or_mount(struct vt_root *root, const struct vt_entry *entry, struct vt_err *err);

/*
 * Adds something of the cell's own: a folder, a link, a file with text, a writable folder, a proc,
 * a mask. Where the user granted that place or one around it, theirs stays and nothing is added.
 */
int vt_root_own(struct vt_root *root, enum vt_act act, const char *to, const char *from,
		mode_t mode, struct vt_err *err);

/* Whether something of the host's was granted at or around this absolute path. */
bool vt_root_covers(const struct vt_root *root, const char *to);

/* Whether a grant for writing lies around a host path. */
bool vt_root_can_write(const struct vt_root *root, const char *path);

/* Writes the acts, and the id maps that they use, into the plan. */
int vt_root_finish(struct vt_root *root, struct vt_plan *plan, struct vt_err *err);
