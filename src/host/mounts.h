/* SPDX-License-Identifier: Apache-2.0 */
/* The mount points of this process's namespace, read when they are first asked for. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

struct vt_mounts {
	struct vt_str points; /* one after the other, each with its NUL */
};

void vt_mounts_init(struct vt_mounts *mounts);
void vt_mounts_done(struct vt_mounts *mounts);

/*
 * Whether something is mounted below an absolute path, not counting what is mounted on it. Where that
 * is not known, it is taken to be so.
 */
bool vt_mounts_below(struct vt_mounts *mounts, const char *path);
