/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a pool share. pool.c has its cells and calls, makers.c who makes the cells,
 * learn.c what zygotes learn, due.c what only the clock tells.
 */
#pragma once

#include "base/file.h"
#include "host/idrange.h"
#include "pool/hull.h"
#include "pool/lessons.h"
#include "pool/pool.h"
#include "pool/queue.h"
#include "pool/warm.h"
#include "pool/zygote.h"

/*
 * Cells are made, and those whose call is over are killed, when no call came for a while: either
 * takes longer than a call, and would keep the next one from its CPU. That while is what an
 * occupant takes to be ready, between these: the fork of a large zygote costs a call more.
 */
#define VT_POOL_QUIET_LEAST (2 * VT_NS_PER_MS)
#define VT_POOL_QUIET_MOST (10 * VT_NS_PER_MS)
/* How often it is asked whether fewer ready cells would do. */
#define VT_POOL_DECAY (5 * VT_NS_PER_S)
/* How long spawner, zygote and occupants may take to obey: whoever takes longer never will. */
#define VT_POOL_STUCK (10 * VT_NS_PER_S)
/* How long a zygote may take to learn, a trial before it included. */
#define VT_POOL_LESSON (30 * VT_NS_PER_S)
/* From when on, and how often, it is looked for what keeps a cell from its end. */
#define VT_POOL_SWEEP (10 * VT_NS_PER_MS)

struct vt_pool {
	struct vt_pool_options options;
	const struct vt_plan *plan;
	struct vt_loop *loop;
	struct vt_warm_owner owner;
	struct vt_timer timer;

	struct vt_pool_hull hull;
	struct vt_pool_zygote zygotes[2];
	struct vt_pool_zygote *zygote; /* who forks now; the other comes, or goes, or is none */
	unsigned forks;                /* of his */
	int64_t born;                  /* since when he is ready */
	char object[VT_FILE_STAMP];   /* as it was when it was loaded last; "": never */
	struct vt_lessons lessons;
	/* how often the zygote, or its successor, came to know more */
	uint64_t learned;
	int image_fd;

	struct vt_warm *warm[VT_WARM_STATES], *last[VT_WARM_STATES];
	unsigned count[VT_WARM_STATES];
	struct vt_warm *gone; /* to be released and freed */
	struct vt_queue waiting;
	uint64_t numbers;                      /* of cells */
	unsigned slots[VT_IDRANGE_POOL_COUNT]; /* how many cells have each of its ids */
	uint64_t places;                       /* a bit for each that a cell has */

	unsigned target;       /* how many are to be ready */
	unsigned within;       /* calls that run, and that calls made */
	unsigned failures;     /* in a row */
	uint64_t failed_until; /* cells up to this one were there when something failed last */
	struct vt_err refusal; /* what calls that wait are to be told; num 0: nothing */
	/* how long no call came or began when there is time for what is not urgent */
	int64_t quiet;
	int64_t paused_until, last_call, decay_at, sweep_at, release_at;
	struct vt_pool_counts counts;
	bool closing;
};

/* ---- cells and calls: pool.c ---------------------------------------------------------------- */

void vt_pool_log(const struct vt_pool *pool, int level, const char *what, const struct vt_err *err);
/* The same of a whole line, whoever's words it has. */
void vt_pool_log_line(const struct vt_pool *pool, int level, const char *text);
/* The timer fires no later. */
void vt_pool_wake_by(struct vt_pool *pool, int64_t due);
/*
 * After some in a row, nothing is tried for a while, and calls that wait are told, from the timer.
 */
void vt_pool_count_failure(struct vt_pool *pool, const struct vt_err *err);

/* Cells that are being made. */
unsigned vt_pool_under_way(const struct vt_pool *pool);
bool     vt_pool_is_short(const struct vt_pool *pool);
/* Whether there is time for what is not urgent: no call waits, and none came for a while. */
bool     vt_pool_is_quiet(const struct vt_pool *pool, int64_t now);
/* Whether all pools together may have another cell now. */
bool     vt_pool_has_room(const struct vt_pool *pool);
/* Orders as many cells as are wanted now. */
void     vt_pool_refill(struct vt_pool *pool);
/* Orders an occupant of the zygote, which is ready, for a cell that is built. */
void     vt_pool_order_occupant(struct vt_pool *pool, struct vt_warm *warm);
/* Frees cells that are gone, as far as the kernel is done with them. */
void     vt_pool_release_gone(struct vt_pool *pool, int64_t now);
void     vt_pool_serve_waiting(struct vt_pool *pool);
/* Those among them that waited for the hull to look again. */
void     vt_pool_serve_refreshed(struct vt_pool *pool);

/* ---- who makes cells: makers.c -------------------------------------------------------------- */

void vt_pool_init_makers(struct vt_pool *pool);
/* Whether the hull, or the zygote, is to be started. */
bool vt_pool_is_incomplete(const struct vt_pool *pool);
/* Ends a hull whose guards do not hold any more, once no call is in it. */
void vt_pool_leave_unguarded(struct vt_pool *pool);
/* Starts what is missing, unless it was tried over and over. */
void vt_pool_keep(struct vt_pool *pool);
/* Starts the next zygote where this one has forked for long enough. */
void vt_pool_renew_zygote(struct vt_pool *pool, int64_t now);
/* Who comes, or goes, or is none. */
struct vt_pool_zygote *vt_pool_other_zygote(const struct vt_pool *pool);
void vt_pool_end_zygotes(struct vt_pool *pool);
/* What a zygote saw of the object that it loads. */
void vt_pool_object_is(struct vt_pool *pool, const char *mark);

/* ---- what a zygote learns: learn.c ----------------------------------------------------------- */

/* What a zygote says of modules. */
void vt_pool_zygote_said(struct vt_pool_zygote *zygote, const struct vt_note *note);
/* The one who forks now is another one. */
void vt_pool_zygote_knows(struct vt_pool *pool);
/* What a zygote is to be started with; freed with free(), NULL: no memory. */
char **vt_pool_zygote_words(struct vt_pool *pool, const struct vt_pool_zygote *zygote);
/* One has ended. True: by what it was about to import, which the next one leaves out. */
bool vt_pool_blame_lesson(struct vt_pool *pool, struct vt_pool_zygote *zygote,
			  const struct vt_err *err);
/* Whether its occupant was forked by one who knew less. */
bool vt_pool_is_stale(const struct vt_pool *pool, const struct vt_warm *warm);
/* Whether such a one is parked. */
bool vt_pool_has_stale(const struct vt_pool *pool);
/* Ends those of them that are more than are to be ready. */
void vt_pool_drop_stale(struct vt_pool *pool);

/* ---- time: due.c ---------------------------------------------------------------------------- */

void vt_pool_set_timer(struct vt_pool *pool);
void vt_pool_timer_fires(struct vt_timer *timer);
