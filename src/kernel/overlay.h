/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overlays, which keep names of a host's folder out of a cell. An overlay has names of its own, so
 * that nothing that is renamed on the host takes anything away from what was mounted or hidden in
 * it.
 *
 * Layers are descriptors of attached mounts; the overlay keeps what it needs of them, and they can
 * be detached. Extended attributes are neither read nor written: the overlay is made in a user
 * namespace, without "userxattr", so that what somebody left on the host's files means nothing to
 * it, and it leaves nothing there. Child side: no malloc.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* How a failure to make one begins: it says nothing about the other mounts of a cell. */
#define VT_OVERLAY_FAILED "keep closed what is denied, and pipes apart, by an overlay over"

/*
 * A read-only overlay of one folder above another: where the upper one has a character device 0:0,
 * there is nothing. Its own owner, mode and times are the upper one's. Named pipes, sockets and
 * locks in it are its own, and shared with nobody who comes by another way. Returns the mount's
 * descriptor. path is for the message.
 */
int vt_overlay_read(int upper_fd, int lower_fd, const char *path, struct vt_err *err);

/*
 * An overlay that is the folder itself, for reading and writing, with what marks has beside it. A
 * folder that is in both, as the uppermost is, cannot be renamed, nor can others into it or in it:
 * EXDEV. work_fd is an empty folder of the same mount, outside folder_fd, that the overlay fills
 * and leaves behind. fsync() in it does not wait for the disk; without that the kernel would write
 * out the whole file system when the cell ends.
 */
int vt_overlay_write(int marks_fd, int folder_fd, int work_fd, const char *path,
		     struct vt_err *err);

/* Returns a descriptor for vt_overlay_refresh(), of an overlay's mount. */
int vt_overlay_pick(int mount_fd, const char *path, struct vt_err *err);

/*
 * An overlay keeps the names that it has looked for, found or not, whatever the host does to them.
 * From here on it looks again, but for what somebody has open. By whoever is root in its user
 * namespace. It takes as long as there are names, which whoever can look decides.
 */
int vt_overlay_refresh(int picked_fd, bool writable, struct vt_err *err);
