/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private folder on the host, for cells that cannot have a tmpfs of their own: made before the
 * call and removed with all that is in it after the last process of the cell is gone. Both are done
 * by descriptors: others may rename in its place. Child side: no malloc.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Makes it, and gives it to this user. Somebody else's folder of that name is an error, -EEXIST; so
 * is, -ESTALE, what somebody put in its place before it was opened. Leaves a tight umask behind.
 * Returns the folder's descriptor; *ret_place is that of the folder around it.
 */
int vt_scratch_make(const char *path, uid_t uid, gid_t gid, int *ret_place, struct vt_err *err);

/* Opens one that was made before, if it is this user's; else a negative errno. */
int vt_scratch_find(const char *path, uid_t uid, int *ret_place);

/*
 * Lets the caller remove nothing any more but what lies in the folder, and empty folders around it,
 * as the kernel sees it when it happens. `rights` are Landlock's here, 0 where there is none;
 * no_new_privs must be set. A second wall: modes are not covered.
 */
int vt_scratch_confine(int fd, int place, uint64_t rights, struct vt_err *err);

/* Removes what is in the folder, and then the folder. What nobody can remove stays. */
void vt_scratch_remove(int fd, int place, const char *path);

/*
 * The same of one that was made before, by its path, if it is this user's; for so long it is tried
 * again where something stays, since what was killed may write for a moment yet. `confine` is for a
 * process that does nothing else: it removes nothing any more from anywhere else, as above. 0:
 * nothing has that name any more; else a negative errno, -ENOTEMPTY where something stays.
 */
int vt_scratch_discard(const char *path, uid_t uid, bool confine, int patience_ms);
