/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts of this process's namespace, read when they are first asked for. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/str.h"

struct vt_mounts {
	/* Five texts for each mount, each with its NUL: its id, its parent's id, its device, the
	 * folder of the file system that it shows, and its mount point. */
	struct vt_str texts;
	int err; /* why they could not be read: a negative errno, or 0 */
};

void vt_mounts_init(struct vt_mounts *mounts);
void vt_mounts_done(struct vt_mounts *mounts);

/*
 * Reads a list as the kernel writes it, which is mountinfo's but for tests. All of it is known
 * then, or nothing.
 */
int vt_mounts_read(struct vt_mounts *mounts, FILE *file);

/*
 * Reads them now; false: they are not known, and err says why. What is mounted from then on does
 * not count.
 */
bool vt_mounts_know(struct vt_mounts *mounts);

/*
 * Whether something is mounted below an absolute path, not counting what is mounted on it. Where
 * that is not known, it is taken to be so.
 */
bool vt_mounts_below(struct vt_mounts *mounts, const char *path);

/*
 * Calls each with the other absolute paths at which what path shows, or what lies below it, is
 * mounted too. The path need not exist, but must be free of links. Returns 0, or a negative errno:
 * the mounts are not known, or such a path is too long.
 */
int vt_mounts_aliases(struct vt_mounts *mounts, const char *path,
		      void (*each)(void *arg, const char *alias), void *arg);
