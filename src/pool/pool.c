/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/idrange.h"
#include "launch/image.h"
#include "pool/bare.h"
#include "pool/hull.h"
#include "pool/queue.h"
#include "pool/warm.h"
#include "pool/zygote.h"
#include "watch/procfs.h"

enum {
	MAKING_MAX = 4,   /* cells under way: more would only slow each other */
	OVER_MAX = 64,    /* that are over and live on, while calls keep coming */
	FAILURES_MAX = 3, /* in a row, until calls are told of it */
	FORKS_MAX = 4096  /* of one zygote */
};

/*
 * Cells are made, and those whose call is over are killed, when no call came for so long: either
 * takes longer than a call, and would keep the next one from its CPU.
 */
#define QUIET (2 * VT_NS_PER_MS)
/* But no longer than this after the result: it may be a process that never rests. */
#define OVER_LONG (100 * VT_NS_PER_MS)
/* How long nobody tries again after what failed over and over. */
#define PAUSE (1 * VT_NS_PER_S)
/*
 * All that a zygote forks have its addresses and canaries: what one cell learns of them is of no
 * use for long. Nor does one fork for longer than this.
 */
#define AGE_MAX (600 * VT_NS_PER_S)
/* How long private folders, which may be full, are waited for at the end. */
#define END (10 * VT_NS_PER_S)
/* How often it is asked whether fewer ready cells would do. */
#define DECAY (5 * VT_NS_PER_S)
/* How long spawner, zygote and occupants may take to obey: whoever takes longer never will. */
#define STUCK (10 * VT_NS_PER_S)
/* From when on, and how often, it is looked for what keeps a cell from its end. */
#define SWEEP     (10 * VT_NS_PER_MS)
#define SWEEP_MAX (1 * VT_NS_PER_S)
/* How long what a cell had on the host is waited for, and how long what was killed. */
#define RELEASE (1 * VT_NS_PER_S)
#define REAP    (5 * VT_NS_PER_S)

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
	int image_fd, null_fd;

	struct vt_warm *warm[VT_WARM_STATES], **last[VT_WARM_STATES];
	unsigned count[VT_WARM_STATES];
	struct vt_warm *gone; /* to be released and freed */
	struct vt_queue waiting;
	uint64_t numbers;                      /* of cells */
	unsigned slots[VT_IDRANGE_POOL_COUNT]; /* how many cells have each of its ids */

	unsigned target;       /* how many are to be ready */
	unsigned failures;     /* in a row */
	uint64_t failed_until; /* cells up to this one were there when something failed last */
	int64_t paused_until, last_call, decay_at, sweep_at, release_at;
	struct vt_pool_counts counts;
	bool closing;
};

static bool is_short(const struct vt_pool *pool);
static void refill(struct vt_pool *pool);
static void serve_waiting(struct vt_pool *pool);
static void set_timer(struct vt_pool *pool);

static void log_line(const struct vt_pool *pool, int level, const char *what,
		     const struct vt_err *err)
{
	char text[sizeof(err->what) + 128];

	if (!pool->options.log)
		return;
	/* What does not fit is cut: it is for a person. */
	(void)snprintf(text, sizeof(text), "%s: %s: %s", what, err->what, strerror(err->num));
	pool->options.log(pool->options.user, level, text);
}

static int64_t lesser(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void wake_by(struct vt_pool *pool, int64_t due)
{
	vt_timer_hasten(&pool->timer, due);
}

/* ---- lists of cells ------------------------------------------------------------------------ */

static void link_warm(struct vt_pool *pool, struct vt_warm *warm)
{
	enum vt_warm_state state = warm->state;

	warm->next = NULL;
	warm->link = pool->last[state];
	*pool->last[state] = warm;
	pool->last[state] = &warm->next;
	pool->count[state]++;
}

static void unlink_warm(struct vt_pool *pool, struct vt_warm *warm, enum vt_warm_state state)
{
	*warm->link = warm->next;
	if (warm->next)
		warm->next->link = warm->link;
	else
		pool->last[state] = warm->link;
	pool->count[state]--;
}

/* ---- what fails ---------------------------------------------------------------------------- */

static void count_failure(struct vt_pool *pool, const struct vt_err *err)
{
	pool->failed_until = pool->numbers;
	if (++pool->failures < FAILURES_MAX)
		return;
	pool->paused_until = vt_clock_now() + PAUSE;
	vt_queue_refuse(&pool->waiting, err);
}

/* ---- cells --------------------------------------------------------------------------------- */

static void order_occupant(struct vt_pool *pool, struct vt_warm *warm)
{
	pool->forks++;
	warm->zygote = pool->zygote;
	vt_warm_enter(warm, pool->zygote->control.fd, pool->null_fd);
}

/* One that nobody takes the order for waits for the next zygote. */
static void enter(struct vt_pool *pool, struct vt_warm *warm)
{
	if (pool->zygote->ready && !vt_pool_zygote_is_gone(pool->zygote))
		order_occupant(pool, warm);
}

static void warm_moved(struct vt_warm *warm, enum vt_warm_state from)
{
	struct vt_pool *pool = warm->owner->user;

	unlink_warm(pool, warm, from);
	link_warm(pool, warm);
	if (pool->closing)
		return;
	if (warm->state == VT_WARM_PARKED) {
		pool->failures = 0;
		serve_waiting(pool);
		if (pool->waiting.first)
			refill(pool);
		else if (is_short(pool)) /* by a timer, which comes after whatever is due now */
			wake_by(pool, pool->last_call + QUIET);
	} else if (warm->state == VT_WARM_OVER) {
		wake_by(pool, pool->last_call + QUIET);
	} else if (warm->state == VT_WARM_ENDING) {
		wake_by(pool, warm->since + SWEEP);
		wake_by(pool, vt_warm_due(warm));
	}
	if (from == VT_WARM_RUNNING && pool->waiting.first)
		wake_by(pool, 0); /* one more may run */
	if (warm->state == VT_WARM_BUILT)
		enter(pool, warm);
}

static void warm_failed(struct vt_warm *warm, const struct vt_err *err)
{
	struct vt_pool *pool = warm->owner->user;

	if (pool->closing)
		return;
	log_line(pool, LOG_WARNING, "a cell could not be made", err);
	/* What hits many at once has happened once. */
	if (warm->number > pool->failed_until)
		count_failure(pool, err);
}

static bool hull_is_dying(void *user)
{
	const struct vt_pool *pool = user;

	return pool->hull.ending || vt_proc_is_exiting(pool->hull.cell.init_fd);
}

static void warm_gone(struct vt_warm *warm)
{
	struct vt_pool *pool = warm->owner->user;

	unlink_warm(pool, warm, warm->state);
	pool->slots[warm->slot]--;
	warm->since = vt_clock_now();
	warm->next = pool->gone;
	pool->gone = warm;
	pool->release_at = 0;
	wake_by(pool, 0);
}

/* A kernel that is not done with a cell's cgroup is asked again later. */
static void release_gone(struct vt_pool *pool, int64_t now)
{
	struct vt_warm **at = &pool->gone, *warm;

	while ((warm = *at)) {
		if (vt_warm_release(warm) == -EBUSY && now - warm->since < RELEASE) {
			at = &warm->next;
			continue;
		}
		*at = warm->next;
		vt_warm_free(warm);
	}
	pool->release_at = pool->gone ? now + SWEEP : INT64_MAX;
}

static unsigned under_way(const struct vt_pool *pool)
{
	return pool->count[VT_WARM_MAKING] + pool->count[VT_WARM_BUILT] +
	       pool->count[VT_WARM_ENTERING];
}

static unsigned live(const struct vt_pool *pool)
{
	return pool->count[VT_WARM_RUNNING];
}

static bool is_short(const struct vt_pool *pool)
{
	unsigned ready = pool->count[VT_WARM_PARKED] + under_way(pool);

	return ready < pool->target + pool->waiting.count &&
	       ready + live(pool) < pool->options.live_max + pool->options.ready_max;
}

/* As many as are to be ready, and one for each that waits; never more than may live. */
static bool wants_more(const struct vt_pool *pool)
{
	int64_t now = vt_clock_now();
	bool soon = pool->waiting.first || pool->count[VT_WARM_PARKED] <= pool->target / 4 ||
		    now - pool->last_call >= QUIET;

	return is_short(pool) && soon && under_way(pool) < MAKING_MAX && now >= pool->paused_until;
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

static void refill(struct vt_pool *pool)
{
	struct vt_warm *warm;
	struct vt_err err;

	while ((pool->plan->bare || pool->hull.ready) && wants_more(pool)) {
		if (vt_warm_new(&pool->owner, pool->loop, pool->options.children, pool->plan,
				++pool->numbers, find_slot(pool), pool->hull.cell.status_fd, &warm,
				&err) < 0) {
			log_line(pool, LOG_WARNING, "a cell could not be ordered", &err);
			if (err.num == EPIPE)
				vt_pool_hull_kill(&pool->hull, &err); /* it is dead already */
			else
				count_failure(pool, &err);
			break;
		}
		pool->slots[warm->slot]++;
		pool->counts.cells_made++;
		link_warm(pool, warm);
		if (warm->state == VT_WARM_BUILT)
			enter(pool, warm);
	}
	set_timer(pool);
}

/* ---- the hull ------------------------------------------------------------------------------ */

static struct vt_warm *find(const struct vt_pool *pool, uint64_t number)
{
	for (size_t state = 0; state < VT_WARM_STATES; state++)
		for (struct vt_warm *warm = pool->warm[state]; warm; warm = warm->next)
			if (warm->number == number)
				return warm;
	return NULL;
}

static void give_note(void *user, const struct vt_note *note, int fds[VT_NOTE_FDS])
{
	struct vt_warm *warm = find(user, note->cell);

	if (warm)
		vt_warm_note(warm, note, fds);
}

/* The hull, or its zygote, is to be started. */
static bool is_incomplete(const struct vt_pool *pool)
{
	if (pool->plan->bare)
		return !pool->zygote->child.pid;
	return !vt_pool_hull_lives(&pool->hull) ||
	       (!pool->hull.ending && pool->hull.fds[0] >= 0 && !pool->zygote->child.pid);
}

/* Neither is started again and again if it dies at once. */
static void keep(struct vt_pool *pool)
{
	struct vt_err err;
	int r;

	if (pool->closing || !is_incomplete(pool) || vt_clock_now() < pool->paused_until)
		return;
	if (!pool->plan->bare && !vt_pool_hull_lives(&pool->hull))
		r = vt_pool_hull_start(&pool->hull, &err);
	else
		r = vt_pool_zygote_start(pool->zygote, pool->image_fd, pool->hull.fds, &err);
	if (r < 0) {
		log_line(pool, LOG_WARNING, "a pool could not be started", &err);
		count_failure(pool, &err);
		set_timer(pool); /* to try again */
	}
}

static void hull_built(void *user)
{
	keep(user);
}

static void hull_ready(void *user)
{
	refill(user);
}

static void end_zygotes(struct vt_pool *pool)
{
	vt_pool_zygote_end(&pool->zygotes[0]);
	vt_pool_zygote_end(&pool->zygotes[1]);
}

/* Whatever is in it dies with it; and a zygote that has joined it is of no use to the next. */
static void hull_ending(void *user, const struct vt_err *why)
{
	struct vt_pool *pool = user;

	log_line(pool, LOG_WARNING, "the hull is made anew", why);
	end_zygotes(pool);
	while (pool->warm[VT_WARM_RUNNING])
		vt_warm_lose(pool->warm[VT_WARM_RUNNING], why);
	for (size_t state = 0; state < VT_WARM_ENDING; state++)
		while (pool->warm[state])
			vt_warm_kill(pool->warm[state]);
	count_failure(pool, why);
	set_timer(pool);
}

static void hull_ended(void *user)
{
	struct vt_pool *pool = user;

	keep(pool);
	set_timer(pool);
}

/* ---- the zygote ---------------------------------------------------------------------------- */

static struct vt_pool_zygote *other_zygote(const struct vt_pool *pool)
{
	return (struct vt_pool_zygote *)&pool->zygotes[pool->zygote == pool->zygotes];
}

/* Starts the next one, while this one goes on. */
static void renew_zygote(struct vt_pool *pool, int64_t now)
{
	const unsigned most = pool->options.forks_max ? pool->options.forks_max : FORKS_MAX;
	struct vt_err err;

	if (!pool->zygote->ready || other_zygote(pool)->child.pid ||
	    (pool->forks < most && now - pool->born < AGE_MAX))
		return;
	pool->forks = 0; /* one that does not come is tried again when as many more were forked */
	pool->born = now;
	if (vt_pool_zygote_start(other_zygote(pool), pool->image_fd, pool->hull.fds, &err) < 0)
		log_line(pool, LOG_WARNING, "the program that holds the tools goes on", &err);
}

static void zygote_ready(void *user)
{
	struct vt_pool *pool = user;

	if (other_zygote(pool)->ready) {
		vt_pool_zygote_retire(pool->zygote);
		wake_by(pool, pool->zygote->retired + STUCK);
		pool->zygote = other_zygote(pool);
	}
	pool->forks = 0;
	pool->born = vt_clock_now();
	while (pool->warm[VT_WARM_BUILT] && pool->zygote->ready)
		order_occupant(pool, pool->warm[VT_WARM_BUILT]);
}

/*
 * Those that it was to fork into cells are not coming, or nobody knows them. One that was retired
 * has obeyed before it ended, and an init of a bare cell speaks for itself: it may just not have
 * done so yet.
 */
static void give_up_entering(struct vt_pool *pool, const struct vt_pool_zygote *zygote)
{
	for (struct vt_warm *warm = pool->warm[VT_WARM_ENTERING], *next; warm; warm = next) {
		next = warm->next;
		if (warm->zygote != zygote)
			continue;
		warm->zygote = NULL;
		if (!warm->child.pid && !(pool->plan->bare && zygote->retired))
			vt_warm_kill(warm);
	}
}

/* Cells that have their occupant go on. */
static void zygote_ended(void *user, const struct vt_err *err)
{
	struct vt_pool *pool = user;
	struct vt_pool_zygote *other = other_zygote(pool);

	if (pool->zygote->child.pid) {
		give_up_entering(pool, other);
		if (!other->retired)
			log_line(pool, LOG_WARNING, "the program that holds the tools goes on",
				 err);
		refill(pool);
		return;
	}
	give_up_entering(pool, pool->zygote);
	log_line(pool, LOG_WARNING, "the program that holds the tools ended, and is started anew",
		 err);
	if (other->child.pid && !other->retired)
		pool->zygote = other; /* it is on its way already */
	count_failure(pool, err);
	keep(pool);
	refill(pool);
}

/* ---- time ---------------------------------------------------------------------------------- */

/* What keeps a cell from its end, or the hull, may be an occupant that nobody knows. */
static int64_t sweep_due(const struct vt_pool *pool)
{
	const struct vt_warm *oldest = pool->warm[VT_WARM_ENDING];
	int64_t due = oldest ? oldest->since + SWEEP : pool->hull.ending ? 0 : INT64_MAX;

	return due > pool->sweep_at ? due : pool->sweep_at;
}

static void sweep(struct vt_pool *pool, int64_t now)
{
	const struct vt_warm *oldest = pool->warm[VT_WARM_ENDING];
	int64_t pause = oldest ? now - oldest->since : SWEEP;

	vt_children_sweep(pool->options.children);
	pause = pause < SWEEP_MAX ? pause : SWEEP_MAX;
	pool->sweep_at = now + (pause > SWEEP ? pause : SWEEP);
}

static int64_t stuck_due(const struct vt_pool *pool)
{
	const struct vt_warm *making = pool->warm[VT_WARM_MAKING];
	const struct vt_warm *entering = pool->warm[VT_WARM_ENTERING];
	const struct vt_pool_zygote *other = other_zygote(pool);
	int64_t due = making ? making->since + STUCK : INT64_MAX;

	if (other->child.pid && other->retired)
		due = lesser(other->retired + STUCK, due);
	return entering ? lesser(entering->since + STUCK, due) : due;
}

/* Who was stopped, or waits for what will not come. */
static void end_stuck(struct vt_pool *pool, int64_t now)
{
	const struct vt_warm *making = pool->warm[VT_WARM_MAKING];
	struct vt_warm *entering = pool->warm[VT_WARM_ENTERING];
	struct vt_pool_zygote *other = other_zygote(pool);
	struct vt_err err;

	if (making && now - making->since >= STUCK) {
		(void)vt_fail(&err, VT_STEP_WATCH, ETIMEDOUT, "have the spawner make a cell");
		vt_pool_hull_kill(&pool->hull, &err);
	} else if (entering && now - entering->since >= STUCK) {
		(void)vt_fail(&err, VT_STEP_WATCH, ETIMEDOUT, "have a cell occupied");
		/* Of one that the zygote has told of, the occupant itself is to blame. */
		if (entering->child.pid || !entering->zygote)
			vt_warm_fail(entering, &err);
		else
			vt_pool_zygote_kill(entering->zygote, &err);
	} else if (other->child.pid && other->retired && now - other->retired >= STUCK) {
		(void)vt_fail(&err, VT_STEP_WATCH, ETIMEDOUT, "have a zygote end");
		vt_pool_zygote_kill(other, &err);
	}
}

/* The oldest comes first. */
static bool is_over_long(const struct vt_pool *pool, int64_t now)
{
	const struct vt_warm *oldest = pool->warm[VT_WARM_OVER];

	return now - pool->last_call >= QUIET || pool->count[VT_WARM_OVER] > OVER_MAX ||
	       now - oldest->since >= OVER_LONG;
}

static void set_timer(struct vt_pool *pool)
{
	/* What cannot be made now is not tried over and over: something else will happen first. */
	bool can_make = pool->hull.ready && !pool->paused_until && !under_way(pool);
	const struct vt_warm *over = pool->warm[VT_WARM_OVER];
	int64_t due = over || (can_make && is_short(pool)) ? pool->last_call + QUIET : INT64_MAX;

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
	if (pool->paused_until)
		due = lesser(pool->paused_until, due);
	else if (is_incomplete(pool))
		due = lesser(vt_clock_now() + SWEEP, due);
	if (pool->gone)
		due = lesser(pool->release_at, due);
	vt_timer_set(&pool->timer, lesser(lesser(sweep_due(pool), stuck_due(pool)), due));
}

static void timer_fires(struct vt_timer *timer)
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
	vt_queue_expire(&pool->waiting, now);
	if (pool->gone && pool->release_at <= now)
		release_gone(pool, now);
	if (sweep_due(pool) <= now)
		sweep(pool, now);
	end_stuck(pool, now);
	renew_zygote(pool, now);
	if (pool->paused_until && pool->paused_until <= now) {
		pool->paused_until = 0;
		pool->failures = 0;
	}
	keep(pool);
	if (pool->decay_at && pool->decay_at <= now) {
		if (pool->target > pool->options.ready_min)
			pool->target--;
		/* Those that were made for calls which others have served meanwhile. */
		while (pool->count[VT_WARM_PARKED] > pool->target)
			vt_warm_kill(pool->warm[VT_WARM_PARKED]);
		pool->decay_at = pool->target > pool->options.ready_min ? now + DECAY : 0;
	}
	serve_waiting(pool);
	refill(pool);
}

/* ---- calls --------------------------------------------------------------------------------- */

/* Hands a call to a cell that is ready, if it may run now. */
static bool run(struct vt_pool *pool, struct vt_pool_call *call)
{
	struct vt_warm *warm;

	while ((warm = pool->warm[VT_WARM_PARKED]) && live(pool) < pool->options.live_max)
		if (vt_warm_run(warm, call)) {
			/* Nobody else sets it while the call runs. */
			wake_by(pool, vt_warm_due(warm));
			return true;
		}
	return false;
}

static void serve_waiting(struct vt_pool *pool)
{
	while (pool->waiting.first && pool->warm[VT_WARM_PARKED] &&
	       live(pool) < pool->options.live_max) {
		struct vt_pool_call *call = pool->waiting.first;

		if (run(pool, call))
			vt_queue_remove(&pool->waiting, call);
	}
}

/* More was wanted than was there: keep more ready for a while. */
static void learn(struct vt_pool *pool)
{
	unsigned more = pool->target * 2;

	pool->target = more < pool->options.ready_max ? more : pool->options.ready_max;
	pool->decay_at = vt_clock_now() + DECAY;
}

void vt_pool_submit(struct vt_pool *pool, struct vt_pool_call *call)
{
	pool->counts.calls++;
	pool->last_call = vt_clock_now();
	call->warm = NULL;
	call->pool = pool;
	call->link = NULL;
	if (!pool->waiting.first && run(pool, call))
		return;
	pool->counts.cold_calls++;
	vt_queue_add(&pool->waiting, call, vt_clock_now() + pool->options.queue_ms * VT_NS_PER_MS);
	learn(pool);
	refill(pool);
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
			wake_by(warm->owner->user, vt_warm_due(warm));
	} else if (call->link) {
		vt_queue_cancel(&call->pool->waiting, call);
	}
}

void vt_pool_count(const struct vt_pool *pool, struct vt_pool_counts *ret_counts)
{
	*ret_counts = pool->counts;
	ret_counts->ready = pool->count[VT_WARM_PARKED];
	ret_counts->refilling = under_way(pool);
	ret_counts->live = live(pool);
	ret_counts->waiting = pool->waiting.count;
}

/* ---- its beginning and end ----------------------------------------------------------------- */

static void init_lists(struct vt_pool *pool)
{
	for (size_t i = 0; i < VT_WARM_STATES; i++)
		pool->last[i] = &pool->warm[i];
	vt_queue_init(&pool->waiting);
}

static int start(struct vt_pool *pool, struct vt_err *err)
{
	vt_spawn_sweep(pool->plan);
	pool->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (pool->null_fd < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "open '/dev/null'");
	pool->image_fd = vt_image_make(pool->plan, err);
	if (pool->image_fd < 0)
		return pool->image_fd;
	pool->hull.image_fd = pool->image_fd;
	if (!pool->plan->bare)
		return vt_pool_hull_start(&pool->hull, err);
	keep(pool);
	refill(pool);
	return 0;
}

static void init_parts(struct vt_pool *pool)
{
	const struct vt_pool_options *options = &pool->options;

	pool->owner = (struct vt_warm_owner){ .user = pool,
					      .moved = warm_moved,
					      .is_dying = hull_is_dying,
					      .failed = warm_failed,
					      .gone = warm_gone };
	pool->timer = (struct vt_timer){ .fire = timer_fires, .owner = pool };
	pool->hull = (struct vt_pool_hull){ .loop = pool->loop,
					    .children = options->children,
					    .plan = pool->plan,
					    .spawner_fd = options->spawner_fd,
					    .image_fd = -1,
					    .is_built = hull_built,
					    .is_ready = hull_ready,
					    .note = give_note,
					    .is_ending = hull_ending,
					    .ended = hull_ended,
					    .user = pool };
	vt_pool_hull_init(&pool->hull);
	pool->zygote = pool->zygotes;
	for (size_t i = 0; i < 2; i++) {
		pool->zygotes[i] = (struct vt_pool_zygote){ .loop = pool->loop,
							    .children = options->children,
							    .program = options->program,
							    .argv = options->argv,
							    .envp = pool->plan->envp,
							    .is_ready = zygote_ready,
							    .note = give_note,
							    .ended = zygote_ended,
							    .user = pool };
		vt_pool_zygote_init(&pool->zygotes[i]);
	}
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
	pool->image_fd = pool->null_fd = -1;
	pool->target = options->ready_min;
	init_lists(pool);
	init_parts(pool);
	vt_loop_add_timer(loop, &pool->timer);
	int r = start(pool, err);

	if (r < 0) {
		vt_pool_free(pool);
		return r;
	}
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

void vt_pool_free(struct vt_pool *pool)
{
	const struct timespec pause = { .tv_nsec = VT_NS_PER_MS };

	if (!pool)
		return;
	pool->closing = true;
	while (pool->waiting.first)
		vt_pool_cancel(pool->waiting.first);
	kill_all(pool);
	end_zygotes(pool);
	/* All die with the spawner. */
	vt_pool_hull_done(&pool->hull, REAP);
	const int64_t until = vt_clock_now() + END;

	/* Bare ones end by themselves, and are all at it by now. */
	while (pool->plan->bare && pool->warm[VT_WARM_ENDING])
		vt_warm_bare_await(pool->warm[VT_WARM_ENDING], until);
	while (pool->warm[VT_WARM_ENDING])
		vt_warm_leave(pool->warm[VT_WARM_ENDING]);
	for (release_gone(pool, vt_clock_now()); pool->gone; release_gone(pool, vt_clock_now()))
		(void)nanosleep(&pause, NULL); /* a shorter one only means one more try */
	vt_loop_remove_timer(pool->loop, &pool->timer);
	vt_fd_close(&pool->image_fd);
	vt_fd_close(&pool->null_fd);
	free(pool);
}
