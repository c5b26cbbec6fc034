/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where cells can write, as a zygote sees it that has joined their hull: it must not load code from
 * there.
 */
#pragma once

#include "plan/plan.h"

/*
 * Calls each with every path that leads to such a place, until it returns other than 0, and returns
 * that.
 */
int vt_writable_list(const struct vt_plan *plan, int (*each)(void *user, const char *path),
		     void *user);
