/* SPDX-License-Identifier: Apache-2.0 */
/* What a supervisor says, frame by frame: docs/wire.md. */
#pragma once

#include "base/frame.h"
#include "base/head.h"

/* What came: it is there until the next one is asked for. */
struct vt_message {
	const char    *is;
	struct vt_head head;
	char          *body;
	size_t         body_len;
};

/*
 * Reads a frame, whose head is changed by that. -EBADMSG: it breaks the protocol; it does not say
 * what it is, or a member that is known is not of its kind, or beyond its bounds. Members that are
 * not known are passed over, and a message of a kind that is not known is for who takes it to pass
 * over.
 */
int vt_message_read(const struct vt_frame *frame, struct vt_message *ret_message,
		    struct vt_err *err);
