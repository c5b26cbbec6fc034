/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User namespaces that exist only as the id map of a mount. On such a mount the folder's owner on
 * disk appears as the cell's user, and what the cell's user makes belongs to that owner on disk;
 * all other ids are as they are. Runs in the supervisor, as root.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* Returns a descriptor of the namespace, or -errno. */
int vt_idmap_open(uid_t disk_uid, uid_t cell_uid, gid_t disk_gid, gid_t cell_gid,
		  struct vt_err *err);
