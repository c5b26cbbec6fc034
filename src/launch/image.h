/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as one piece of memory that another process can map: what the spawner of a hull and its zygotes
 * need of it to build cells and to seal occupants. They are programs started afresh, and nothing of the
 * supervisor's memory is in them.
 *
 * Pointers are offsets in the image, and become pointers again where it is mapped. Texts for people,
 * the command, and what only the supervisor holds are left out.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"

/* Returns a sealed memfd, close-on-exec. */
int vt_image_make(const struct vt_plan *plan, struct vt_err *err);

/*
 * Maps an image; the plan is there until the process ends. -EBADMSG: it is not one that this version
 * of vitro made, and nothing of it may be used.
 */
int vt_image_open(int fd, const struct vt_plan **ret_plan, struct vt_err *err);
