/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input that is handed on through a pipe: the occupant gets the text, and not the terminal
 * that it could type into or the file that it could open anew.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "watch/loop.h"

struct vt_relay {
	struct vt_loop  *loop;
	struct vt_watch in;
	struct vt_watch out;  /* the pipe's writing end, non-blocking, owned */
	int              probe_fd; /* its reading end, owned: tells what the occupant left in it */
	bool             own;  /* in.fd is ours: opened anew, so as not to block */
	char             held[4096];
	size_t           len, written;
	off_t            taken; /* of the input, in all */
};

/* in_fd is borrowed; probe_fd and out_fd, a pipe's two ends, are taken over. */
int  vt_relay_init(struct vt_relay *relay, struct vt_loop *loop, int in_fd, int probe_fd,
		   int out_fd,
		   struct vt_err *err);
/*
 * A zeroed relay is fine. What was read of a file but never by the occupant is given back: the next
 * reader of the same file goes on where the occupant stopped.
 */
void vt_relay_done(struct vt_relay *relay);
