/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a zygote has of the host until it joins the hull of its cells: its program, the libraries of
 * that, an interpreter's own modules. None of it is what calls can write, which is covered
 * (launch/cover.h) by all names that it has on the host.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"

/*
 * In the mount namespace of the calling process, which is its own and shares nothing with others.
 * The working directory may change.
 */
int vt_shade_written(const struct vt_plan *plan, struct vt_err *err);
