/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where cells can write, as a zygote sees it that has joined their hull: it must not load code from there.
 */
#pragma once

#include <stdint.h>

#include "plan/plan.h"

/* Each returns 0, or what vt_writable_list() is to return. */
struct vt_writable {
	int (*path)(void *user, const char *path);
	int (*inode)(void *user, uint64_t dev, uint64_t ino); /* as the host has it: whatever the name is; or NULL */
	void *user;
};

/* Tells every path that leads to such a place, and every place's inode. */
int vt_writable_list(const struct vt_plan *plan, const struct vt_writable *to);
