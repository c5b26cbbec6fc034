/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named pipes of the host, decided on the finished tree of the new root. A read-only mount lets a
 * pipe be written to, and Landlock's rights to write below a folder reach into what is mounted
 * there. So a folder for reading that only its mount keeps from being written gets a veil without
 * names: in an overlay a pipe is the overlay's own, and whoever opens it meets nobody of the
 * host's. Pure; used by places.c alone.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"
#include "plan/root.h"

/*
 * Comes after what is denied: a veil for that does as well. Where no veil can be had the plan says
 * so, in open_pipes.
 */
int vt_pipes_decide(struct vt_root *root, struct vt_plan *plan, struct vt_err *err);
