/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private folder on the host, for cells that cannot have a tmpfs of their own: made before the call
 * and removed with all that is in it after the last process of the cell is gone. Child side: no malloc.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/*
 * Makes it, and gives it to this user. Somebody else's folder of that name is an error. Leaves a tight
 * umask behind. Returns the folder's descriptor.
 */
int vt_scratch_make(const char *path, uid_t uid, gid_t gid, struct vt_err *err);

/* Removes what is in the folder, and then the folder. What nobody can remove stays. */
void vt_scratch_remove(int fd, const char *path);
