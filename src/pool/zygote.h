/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of a zygote: starts the program, tells it the plan, hears what it says, and notices
 * when it ends. Part of a pool.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "launch/cell.h"
#include "watch/loop.h"

struct vt_pool_zygote {
	/* the owner's */
	struct vt_loop *loop;
	const char     *program;
	char *const    *argv, *const *envp;
	void (*is_ready)(void *user); /* it takes orders */
	void (*note)(void *user, const struct vt_note *note, int fds[VT_NOTE_FDS]);
	void (*ended)(void *user, const struct vt_err *err); /* by itself */
	void *user;

	/* its own */
	pid_t           pid; /* 0: there is none */
	struct vt_watch control, end;
	bool            ready;
	struct vt_err   failure; /* what it said; num 0: nothing */
};

void vt_pool_zygote_init(struct vt_pool_zygote *zygote);
/* hull_fds are the namespaces that it joins. */
int  vt_pool_zygote_start(struct vt_pool_zygote *zygote, int image_fd, const int hull_fds[VT_HULL_FDS],
			  struct vt_err *err);
/* It obeys what it was told, and ends: then it is told that it ended. */
void vt_pool_zygote_retire(struct vt_pool_zygote *zygote);
/* The same, and hears what it says until it is silent, or for so long. */
void vt_pool_zygote_settle(struct vt_pool_zygote *zygote, int64_t patience);
/* Ends it, without telling. */
void vt_pool_zygote_end(struct vt_pool_zygote *zygote);
