/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/image.h"
#include "pool/bare.h"
#include "pool/pool_private.h"
#include "watch/procfs.h"

enum {
	MAKING_MAX = 4,  /* cells under way: more would only slow each other */
	FAILURES_MAX = 3 /* in a row, until calls are told of it */
};

/* How long nobody tries again after what failed over and over. */
#define PAUSE (1 * VT_NS_PER_S)
/* How long private folders, which may be full, are waited for at the end. */
#define END (10 * VT_NS_PER_S)
/* How long what a cell had on the host is waited for, and how long what was killed. */
#define RELEASE (1 * VT_NS_PER_S)
#define REAP    (5 * VT_NS_PER_S)

/* It may name files, which calls can have made: written out, so that it is one line and steers no
 * terminal. */
void vt_pool_log_line(const struct vt_pool *pool, int level, const char *text)
{
	struct vt_str shown;

	if (!pool->options.log)
		return;
	vt_str_init(&shown);
	vt_str_add(&shown, "");
	vt_str_show(&shown, text, strlen(text));
	pool->options.log(pool->options.user, level, shown.failed ? "out of memory" : shown.text);
	vt_str_done(&shown);
}

void vt_pool_log(const struct vt_pool *pool, int level, const char *what, const struct vt_err *err)
{
	char text[sizeof(err->what) + 128];
	bool whole = err->step == VT_STEP_COMMAND; /* its errors are sentences */

	/* What does not fit is cut: it is for a person. */
	(void)snprintf(text, sizeof(text), "%s: %s%s%s", what, err->what, whole ? "" : ": ",
		       whole ? "" : strerror(err->num));
	vt_pool_log_line(pool, level, text);
}

void vt_pool_wake_by(struct vt_pool *pool, int64_t due)
{
	vt_timer_hasten(&pool->timer, due);
}

/* ---- lists of cells ------------------------------------------------------------------------ */

/* As long as it is there it has descriptors. */
static void count_cell(struct vt_pool *pool, int more)
{
	if (pool->options.room)
		pool->options.room->cells += (unsigned)more;
}

static void count_spare(struct vt_pool *pool, enum vt_warm_state state, int more)
{
	if (pool->options.room && state <= VT_WARM_PARKED)
		pool->options.room->spare += (unsigned)more;
}

static void link_warm(struct vt_pool *pool, struct vt_warm *warm)
{
	enum vt_warm_state state = warm->state;

	warm->next = NULL;
	warm->before = pool->last[state];
	*(warm->before ? &warm->before->next : &pool->warm[state]) = warm;
	pool->last[state] = warm;
	pool->count[state]++;
	count_spare(pool, state, 1);
}

static void unlink_warm(struct vt_pool *pool, struct vt_warm *warm, enum vt_warm_state state)
{
	*(warm->before ? &warm->before->next : &pool->warm[state]) = warm->next;
	*(warm->next ? &warm->next->before : &pool->last[state]) = warm->before;
	pool->count[state]--;
	count_spare(pool, state, -1);
}

/* ---- what fails ---------------------------------------------------------------------------- */

void vt_pool_count_failure(struct vt_pool *pool, const struct vt_err *err)
{
	pool->failed_until = pool->numbers;
	if (++pool->failures < FAILURES_MAX)
		return;
	pool->paused_until = vt_clock_now() + PAUSE;
	pool->refusal = *err;
	vt_pool_wake_by(pool, 0); /* not now: whoever waits may be about to be submitted */
}

/* ---- cells --------------------------------------------------------------------------------- */

void vt_pool_order_occupant(struct vt_pool *pool, struct vt_warm *warm)
{
	pool->forks++;
	warm->zygote = pool->zygote;
	warm->learned = pool->learned;
	vt_warm_enter(warm, pool->zygote->control.fd,
		      pool->waiting.count > pool->count[VT_WARM_ENTERING]);
}

/* One that nobody takes the order for waits for the next zygote. */
static void enter(struct vt_pool *pool, struct vt_warm *warm)
{
	if (pool->zygote->ready && !vt_pool_zygote_is_gone(pool->zygote))
		vt_pool_order_occupant(pool, warm);
}

/* An occupant took so long to be ready. One that others kept from its CPU counts for a quarter. */
static void note_time(struct vt_pool *pool, int64_t took)
{
	int64_t quiet = (3 * pool->quiet + took) / 4;

	pool->quiet = quiet < VT_POOL_QUIET_LEAST  ? VT_POOL_QUIET_LEAST
		      : quiet > VT_POOL_QUIET_MOST ? VT_POOL_QUIET_MOST
						   : quiet;
}

static void warm_moved(struct vt_warm *warm, enum vt_warm_state from)
{
	struct vt_pool *pool = warm->owner->user;

	unlink_warm(pool, warm, from);
	link_warm(pool, warm);
	if (warm->call && warm->call->within) {
		pool->within += warm->state == VT_WARM_RUNNING;
		pool->within -= from == VT_WARM_RUNNING;
	}
	if (pool->closing)
		return;
	if (warm->state == VT_WARM_PARKED) {
		pool->failures = 0;
		note_time(pool, warm->since - warm->entered);
		if (vt_pool_has_stale(pool))
			vt_pool_wake_by(pool, 0); /* one of them may go */
		vt_pool_serve_waiting(pool);
		if (pool->waiting.first)
			vt_pool_refill(pool);
		else if (vt_pool_is_short(
				 pool)) /* by a timer, which comes after whatever is due now */
			vt_pool_wake_by(pool, pool->last_call + pool->quiet);
	} else if (warm->state == VT_WARM_OVER) {
		vt_pool_wake_by(pool, pool->last_call + pool->quiet);
	} else if (warm->state == VT_WARM_ENDING) {
		vt_pool_wake_by(pool, warm->since + VT_POOL_SWEEP);
		vt_pool_wake_by(pool, vt_warm_due(warm));
	}
	if (from == VT_WARM_RUNNING && (pool->waiting.first || pool->hull.unguarded))
		vt_pool_wake_by(pool, 0); /* one more may run, or all move to another hull */
	if (warm->state == VT_WARM_BUILT)
		enter(pool, warm);
}

static bool hull_is_dying(void *user)
{
	const struct vt_pool *pool = user;

	return pool->hull.ending || vt_proc_is_exiting(pool->hull.cell.init_fd);
}

/* While others run, what they make may be half done: the last of them is judged for all. */
static bool warm_is_judged(struct vt_warm *warm)
{
	const struct vt_pool *pool = warm->owner->user;

	return pool->plan->guard_count && !pool->plan->bare && !pool->closing &&
	       pool->count[VT_WARM_RUNNING] == (warm->state == VT_WARM_RUNNING);
}

static bool warm_judge(struct vt_warm *warm)
{
	struct vt_pool *pool = warm->owner->user;
	const struct vt_pool_call *call = warm->call;
	const char *id = memchr(call->name, '\0', call->name_len);

	if (!warm_is_judged(warm) || !id)
		return false;
	id++;
	return vt_pool_hull_judge(&pool->hull, warm->number, id,
				  call->name_len - (size_t)(id - call->name));
}

static void warm_failed(struct vt_warm *warm, const struct vt_err *err)
{
	struct vt_pool *pool = warm->owner->user;

	if (pool->closing)
		return;
	vt_pool_log(pool, LOG_WARNING, "a cell could not be made", err);
	/* What hits many at once has happened once; the end of the hull, of which they die, counts.
	 */
	if (warm->number > pool->failed_until && !hull_is_dying(pool))
		vt_pool_count_failure(pool, err);
}

static void warm_gone(struct vt_warm *warm)
{
	struct vt_pool *pool = warm->owner->user;

	/* Processes that it left may have gone on after its result, and after those of others. */
	if (warm->unjudged && !pool->count[VT_WARM_RUNNING])
		(void)vt_pool_hull_judge(&pool->hull, 0, "late", sizeof("late") - 1);
	unlink_warm(pool, warm, warm->state);
	pool->slots[warm->slot]--;
	if (warm->place < VT_PLACES)
		pool->places &= ~(1ULL << warm->place);
	warm->since = vt_clock_now();
	warm->next = pool->gone;
	pool->gone = warm;
	pool->release_at = 0;
	vt_pool_wake_by(pool, 0);
}

/* A kernel that is not done with a cell's cgroup is asked again later. */
void vt_pool_release_gone(struct vt_pool *pool, int64_t now)
{
	struct vt_warm **at = &pool->gone, *warm;

	while ((warm = *at)) {
		if (vt_warm_release(warm) == -EBUSY && now - warm->since < RELEASE) {
			at = &warm->next;
			continue;
		}
		*at = warm->next;
		vt_warm_free(warm);
		count_cell(pool, -1);
	}
	pool->release_at = pool->gone ? now + VT_POOL_SWEEP : INT64_MAX;
}

unsigned vt_pool_under_way(const struct vt_pool *pool)
{
	return pool->count[VT_WARM_MAKING] + pool->count[VT_WARM_BUILT] +
	       pool->count[VT_WARM_ENTERING];
}

static unsigned live(const struct vt_pool *pool)
{
	return pool->count[VT_WARM_RUNNING];
}

bool vt_pool_has_room(const struct vt_pool *pool)
{
	const struct vt_pool_room *room = pool->options.room;
	unsigned ready = pool->count[VT_WARM_PARKED] + vt_pool_under_way(pool);

	/* Those that are spare leave some for calls that wait, in whichever pool. */
	return !room || (room->cells < room->cells_max &&
			 (ready < pool->waiting.count || room->spare < room->spare_max));
}

bool vt_pool_is_short(const struct vt_pool *pool)
{
	unsigned ready = pool->count[VT_WARM_PARKED] + vt_pool_under_way(pool);

	return ready < pool->target + pool->waiting.count + vt_pool_has_stale(pool) &&
	       vt_pool_has_room(pool) &&
	       ready + live(pool) < pool->options.live_max + pool->options.ready_max;
}

/* How many may be under way: what no call waits for takes no CPU from what one does. */
static unsigned making_max(const struct vt_pool *pool)
{
	unsigned waiting = pool->waiting.count, cpus = pool->plan->cpus ? pool->plan->cpus : 1;
	unsigned most = waiting > cpus ? waiting : cpus;

	return most < MAKING_MAX ? most : MAKING_MAX;
}

/* To take a cell apart takes as much CPU as a call that waits for one. */
bool vt_pool_is_quiet(const struct vt_pool *pool, int64_t now)
{
	return !pool->waiting.first && now - pool->last_call >= pool->quiet;
}

/* As many as are to be ready, and one for each that waits; never more than may live. */
static bool wants_more(const struct vt_pool *pool)
{
	int64_t now = vt_clock_now();
	bool soon = pool->waiting.first || pool->count[VT_WARM_PARKED] <= pool->target / 4 ||
		    vt_pool_is_quiet(pool, now);

	return vt_pool_is_short(pool) && soon && vt_pool_under_way(pool) < making_max(pool) &&
	       now >= pool->paused_until;
}

/* One that nobody has; with more cells than ids, one that few have. */
static uint32_t find_slot(const struct vt_pool *pool)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < pool->plan->pool_id_count && pool->slots[best]; i++)
		if (pool->slots[i] < pool->slots[best])
			best = i;
	return best;
}

static uint32_t find_place(const struct vt_pool *pool)
{
	_Static_assert(VT_PLACES == 64, "a bit for each");
	return ~pool->places ? (uint32_t)__builtin_ctzll(~pool->places) : VT_PLACES;
}

void vt_pool_refill(struct vt_pool *pool)
{
	struct vt_warm *warm;
	struct vt_err err;

	while (!pool->closing && (pool->plan->bare || pool->hull.ready) && wants_more(pool)) {
		if (vt_warm_new(&pool->owner, pool->loop, pool->options.children, pool->plan,
				++pool->numbers, find_slot(pool), find_place(pool),
				pool->hull.cell.status_fd, &warm, &err) < 0) {
			vt_pool_log(pool, LOG_WARNING, "a cell could not be ordered", &err);
			if (err.num == EPIPE)
				vt_pool_hull_kill(&pool->hull, &err); /* it is dead already */
			else
				vt_pool_count_failure(pool, &err);
			break;
		}
		warm->in.spare = pool->options.spare;
		pool->slots[warm->slot]++;
		if (warm->place < VT_PLACES)
			pool->places |= 1ULL << warm->place;
		pool->counts.cells_made++;
		count_cell(pool, 1);
		link_warm(pool, warm);
		if (warm->state == VT_WARM_BUILT)
			enter(pool, warm);
	}
	vt_pool_set_timer(pool);
}

/* ---- calls --------------------------------------------------------------------------------- */

/*
 * The last to be ready is the one of which most is in the CPU's caches. But those of a zygote that
 * was replaced are used up first; and those that know less, only where there are no others.
 */
static struct vt_warm *choose(const struct vt_pool *pool)
{
	struct vt_warm *oldest = pool->warm[VT_WARM_PARKED], *last = pool->last[VT_WARM_PARKED];

	if (!oldest || (oldest->zygote != pool->zygote && !vt_pool_is_stale(pool, oldest)))
		return oldest;
	while (last && vt_pool_is_stale(pool, last))
		last = last->before;
	return last ? last : pool->last[VT_WARM_PARKED];
}

/* What the host did before it was made shows in it. */
static bool is_fresh(const struct vt_pool *pool, const struct vt_pool_call *call)
{
	return call->refresh <= pool->hull.refreshed;
}

/* What calls made leaves some room for what the program makes. */
static bool may_run(const struct vt_pool *pool, const struct vt_pool_call *call)
{
	unsigned most = pool->options.live_max;

	return live(pool) < most && (!call->within || pool->within < most - most / 4) &&
	       is_fresh(pool, call);
}

/* Hands a call to a cell that is ready, if it may run now. */
static bool run(struct vt_pool *pool, struct vt_pool_call *call)
{
	struct vt_warm *warm;

	while ((warm = choose(pool)) && may_run(pool, call))
		if (vt_warm_run(warm, call)) {
			/*
			 * Nobody else sets it while the call runs. And what comes after it: to set
			 * a clock then would keep the caller from its CPU.
			 */
			vt_pool_wake_by(pool, vt_warm_due(warm));
			vt_pool_wake_by(pool, pool->last_call + pool->quiet);
			return true;
		}
	return false;
}

void vt_pool_serve_waiting(struct vt_pool *pool)
{
	while (pool->waiting.first && pool->warm[VT_WARM_PARKED] &&
	       live(pool) < pool->options.live_max) {
		struct vt_pool_call *call = vt_queue_next(&pool->waiting);

		if (!may_run(pool, call)) { /* the program's, if there is one */
			pool->waiting.after_within = true;
			call = vt_queue_next(&pool->waiting);
		}
		if (!may_run(pool, call))
			return;
		pool->last_call = vt_clock_now(); /* it came before, and begins now */
		if (!run(pool, call))
			continue;
		pool->waiting.after_within = call->within;
		vt_queue_remove(&pool->waiting, call);
	}
}

/* More was wanted than was there: keep more ready for a while. */
static void expect_more(struct vt_pool *pool)
{
	unsigned more = pool->target * 2;

	pool->counts.cold_calls++;
	pool->target = more < pool->options.ready_max ? more : pool->options.ready_max;
	pool->decay_at = vt_clock_now() + VT_POOL_DECAY;
	vt_pool_refill(pool);
}

void vt_pool_submit(struct vt_pool *pool, struct vt_pool_call *call)
{
	pool->counts.calls++;
	pool->last_call = vt_clock_now();
	call->warm = NULL;
	call->pool = pool;
	call->link = NULL;
	call->refresh = vt_pool_hull_refresh(&pool->hull);
	/* Those that wait may be such as have to leave room. */
	if ((!pool->waiting.first || !call->within) && run(pool, call))
		return;
	vt_queue_add(&pool->waiting, call,
		     (call->since ? call->since : vt_clock_now()) +
			     pool->options.queue_ms * VT_NS_PER_MS);
	if (is_fresh(pool, call))
		expect_more(pool);
	else
		vt_pool_wake_by(pool, call->due);
}

void vt_pool_serve_refreshed(struct vt_pool *pool)
{
	vt_pool_serve_waiting(pool);
	if (pool->waiting.first && is_fresh(pool, pool->waiting.first))
		expect_more(pool);
}

void vt_pool_resume(struct vt_pool *pool)
{
	for (struct vt_warm *warm = pool->warm[VT_WARM_RUNNING], *next; warm; warm = next) {
		next = warm->next;
		vt_warm_resume(warm);
	}
}

void vt_pool_answer(struct vt_pool_call *call, uint64_t id, bool ok, const char *body, size_t len)
{
	if (call->warm)
		vt_warm_answer(call->warm, id, ok, body, len);
}

void vt_pool_cancel(struct vt_pool_call *call)
{
	struct vt_warm *warm = call->warm;

	if (warm) {
		vt_warm_stop(warm, VT_STOP_CANCEL);
		/* It may have a grace period. */
		if (warm->call == call)
			vt_pool_wake_by(warm->owner->user, vt_warm_due(warm));
	} else if (call->link) {
		vt_queue_cancel(&call->pool->waiting, call);
	}
}

void vt_pool_count(const struct vt_pool *pool, struct vt_pool_counts *ret_counts)
{
	*ret_counts = pool->counts;
	ret_counts->ready = pool->count[VT_WARM_PARKED];
	ret_counts->refilling = vt_pool_under_way(pool);
	ret_counts->live = live(pool);
	ret_counts->waiting = pool->waiting.count;
}

/* ---- its beginning and end ----------------------------------------------------------------- */

static int start(struct vt_pool *pool, struct vt_err *err)
{
	vt_spawn_sweep(pool->plan);
	pool->image_fd = vt_image_make(pool->plan, err);
	if (pool->image_fd < 0)
		return pool->image_fd;
	pool->hull.image_fd = pool->image_fd;
	if (!pool->plan->bare)
		return vt_pool_hull_start(&pool->hull, err);
	vt_pool_keep(pool);
	vt_pool_refill(pool);
	return 0;
}

static void init_parts(struct vt_pool *pool)
{
	pool->owner = (struct vt_warm_owner){ .user = pool,
					      .moved = warm_moved,
					      .is_dying = hull_is_dying,
					      .is_judged = warm_is_judged,
					      .judge = warm_judge,
					      .failed = warm_failed,
					      .gone = warm_gone };
	pool->timer = (struct vt_timer){ .fire = vt_pool_timer_fires, .owner = pool };
	vt_pool_init_makers(pool);
}

int vt_pool_new(struct vt_loop *loop, const struct vt_pool_options *options,
		struct vt_pool **ret_pool, struct vt_err *err)
{
	struct vt_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return vt_fail(err, VT_STEP_CLONE, ENOMEM, "make a pool");
	pool->options = *options;
	pool->plan = options->plan;
	pool->loop = loop;
	pool->image_fd = -1;
	pool->target = options->ready_min;
	pool->quiet = VT_POOL_QUIET_LEAST;
	vt_queue_init(&pool->waiting);
	init_parts(pool);
	vt_loop_add_timer(loop, &pool->timer);
	int r = start(pool, err);

	if (r < 0) {
		vt_pool_free(pool);
		return r;
	}
	vt_pool_set_timer(pool);
	*ret_pool = pool;
	return 0;
}

static void kill_all(struct vt_pool *pool)
{
	for (size_t state = 0; state < VT_WARM_ENDING; state++)
		while (pool->warm[state]) {
			struct vt_warm *warm = pool->warm[state];

			if (state == VT_WARM_RUNNING)
				vt_warm_stop(warm, VT_STOP_CANCEL);
			else
				vt_warm_kill(warm);
		}
}

void vt_pool_quit(struct vt_pool *pool)
{
	pool->closing = true;
	while (pool->waiting.first)
		vt_pool_cancel(pool->waiting.first);
	kill_all(pool);
	vt_pool_end_zygotes(pool);
	vt_pool_hull_quit(&pool->hull);
	vt_pool_set_timer(pool);
}

bool vt_pool_is_over(const struct vt_pool *pool)
{
	return !vt_pool_hull_lives(&pool->hull) && !pool->warm[VT_WARM_ENDING] && !pool->gone;
}

/* What it had on the host is waited for too, unless nothing is. */
static void finish(struct vt_pool *pool, bool waits)
{
	const struct timespec pause = { .tv_nsec = VT_NS_PER_MS };

	vt_pool_quit(pool);
	/* All die with the spawner. */
	vt_pool_hull_done(&pool->hull, waits ? REAP : 0);
	const int64_t until = vt_clock_now() + END;

	/* Bare ones end by themselves, and are all at it by now. */
	while (waits && pool->plan->bare && pool->warm[VT_WARM_ENDING])
		vt_warm_bare_await(pool->warm[VT_WARM_ENDING], until);
	while (pool->warm[VT_WARM_ENDING])
		vt_warm_leave(pool->warm[VT_WARM_ENDING]);
	for (vt_pool_release_gone(pool, waits ? vt_clock_now() : INT64_MAX); pool->gone;
	     vt_pool_release_gone(pool, vt_clock_now()))
		(void)nanosleep(&pause, NULL); /* a shorter one only means one more try */
	vt_loop_remove_timer(pool->loop, &pool->timer);
	vt_fd_close(&pool->image_fd);
	vt_lessons_done(&pool->lessons);
	free(pool);
}

void vt_pool_free(struct vt_pool *pool)
{
	if (pool)
		finish(pool, true);
}

void vt_pool_leave(struct vt_pool *pool)
{
	if (pool)
		finish(pool, false);
}
