/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as one piece of memory that another process can map: what the spawner of a hull and its
 * zygotes need of it to build cells and to seal occupants. They are programs started afresh, and
 * nothing of the supervisor's memory is in them.
 *
 * Pointers are offsets in the image, and become pointers again where it is mapped. Texts for
 * people, the command, and what only the supervisor holds are left out.
 *
 * Or the whole of it, for a supervisor that had another process make the plan, with what that found
 * beside it.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"

/* Returns a sealed memfd, close-on-exec. */
int vt_image_make(const struct vt_plan *plan, struct vt_err *err);

/*
 * Maps an image; the plan is there until the process ends. -EBADMSG: it is not one that this
 * version of vitro made, and nothing of it may be used.
 */
int vt_image_open(int fd, const struct vt_plan **ret_plan, struct vt_err *err);

enum { VT_IMAGE_TEXTS = 5 };

/* What the texts and the bytes are is for who has it made to know. */
struct vt_image_whole {
	struct vt_plan plan; /* pooled: without a command */
	const char    *texts[VT_IMAGE_TEXTS]; /* or NULL */
	const char    *bytes;
	size_t         bytes_len;
};

/* The same with nothing left out. */
int vt_image_make_whole(const struct vt_image_whole *whole, struct vt_err *err);
/*
 * Until vt_image_close(), with the same len. Every count, place and text in it was found to lie in
 * it, each in a place of its own; what its numbers say is believed.
 */
int vt_image_open_whole(int fd, struct vt_image_whole **ret_whole, size_t *ret_len,
			struct vt_err *err);
/* NULL is fine. */
void vt_image_close(struct vt_image_whole *whole, size_t len);
