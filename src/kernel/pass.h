/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a fixed size with descriptors, between vitro's own processes. On a SOCK_SEQPACKET
 * socket, or on a stream as its first words. Child side: no malloc.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

enum { VT_PASS_MAX = 12 }; /* descriptors in one message */

/* -EPIPE: nobody is there to read it. */
int vt_pass_send(int fd, const void *bytes, size_t len, const int *fds, size_t count,
		 struct vt_err *err);

/*
 * Takes one message of exactly len bytes: 1, 0 if there is none (with MSG_DONTWAIT among flags), or
 * -EPIPE when the other side is gone. ret_fds has a place for each of max descriptors, -1 where
 * none came.
 */
int vt_pass_take(int fd, void *ret_bytes, size_t len, int *ret_fds, size_t max, int flags,
		 struct vt_err *err);
