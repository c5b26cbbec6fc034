/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may ask for, by the names and kinds of its members: docs/wire.md. */
#pragma once

#include "base/head.h"

/*
 * Whether the head of a request has the members that it must have, and each one that is known is of
 * its kind and within its bounds: what a client wrote wrong is never taken for left out. Members
 * that are not known are passed over. -EBADMSG. A request that is not known has no members to look
 * at, and passes.
 */
int vt_request_check(const struct vt_head *head, struct vt_err *err);

/* -EBADMSG, of what is wrong with what a client asked for. */
int vt_request_misunderstand(const char *what, struct vt_err *err);
