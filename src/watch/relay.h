/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal's input, handed to the occupant through a pipe: it gets the text and not the terminal,
 * which it could reconfigure or type into.
 */
#pragma once

#include "base/err.h"
#include "watch/loop.h"

struct vt_relay {
	struct vt_loop  *loop;
	struct vt_source in;   /* the terminal; borrowed */
	struct vt_source out;  /* the pipe's writing end, non-blocking, owned */
	char             held[4096];
	size_t           len, written;
};

/* out_fd is taken over. */
int  vt_relay_init(struct vt_relay *relay, struct vt_loop *loop, int in_fd, int out_fd,
		   struct vt_err *err);
/* A zeroed relay is fine. */
void vt_relay_done(struct vt_relay *relay);
