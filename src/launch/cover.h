/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cover: in a zygote's own mounts nothing is that cells can write; empty folders and files are in the place of it. What a zygote
 * loads, all later calls have. So whatever a module opens there, by whatever way, and whatever a program that it starts does, no call
 * has written it.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"

/* Covers it in the mount namespace of the calling process, for good. */
int vt_cover_written(const struct vt_plan *plan, struct vt_err *err);
