/* SPDX-License-Identifier: Apache-2.0 */
/* What only the clock tells a pool: when it wakes up, and what it does then. */
#include <errno.h>

#include "base/clock.h"
#include "pool/pool_private.h"

enum {
	OVER_MAX = 64, /* cells that are over and live on, while calls keep coming */
	/* More than a program takes that loads much, on a machine that is busy. */
	START_MS = 60 * 1000,
};

/* But no longer than this after the result: it may be a process that never rests. */
#define OVER_LONG (100 * VT_NS_PER_MS)
/* How rarely it is looked for what keeps a cell from its end. */
#define SWEEP_MAX (1 * VT_NS_PER_S)

static int64_t lesser(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What keeps a cell from its end, or the hull, may be an occupant that nobody knows. */
static int64_t sweep_due(const struct vt_pool *pool)
{
	const struct vt_warm *oldest = pool->warm[VT_WARM_ENDING];
	int64_t due = oldest ? oldest->since + VT_POOL_SWEEP : pool->hull.ending ? 0 : INT64_MAX;

	return due > pool->sweep_at ? due : pool->sweep_at;
}

static void sweep(struct vt_pool *pool, int64_t now)
{
	const struct vt_warm *oldest = pool->warm[VT_WARM_ENDING];
	int64_t pause = oldest ? now - oldest->since : VT_POOL_SWEEP;

	vt_children_sweep(pool->options.children);
	vt_pool_hull_look(&pool->hull);
	for (struct vt_warm *warm = pool->warm[VT_WARM_ENDING], *next; warm; warm = next) {
		next = warm->next;
		vt_warm_reap(warm);
	}
	pause = pause < SWEEP_MAX ? pause : SWEEP_MAX;
	pool->sweep_at = now + (pause > VT_POOL_SWEEP ? pause : VT_POOL_SWEEP);
}

static int64_t start_ms(const struct vt_pool *pool)
{
	return pool->options.start_ms ? pool->options.start_ms : START_MS;
}

/* An interpreter says something as soon as it runs. What hangs before that is nothing of the
 * caller's, and the next one may not: a call that waits is to have that. */
static int64_t zygote_ms(const struct vt_pool *pool, const struct vt_pool_zygote *zygote)
{
	return zygote->advice && !zygote->heard ? start_ms(pool) / 4 : start_ms(pool);
}

static bool hull_comes(const struct vt_pool_hull *hull)
{
	return vt_pool_hull_lives(hull) && !hull->ready && !hull->ending;
}

static int64_t start_due(const struct vt_pool *pool)
{
	int64_t due = INT64_MAX;

	if (hull_comes(&pool->hull))
		due = pool->hull.started + start_ms(pool) * VT_NS_PER_MS;
	for (size_t i = 0; i < 2; i++) {
		const struct vt_pool_zygote *zygote = &pool->zygotes[i];

		if (vt_pool_zygote_comes(zygote))
			due = lesser(zygote->started + zygote_ms(pool, zygote) * VT_NS_PER_MS, due);
	}
	return due;
}

/* Who hangs before it is ready: a program may, in what comes before its vitro_host_main(). */
static void end_unready(struct vt_pool *pool, int64_t now)
{
	const int64_t ms = start_ms(pool);
	struct vt_err err;

	if (hull_comes(&pool->hull) && pool->hull.started <= now - ms * VT_NS_PER_MS) {
		(void)vt_fail(&err, VT_STEP_WATCH, ETIMEDOUT, "have the hull ready within %g s",
			      (double)ms / 1000);
		vt_pool_hull_kill(&pool->hull, &err); /* and its zygotes */
	}
	for (size_t i = 0; i < 2; i++) {
		struct vt_pool_zygote *zygote = &pool->zygotes[i];
		const int64_t allowed = zygote_ms(pool, zygote);

		if (vt_pool_zygote_comes(zygote) && zygote->started <= now - allowed * VT_NS_PER_MS)
			vt_pool_zygote_give_up(zygote, allowed);
	}
}

static int64_t stuck_due(const struct vt_pool *pool)
{
	const struct vt_warm *making = pool->warm[VT_WARM_MAKING];
	const struct vt_warm *entering = pool->warm[VT_WARM_ENTERING];
	const struct vt_pool_zygote *other = vt_pool_other_zygote(pool);
	int64_t due = start_due(pool);

	if (making)
		due = lesser(making->since + VT_POOL_STUCK, due);
	if (other->child.pid && other->retired)
		due = lesser(other->retired + VT_POOL_STUCK, due);
	if (pool->zygote->lesson)
		due = lesser(pool->zygote->asked + VT_POOL_LESSON, due);
	return entering ? lesser(entering->since + VT_POOL_STUCK, due) : due;
}

/* Who was stopped, or waits for what will not come. */
static void end_stuck(struct vt_pool *pool, int64_t now)
{
	const struct vt_warm *making = pool->warm[VT_WARM_MAKING];
	struct vt_warm *entering = pool->warm[VT_WARM_ENTERING];
	struct vt_pool_zygote *other = vt_pool_other_zygote(pool);
	struct vt_err err;

	if (making && now - making->since >= VT_POOL_STUCK) {
		(void)vt_fail(&err, VT_STEP_WATCH, ETIMEDOUT, "have the spawner make a cell");
		vt_pool_hull_kill(&pool->hull, &err);
	} else if (entering && now - entering->since >= VT_POOL_STUCK) {
		(void)vt_fail(&err, VT_STEP_WATCH, ETIMEDOUT, "have a cell occupied");
		/* Of one that the zygote has told of, the occupant itself is to blame. */
		if (entering->child.pid || !entering->zygote)
			vt_warm_fail(entering, &err);
		else
			vt_pool_zygote_kill(entering->zygote, &err);
	} else if (other->child.pid && other->retired && now - other->retired >= VT_POOL_STUCK) {
		(void)vt_fail(&err, VT_STEP_WATCH, ETIMEDOUT, "have a zygote end");
		vt_pool_zygote_kill(other, &err);
	} else if (pool->zygote->lesson && now - pool->zygote->asked >= VT_POOL_LESSON) {
		(void)vt_fail(&err, VT_STEP_WATCH, ETIMEDOUT, "have a zygote learn");
		vt_pool_zygote_kill(pool->zygote, &err);
	}
}

static void refuse_waiting(struct vt_pool *pool)
{
	const struct vt_err why = pool->refusal;

	pool->refusal.num = 0;
	if (why.num)
		vt_queue_refuse(&pool->waiting, &why);
}

/* The oldest comes first. */
static bool is_over_long(const struct vt_pool *pool, int64_t now)
{
	const struct vt_warm *oldest = pool->warm[VT_WARM_OVER];

	return vt_pool_is_quiet(pool, now) || pool->count[VT_WARM_OVER] > OVER_MAX ||
	       now - oldest->since >= OVER_LONG || (pool->waiting.first && !vt_pool_has_room(pool));
}

void vt_pool_set_timer(struct vt_pool *pool)
{
	/* What cannot be made now is not tried over and over: something else will happen first. */
	bool can_make = (pool->plan->bare || pool->hull.ready) && !pool->paused_until &&
			!vt_pool_under_way(pool) && !pool->closing;
	const struct vt_warm *over = pool->warm[VT_WARM_OVER];
	bool rests = (over && !pool->waiting.first) || (can_make && vt_pool_is_short(pool));
	int64_t due = rests ? pool->last_call + pool->quiet : INT64_MAX;

	if (over)
		due = lesser(over->since + OVER_LONG, due);
	for (size_t state = VT_WARM_RUNNING; state < VT_WARM_STATES; state++)
		for (const struct vt_warm *warm = pool->warm[state]; warm; warm = warm->next)
			due = lesser(vt_warm_due(warm), due);
	/* All may wait for the same time, and come in that order. */
	if (pool->waiting.first)
		due = lesser(pool->waiting.first->due, due);
	if (pool->decay_at)
		due = lesser(pool->decay_at, due);
	if (pool->refusal.num)
		due = 0;
	if (pool->paused_until)
		due = lesser(pool->paused_until, due);
	else if (vt_pool_is_incomplete(pool))
		due = lesser(vt_clock_now() + VT_POOL_SWEEP, due);
	/* Others make room, and do not tell. */
	if (pool->waiting.first && !pool->closing && !vt_pool_has_room(pool))
		due = lesser(vt_clock_now() + VT_POOL_SWEEP, due);
	if (pool->gone)
		due = lesser(pool->release_at, due);
	vt_timer_set(&pool->timer, lesser(lesser(sweep_due(pool), stuck_due(pool)), due));
}

void vt_pool_timer_fires(struct vt_timer *timer)
{
	struct vt_pool *pool = timer->owner;
	int64_t now = vt_clock_now();

	while (pool->warm[VT_WARM_OVER] && is_over_long(pool, now))
		vt_warm_kill(pool->warm[VT_WARM_OVER]);
	for (size_t state = VT_WARM_RUNNING; state < VT_WARM_STATES; state++)
		for (struct vt_warm *warm = pool->warm[state], *next; warm; warm = next) {
			next = warm->next;
			if (vt_warm_due(warm) <= now)
				vt_warm_tick(warm, now);
		}
	refuse_waiting(pool);
	vt_queue_expire(&pool->waiting, now);
	if (pool->gone && pool->release_at <= now)
		vt_pool_release_gone(pool, now);
	if (sweep_due(pool) <= now)
		sweep(pool, now);
	vt_pool_leave_unguarded(pool);
	end_unready(pool, now);
	end_stuck(pool, now);
	vt_pool_renew_zygote(pool, now);
	if (pool->paused_until && pool->paused_until <= now) {
		pool->paused_until = 0;
		pool->failures = 0;
	}
	vt_pool_keep(pool);
	if (pool->decay_at && pool->decay_at <= now) {
		if (pool->target > pool->options.ready_min)
			pool->target--;
		/* Those that were made for calls which others have served meanwhile. */
		while (pool->count[VT_WARM_PARKED] > pool->target)
			vt_warm_kill(pool->warm[VT_WARM_PARKED]);
		pool->decay_at = pool->target > pool->options.ready_min ? now + VT_POOL_DECAY : 0;
	}
	vt_pool_serve_waiting(pool);
	vt_pool_drop_stale(pool);
	vt_pool_refill(pool);
}
