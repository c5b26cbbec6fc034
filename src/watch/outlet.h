/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor that output is written to without ever blocking, though its file description is
 * shared with others and must not be made non-blocking: a deadline does not wait for a slow reader.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum vt_outlet_kind {
	VT_OUTLET_FILE,   /* a regular file: never waits for anybody */
	/* a pipe or terminal, opened anew: a non-blocking description of our own */
	VT_OUTLET_OWN,
	VT_OUTLET_SOCKET, /* each send says that it will not wait */
	/* the rest, and somebody else's: asked first, and given little at a time */
	VT_OUTLET_POLLED,
};

struct vt_outlet {
	enum vt_outlet_kind kind;
	int                 fd;
};

/* Never fails: what cannot be opened anew is polled. */
void vt_outlet_init(struct vt_outlet *outlet, int fd);
void vt_outlet_done(struct vt_outlet *outlet);

/* Writes some of it: how many bytes, or -EAGAIN when it would block, or another -errno. */
ssize_t vt_outlet_write(const struct vt_outlet *outlet, const char *bytes, size_t len);
