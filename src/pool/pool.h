/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool: cells that wait, each with an occupant that has sealed itself, for calls of one program
 * under one plan. Runs in the supervisor, on its loop. A call is handed to the next of them; it is
 * used once, and another is made behind the caller's back. What is kept ready follows demand.
 *
 *	 supervisor ──► spawner, of the hull ──► init of a cell, of the next ...
 *	            ──► zygote ──► occupant: a fork of it, in that cell, a child of the supervisor's
 *
 * Nothing here waits: spawner, zygote and occupants answer when they do, and whoever dies is
 * replaced.
 */
#pragma once

#include "base/err.h"
#include "plan/plan.h"
#include "pool/call.h"
#include "pool/children.h"
#include "watch/loop.h"

/* What all pools of a process may have together. Its owner sets the bounds. */
struct vt_pool_room {
	unsigned cells, cells_max;
	unsigned spare, spare_max; /* of these, that no call has had */
};

struct vt_pool_options {
	const struct vt_plan *plan;    /* pooled; borrowed */
	const char           *program; /* the zygote's: an absolute path */
	/* the file that it was first, and stays; -1: by its path; borrowed */
	int                   program_fd;
	bool                  has_main;   /* it is a client's, who is to call vitro_host_main() */
	/*
	 * it imports modules by name ahead of calls, and tells; further words of its argv are about
	 * them
	 */
	bool                  preloads;
	bool                  learns;     /* and more of them while it lives */
	/* where it does not begin, behind a sentence that says so; NULL: none */
	const char           *advice;
	/* LD_PRELOAD=…: a library that is loaded before it begins; NULL: none */
	const char           *preload;
	const char           *object;     /* that it loads; NULL: none */
	char *const          *argv;
	int                   spawner_fd; /* vitro's own program; borrowed */
	struct vt_children   *children;   /* of this process; borrowed, shared by all pools */
	/* memory for large results; borrowed, shared by all pools; NULL: none */
	struct vt_bulk_spare *spare;
	struct vt_pool_room  *room;       /* the same; NULL: there is no such bound */
	unsigned ready_min, ready_max;    /* cells that wait */
	unsigned live_max;                /* calls at once */
	int64_t  queue_ms;                /* how long a call may wait */
	/* of one zygote, before another takes its place; 0: 4096 */
	unsigned forks_max;
	/*
	 * that hull and zygote may take to be ready; 0: a minute. An interpreter has said something
	 * after a quarter of it
	 */
	int64_t  start_ms;
	/* What is worth a line in a log. NULL: nobody wants to know. */
	void (*log)(void *user, int level, const char *text);
	void *user;
};

struct vt_pool_counts {
	unsigned ready, refilling, live, waiting;
	uint64_t calls, cells_made, cold_calls; /* cold: no cell was ready */
};

struct vt_pool;

int  vt_pool_new(struct vt_loop *loop, const struct vt_pool_options *options,
		 struct vt_pool **ret_pool, struct vt_err *err);
/*
 * Ends whatever runs, and reaps, but waits no longer than a few seconds for what will not die.
 * Calls that are not over end as cancelled, first.
 */
void vt_pool_free(struct vt_pool *pool);
/*
 * The same without waiting at all: what will not die is left to its end. For one that has begun its
 * end.
 */
void vt_pool_leave(struct vt_pool *pool);

/*
 * Begins its end, and waits for nothing: what runs is killed, calls end as cancelled. Nothing may
 * be submitted any more. Once it is over, vt_pool_free() waits for nothing either.
 */
void vt_pool_quit(struct vt_pool *pool);
bool vt_pool_is_over(const struct vt_pool *pool);

void vt_pool_submit(struct vt_pool *pool, struct vt_pool_call *call);
/*
 * The zygote, and all that come after it, is to import a module ahead of calls; what cannot be
 * imported is passed over, and logged. Cells that were occupied before are replaced. Nothing
 * happens where it does not learn.
 */
void vt_pool_learn(struct vt_pool *pool, const char *module);
/* The same of all that another pool was to know. */
void vt_pool_learn_same(struct vt_pool *pool, const struct vt_pool *other);
/* Whether the pool already has such a lesson, or has room for it. */
bool vt_pool_can_learn(const struct vt_pool *pool, const char *module);
/* Calls that were kept waiting, since their maker was full, are heard again. */
void vt_pool_resume(struct vt_pool *pool);
void vt_pool_count(const struct vt_pool *pool, struct vt_pool_counts *ret_counts);
