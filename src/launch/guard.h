/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds the guards of a plan: what plan/protect.h found below a folder for writing. Whoever builds
 * a root mounts each on itself, names read-only. The kernel lets nobody in that namespace rename or
 * remove what is mounted on. A name that is not there has nothing to be mounted on: so whoever
 * watches the cells notes what is there before a call, and looks again after it. What appeared is
 * set apart under another name, which no program heeds.
 *
 * Looking goes by descriptors from the granted folder, through no link, and trusts nothing that it
 * sees: other cells may write there meanwhile. All that is ever done is to rename a name within the
 * folder that it is in, and to open that folder to its owner where a call closed it.
 *
 * Child side, and the supervisor of a single cell: no malloc, no stdio.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"

/* The folder of a build, as it is mounted below root_fd, has its guards mounted. */
int vt_guard_bind(const struct vt_build *build, int root_fd, struct vt_err *err);

/* Notes what is at each guard of a build: ret_seen has room for all; ino 0: nothing. */
void vt_guard_note(const struct vt_build *build, int folder_fd, struct vt_inode *ret_seen);

/* Whether that is so still, and mounted on, in the namespace of folder_fd. */
bool vt_guard_stands(const struct vt_build *build, int folder_fd, const struct vt_inode *seen);

enum vt_guard_event {
	VT_GUARD_APART,    /* what appeared at path has the name `to` now, in the same folder */
	VT_GUARD_STUCK,    /* it could not be renamed: num says why; to is NULL */
	VT_GUARD_UNSEEN,   /* it could not be looked at, so that anything may be there: the same */
	VT_GUARD_REPLACED, /* another file is there than before, which the host or the call made */
};

struct vt_guard_teller {
	void (*tell)(void *user, enum vt_guard_event event, const char *path, const char *to,
		     int num);
	void *user;
};

/*
 * What a spawner tells of one event, before the path, the new name or nothing, and a NUL behind
 * each.
 */
struct vt_guard_record {
	uint32_t event, num;
	uint64_t build; /* which of the plan's, whose folder path lies in */
};

enum { VT_GUARD_RECORDS_MAX = 64 << 10 }; /* bytes of all that one look tells */

/*
 * Compares a folder with what was noted, and sets apart what appeared, as NAME.vitro-CALL. Paths
 * are relative to the folder; call is cut, and freed of all but letters, digits, '-' and '_'.
 */
void vt_guard_judge(const struct vt_build *build, int folder_fd, const struct vt_inode *seen,
		    const char *call, const struct vt_guard_teller *teller);
