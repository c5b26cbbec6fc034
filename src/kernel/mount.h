/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts, by the descriptor-based API, so that what was looked at is what gets mounted. Child side:
 * no malloc. Every mount is nosuid, and nodev unless it is one of the few device nodes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* A tmpfs with these bounds, not attached anywhere yet. Returns the mount's descriptor. */
int vt_mount_tmpfs(int64_t bytes, int64_t inodes, struct vt_err *err);

/* The same, attached at "/" of the caller's namespace, over what is there. */
int vt_mount_new_root(int64_t bytes, int64_t inodes, struct vt_err *err);

/*
 * What a failure of vt_mount_proc() is called: in containers whose proc is masked it fails alone.
 */
#define VT_MOUNT_PROC "mount a proc of the cell's own"

/* What vt_mount_attach_nested() says where the way to the place is closed to the cell's user. */
#define VT_MOUNT_PLACE "reach, as the cell's user, the place inside another grant:"

/*
 * A proc of the caller's pid namespace: read-only, where others' processes do not show; or, for a
 * process of vitro's own, writable and without anything hidden.
 */
int vt_mount_proc(bool writable, struct vt_err *err);

/*
 * A detached copy of the mount at path (relative to dir_fd, links followed), with everything
 * mounted below it. Returns its descriptor.
 */
int vt_mount_copy(int dir_fd, const char *path, struct vt_err *err);

/* The same of one mount alone. In a user namespace that is not its maker's it may be refused. */
int vt_mount_copy_alone(int dir_fd, const char *path, struct vt_err *err);

/* Insists that a copied mount shows the inode that the plan saw. path is for the message. */
int vt_mount_check(int mount_fd, uint64_t dev, uint64_t ino, const char *path, struct vt_err *err);

struct vt_mount_traits {
	bool writable;
	bool device;   /* device nodes work */
	bool here;     /* this mount only, not those below it */
	int  idmap_fd; /* a user namespace that maps its ids, or -1 */
};

/* Sets the flags of a mount, and of those below it. */
int vt_mount_restrict(int mount_fd, const struct vt_mount_traits *traits, const char *path,
		      struct vt_err *err);

/* Attaches a mount at a path inside root_fd, all of whose folders are the caller's own making. */
int vt_mount_attach(int mount_fd, int root_fd, const char *path, struct vt_err *err);

/*
 * The same where the path leads through folders of somebody else's: no link is followed on the way,
 * and nothing outside root_fd is reached, whatever their owner put there.
 */
int vt_mount_attach_nested(int mount_fd, int root_fd, const char *path, struct vt_err *err);

/*
 * Mounts what at_fd is, with all that is mounted below it, on itself: nobody in this namespace can
 * rename or remove it, or, read-only, change it. path is for messages.
 */
int vt_mount_on_itself(int at_fd, bool read_only, const char *path, struct vt_err *err);

/*
 * Takes the mount at a name in root_fd away, with all that is mounted below it. Whoever uses them
 * keeps them.
 */
int vt_mount_detach(int root_fd, const char *name, struct vt_err *err);

/* Makes the attached mount root_fd the caller's root and forgets the old one. */
int vt_mount_enter_root(int root_fd, struct vt_err *err);
