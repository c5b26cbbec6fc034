/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of root.h from within, for those who decide what becomes of its mounts. */
#pragma once

#include "plan/root.h"

/* A place inside. What it is, is an act; a plain folder is one that something below it needs. */
struct vt_node {
	struct vt_node *parent, *children, *last_child, *next;
	const char *name;
	const char *path; /* "usr/lib" */
	enum vt_act act;
	const char *from;
	const char *origin;
	bool writable, device, socket, granted, mapped;
	bool shown; /* it is there already, as part of a mount around it */
	mode_t mode;
	struct vt_path seen;
	const struct vt_veil *veil; /* of a mount; NULL: none */
};

struct vt_root {
	struct vt_arena *arena;
	const struct vt_host *host;
	struct vt_node *top;
	size_t count;
};

/* The nearest mount at or above a node; NULL: there is none. */
const struct vt_node *vt_node_mount(const struct vt_node *node);

/* What the path of a node at or below a mount is on the host. NULL: out of memory. */
const char *vt_node_host_path(const struct vt_root *root, const struct vt_node *mount,
			      const struct vt_node *node);

/* The next node of a depth-first walk below top, without recursion, since paths can be deep. */
struct vt_node *vt_node_next(const struct vt_node *top, struct vt_node *node);
