/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of a zygote: starts the program, tells it the plan, hears what it says, and
 * notices when it ends. Part of a pool.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "launch/cell.h"
#include "pool/children.h"
#include "watch/loop.h"

struct vt_pool_zygote {
	/* the owner's */
	struct vt_loop     *loop;
	struct vt_children *children;
	const struct vt_plan *plan;
	const char     *program;
	/* the file that it is, where its path leads to another; -1: none */
	int             program_fd;
	bool            has_main;   /* it is a client's, who is to call vitro_host_main() */
	const char     *advice;     /* where it does not begin; NULL: none */
	/* LD_PRELOAD=…: a library that is loaded before it begins; NULL: none */
	const char     *preload;
	const char     *object;     /* that it loads; NULL: none */
	char *const    *argv, *const *envp;
	void (*is_ready)(void *user); /* it takes orders */
	void (*note)(void *user, const struct vt_note *note, int fds[VT_NOTE_FDS]);
	/* of what it learns */
	void (*said)(struct vt_pool_zygote *zygote, const struct vt_note *note);
	void (*ended)(struct vt_pool_zygote *zygote, const struct vt_err *err); /* by itself */
	size_t  lesson; /* what it is to learn, from 1 on; 0: nothing */
	int64_t asked;  /* since when */
	int     lines;  /* that it had in the log */
	void *user;

	/* its own */
	struct vt_child child; /* pid 0: there is none */
	struct vt_watch control, end;
	int             said_fd; /* its standard error, until it is ready; -1: closed */
	int64_t         started; /* since when it is to become ready */
	bool            heard;   /* it has said something */
	bool            ready;
	bool            looked;  /* it has told of its object */
	int64_t         retired; /* since when; 0: it is not */
	struct vt_err   failure; /* what it said; num 0: nothing */
	/* what it imports, before it is ready; "": nothing */
	char            loading[VT_MODULE_MAX + 1];
};

void vt_pool_zygote_init(struct vt_pool_zygote *zygote);
/*
 * hull_fds are the namespaces that it joins; the first is -1 where cells are bare, and there are
 * none.
 */
int  vt_pool_zygote_start(struct vt_pool_zygote *zygote, int image_fd,
			  const int hull_fds[VT_HULL_FDS],
			  struct vt_err *err);
/* Whether it is gone, though nobody has been told of it yet. */
bool vt_pool_zygote_is_gone(const struct vt_pool_zygote *zygote);
/* Whether it is not ready yet, and may still be. */
bool vt_pool_zygote_comes(const struct vt_pool_zygote *zygote);
/* Ends it for this reason, and tells. */
void vt_pool_zygote_kill(struct vt_pool_zygote *zygote, const struct vt_err *why);
/* The same for one that was to be ready within so many milliseconds. */
void vt_pool_zygote_give_up(struct vt_pool_zygote *zygote, int64_t ms);
/* It obeys what it was told, and ends: then it is told that it ended. */
void vt_pool_zygote_retire(struct vt_pool_zygote *zygote);
/* Ends it, without telling. */
void vt_pool_zygote_end(struct vt_pool_zygote *zygote);
