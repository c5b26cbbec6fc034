/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts of this process's namespace, read when they are first asked for. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

struct vt_mounts {
	/* For each: its number, that of the mount that it is on, its device, the folder of the file system that it shows, where; each with its
	 * NUL. */
	struct vt_str texts;
};

void vt_mounts_init(struct vt_mounts *mounts);
void vt_mounts_done(struct vt_mounts *mounts);

/* Reads them now; false: they are not known. What is mounted from then on does not count. */
bool vt_mounts_know(struct vt_mounts *mounts);

/*
 * Whether something is mounted below an absolute path, not counting what is mounted on it. Where that
 * is not known, it is taken to be so.
 */
bool vt_mounts_below(struct vt_mounts *mounts, const char *path);

/*
 * Calls each with the other absolute paths at which what path shows, or what lies below it, is mounted
 * too. The path need not exist, but must be free of links. -EIO: the mounts are not known.
 */
int vt_mounts_aliases(struct vt_mounts *mounts, const char *path,
		      void (*each)(void *arg, const char *alias), void *arg);
