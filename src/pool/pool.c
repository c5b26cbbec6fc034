/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/idrange.h"
#include "kernel/pass.h"
#include "launch/image.h"
#include "launch/spawn.h"
#include "pool/warm.h"
#include "pool/zygote.h"

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
/* What a zygote has to obey yet when its pool ends. */
#define ZYGOTE_PATIENCE (1 * VT_NS_PER_S)
/* How long the last process of a hull may take. */
#define HULL_PATIENCE_MS 5000
/* How often it is asked whether fewer ready cells would do. */
#define DECAY (5 * VT_NS_PER_S)

struct vt_pool {
	struct vt_pool_options options;
	const struct vt_plan *plan;
	struct vt_loop *loop;
	struct vt_warm_owner owner;
	struct vt_timer timer;

	struct vt_cell hull;
	struct vt_watch hull_notes, hull_end;
	int hull_fds[VT_HULL_FDS];
	bool hull_ready;
	struct vt_pool_zygote zygotes[2],
		*zygote; /* who forks now; the other comes, or goes, or is none */
	unsigned forks;  /* of his */
	int64_t born;    /* since when he is ready */
	int image_fd, null_fd;

	struct vt_warm *warm[VT_WARM_STATES], **last[VT_WARM_STATES];
	unsigned count[VT_WARM_STATES];
	struct vt_pool_call *waiting, **last_waiting;
	unsigned waiting_count;
	uint64_t numbers;                      /* of cells */
	unsigned slots[VT_IDRANGE_POOL_COUNT]; /* how many cells have each of its ids */

	unsigned target;   /* how many are to be ready */
	unsigned failures; /* in a row */
	struct vt_err failure;
	int64_t paused_until, last_call, decay_at;
	struct vt_pool_counts counts;
	bool closing;
};

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

static void wake_by(struct vt_pool *pool, int64_t due)
{
	if (due < pool->timer.due)
		pool->timer.due = due;
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

/* ---- calls that are over without a cell ---------------------------------------------------- */

static void unqueue(struct vt_pool *pool, struct vt_pool_call *call)
{
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	else
		pool->last_waiting = call->link;
	call->link = NULL;
	pool->waiting_count--;
}

static void end_unrun(struct vt_pool_call *call, enum vt_status status, const char *type,
		      const char *message)
{
	struct vt_outcome outcome = { 0 };
	struct vt_verdict *verdict = &outcome.result.verdict;

	vt_result_init(&outcome.result);
	verdict->status = status;
	verdict->exit_code = -1;
	verdict->signal = 0;
	(void)snprintf(verdict->type, sizeof(verdict->type), "%s", type);
	(void)snprintf(verdict->message, sizeof(verdict->message), "%s", message); /* or cut */
	outcome.result.peak_memory_kb = outcome.result.processes = -1;
	call->events->done(call, &outcome);
}

/* Nothing can be made: whoever waits is told why, and need not wait until his time is over. */
static void refuse_waiting(struct vt_pool *pool)
{
	const struct vt_err *why = &pool->failure;
	struct vt_findings findings = { .failed = true, .failure = *why };
	struct vt_verdict verdict;

	vt_verdict_reach(&findings, &verdict);
	while (pool->waiting) {
		struct vt_pool_call *call = pool->waiting;

		unqueue(pool, call);
		end_unrun(call, verdict.status, verdict.type, verdict.message);
	}
}

static void count_failure(struct vt_pool *pool, const struct vt_err *err)
{
	pool->failure = *err;
	if (++pool->failures < FAILURES_MAX)
		return;
	pool->paused_until = vt_clock_now() + PAUSE;
	refuse_waiting(pool);
}

/* ---- cells --------------------------------------------------------------------------------- */

static void enter(struct vt_pool *pool, struct vt_warm *warm)
{
	pool->forks++;
	vt_warm_enter(warm, pool->zygote->control.fd, pool->null_fd);
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
		if (pool->waiting)
			refill(pool);
	} else if (warm->state == VT_WARM_OVER) {
		wake_by(pool, pool->last_call + QUIET);
	}
	if (warm->state == VT_WARM_BUILT && pool->zygote->ready)
		enter(pool, warm);
}

static void warm_failed(struct vt_warm *warm, const struct vt_err *err)
{
	struct vt_pool *pool = warm->owner->user;

	if (pool->closing)
		return;
	log_line(pool, LOG_WARNING, "a cell could not be made", err);
	count_failure(pool, err);
}

static void warm_gone(struct vt_warm *warm)
{
	struct vt_pool *pool = warm->owner->user;

	unlink_warm(pool, warm, warm->state);
	pool->slots[warm->slot]--;
	vt_warm_free(warm);
	if (!pool->closing)
		refill(pool);
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

	return ready < pool->target + pool->waiting_count &&
	       ready + live(pool) < pool->options.live_max + pool->options.ready_max;
}

/* As many as are to be ready, and one for each that waits; never more than may live. */
static bool wants_more(const struct vt_pool *pool)
{
	int64_t now = vt_clock_now();
	bool soon = pool->waiting || pool->count[VT_WARM_PARKED] <= pool->target / 4 ||
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

	while (pool->hull_ready && wants_more(pool)) {
		if (vt_warm_new(&pool->owner, pool->loop, pool->plan, ++pool->numbers,
				find_slot(pool), pool->hull.status_fd, &warm, &err) < 0) {
			log_line(pool, LOG_WARNING, "a cell could not be ordered", &err);
			count_failure(pool, &err);
			break;
		}
		pool->slots[warm->slot]++;
		pool->counts.cells_made++;
		link_warm(pool, warm);
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

static void give_note(struct vt_pool *pool, const struct vt_note *note, int fds[VT_NOTE_FDS])
{
	struct vt_warm *warm = find(pool, note->cell);

	if (warm)
		vt_warm_note(warm, note, fds);
}

static void hull_ready(struct vt_pool *pool)
{
	pool->hull_ready = true;
	refill(pool);
}

/* One that dies at once is not started again and again. */
static void keep_zygote(struct vt_pool *pool)
{
	struct vt_err err;

	if (pool->closing || pool->zygote->pid || pool->hull_fds[0] < 0 ||
	    vt_clock_now() < pool->paused_until)
		return;
	if (vt_pool_zygote_start(pool->zygote, pool->image_fd, pool->hull_fds, &err) < 0)
		count_failure(pool, &err);
}

/* Its namespaces are there: the spawner gets the plan, and a zygote can join. */
static void hull_built(struct vt_pool *pool, int fds[VT_NOTE_FDS])
{
	const struct vt_note plan = { .kind = VT_NOTE_PLAN };
	struct vt_err err;

	for (size_t i = 0; i < VT_HULL_FDS; i++)
		pool->hull_fds[i] = vt_fd_take(&fds[i]);
	if (vt_pass_send(pool->hull.status_fd, &plan, sizeof(plan), &pool->image_fd, 1, &err) < 0)
		count_failure(pool, &err);
	keep_zygote(pool);
}

static void end_hull(struct vt_pool *pool);

static void hull_notes(struct vt_watch *source, uint32_t events)
{
	struct vt_pool *pool = source->owner;
	struct vt_note note;
	struct vt_err err;
	int fds[VT_NOTE_FDS];
	int r;

	(void)events; /* a hang-up shows as the end of the notes */
	while ((r = vt_cell_note(&pool->hull, &note, fds, &err)) > 0) {
		if (note.kind == VT_NOTE_HULL)
			hull_built(pool, fds);
		else if (note.kind == VT_NOTE_READY)
			hull_ready(pool);
		else if (note.cell)
			give_note(pool, &note, fds);
		else if (note.kind == VT_NOTE_FAILED)
			count_failure(pool, &note.err);
		for (size_t i = 0; i < VT_NOTE_FDS; i++)
			vt_fd_close(&fds[i]);
	}
	if (r < 0)
		vt_loop_remove(pool->loop, source); /* its end is told by its pidfd */
}

static int start_hull(struct vt_pool *pool, struct vt_err *err)
{
	int r = vt_spawn_hull(pool->plan, pool->options.spawner_fd, &pool->hull, err);

	if (r < 0)
		return r;
	pool->hull_notes.fd = pool->hull.status_fd;
	pool->hull_end.fd = pool->hull.init_fd;
	r = vt_loop_add(pool->loop, &pool->hull_notes, EPOLLIN, err);
	return r < 0 ? r : vt_loop_add(pool->loop, &pool->hull_end, EPOLLIN, err);
}

/* Those that have come so far, or further, and waits for them. */
static void end_all(struct vt_pool *pool, enum vt_warm_state from)
{
	for (size_t state = from; state < VT_WARM_ENDING; state++)
		while (pool->warm[state]) {
			struct vt_warm *warm = pool->warm[state];

			if (state == VT_WARM_RUNNING)
				vt_warm_stop(warm, VT_STOP_CANCEL);
			else
				vt_warm_kill(warm);
		}
	while (pool->warm[VT_WARM_ENDING])
		vt_warm_await(pool->warm[VT_WARM_ENDING]);
}

/* The kernel has killed whatever was in it. */
static void end_hull(struct vt_pool *pool)
{
	struct vt_err err;

	vt_loop_remove(pool->loop, &pool->hull_notes);
	vt_loop_remove(pool->loop, &pool->hull_end);
	if (pool->hull.init > 0) {
		struct pollfd end = { .fd = pool->hull.init_fd, .events = POLLIN };

		(void)vt_cell_kill(&pool->hull, &err); /* it may have ended */
		/* One that does not end in time has somebody in it whom only the host's init reaps.
		 */
		while (poll(&end, 1, HULL_PATIENCE_MS) < 0 && errno == EINTR)
			;
		if (end.revents)
			(void)waitpid(pool->hull.init, NULL, __WALL); /* it has ended */
	}
	/* What is left of it holds nothing that runs. */
	(void)vt_cell_done(&pool->hull, &err);
	vt_cell_init(&pool->hull);
	for (size_t i = 0; i < VT_HULL_FDS; i++)
		vt_fd_close(&pool->hull_fds[i]);
	pool->hull_ready = false;
}

/* Whom it has forked is told before it ends: nobody else knows whom to reap. */
static void end_zygotes(struct vt_pool *pool)
{
	for (size_t i = 0; i < 2; i++) {
		vt_pool_zygote_settle(&pool->zygotes[i], ZYGOTE_PATIENCE);
		vt_pool_zygote_end(&pool->zygotes[i]);
	}
}

/* Somebody killed the spawner: its cells are gone, and another hull is made. */
static void hull_ended(struct vt_watch *source, uint32_t events)
{
	struct vt_pool *pool = source->owner;
	struct vt_err err;

	(void)events;
	hull_notes(&pool->hull_notes, 0); /* its last words */
	end_zygotes(pool);
	end_hull(pool);
	(void)vt_fail(&err, VT_STEP_CLONE, ECHILD, "keep the spawner");
	log_line(pool, LOG_WARNING, "the hull is made anew", &err);
	count_failure(pool, &err);
	/* Cells that were never parked wait for a word that will not come. */
	for (size_t state = 0; state <= VT_WARM_ENTERING; state++)
		while (pool->warm[state])
			vt_warm_kill(pool->warm[state]);
	if (start_hull(pool, &err) < 0)
		count_failure(pool, &err);
}

/* ---- the zygote ---------------------------------------------------------------------------- */

static struct vt_pool_zygote *other_zygote(struct vt_pool *pool)
{
	return &pool->zygotes[pool->zygote == pool->zygotes];
}

/* Starts the next one, while this one goes on. */
static void renew_zygote(struct vt_pool *pool, int64_t now)
{
	const unsigned most = pool->options.forks_max ? pool->options.forks_max : FORKS_MAX;
	struct vt_err err;

	if (!pool->zygote->ready || other_zygote(pool)->pid ||
	    (pool->forks < most && now - pool->born < AGE_MAX))
		return;
	pool->forks = 0; /* one that does not come is tried again when as many more were forked */
	pool->born = now;
	if (vt_pool_zygote_start(other_zygote(pool), pool->image_fd, pool->hull_fds, &err) < 0)
		log_line(pool, LOG_WARNING, "the program that holds the tools goes on", &err);
}

static void zygote_ready(void *user)
{
	struct vt_pool *pool = user;

	if (pool->closing)
		return;
	if (other_zygote(pool)->ready) {
		vt_pool_zygote_retire(pool->zygote);
		pool->zygote = other_zygote(pool);
	}
	pool->forks = 0;
	pool->born = vt_clock_now();
	while (pool->warm[VT_WARM_BUILT] && pool->zygote->ready)
		enter(pool, pool->warm[VT_WARM_BUILT]);
}

static void zygote_note(void *user, const struct vt_note *note, int fds[VT_NOTE_FDS])
{
	give_note(user, note, fds);
}

/* One that was retired has obeyed; what it has not, nobody does. One that came never forked. */
static void other_zygote_ended(struct vt_pool *pool)
{
	for (struct vt_warm *warm = pool->warm[VT_WARM_ENTERING], *next; warm; warm = next) {
		next = warm->next;
		if (!warm->pid)
			vt_warm_kill(warm);
	}
	refill(pool);
}

/* Those that it was to fork into cells are not coming. Others that live go on. */
static void zygote_ended(void *user, const struct vt_err *err)
{
	struct vt_pool *pool = user;

	if (pool->zygote->pid) {
		other_zygote_ended(pool);
		return;
	}
	while (pool->warm[VT_WARM_ENTERING])
		vt_warm_kill(pool->warm[VT_WARM_ENTERING]);
	log_line(pool, LOG_WARNING, "the program that holds the tools ended, and is started anew",
		 err);
	count_failure(pool, err);
	keep_zygote(pool);
	refill(pool);
}

/* ---- time ---------------------------------------------------------------------------------- */

/* The oldest comes first. */
static bool is_over_long(const struct vt_pool *pool, int64_t now)
{
	const struct vt_warm *oldest = pool->warm[VT_WARM_OVER];

	return now - pool->last_call >= QUIET || pool->count[VT_WARM_OVER] > OVER_MAX ||
	       now - oldest->over >= OVER_LONG;
}

static void set_timer(struct vt_pool *pool)
{
	int64_t due = pool->count[VT_WARM_OVER] || (is_short(pool) && !under_way(pool))
			      ? pool->last_call + QUIET
			      : INT64_MAX;

	for (size_t state = VT_WARM_RUNNING; state < VT_WARM_STATES; state++)
		for (const struct vt_warm *warm = pool->warm[state]; warm; warm = warm->next) {
			int64_t next = vt_warm_due(warm);

			due = next < due ? next : due;
		}
	for (const struct vt_pool_call *call = pool->waiting; call; call = call->next)
		due = call->due < due ? call->due : due;
	if (pool->paused_until && pool->paused_until < due)
		due = pool->paused_until;
	if (pool->decay_at && pool->decay_at < due)
		due = pool->decay_at;
	pool->timer.due = due;
}

static void end_overdue_waiting(struct vt_pool *pool, int64_t now)
{
	for (struct vt_pool_call *call = pool->waiting, *next; call; call = next) {
		next = call->next;
		if (call->due > now)
			continue;
		unqueue(pool, call);
		end_unrun(call, VT_STATUS_TIMEOUT, "Timeout",
			  "no cell was free within limits.queue_ms");
	}
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
	end_overdue_waiting(pool, now);
	renew_zygote(pool, now);
	if (pool->paused_until && pool->paused_until <= now) {
		pool->paused_until = 0;
		pool->failures = 0;
		keep_zygote(pool);
	}
	if (pool->decay_at && pool->decay_at <= now) {
		if (pool->target > pool->options.ready_min)
			pool->target--;
		pool->decay_at = pool->target > pool->options.ready_min ? now + DECAY : 0;
	}
	refill(pool);
}

/* ---- calls --------------------------------------------------------------------------------- */

static void serve_waiting(struct vt_pool *pool)
{
	while (pool->waiting && pool->warm[VT_WARM_PARKED] && live(pool) < pool->options.live_max) {
		struct vt_pool_call *call = pool->waiting;

		struct vt_warm *warm = pool->warm[VT_WARM_PARKED];

		unqueue(pool, call);
		vt_warm_run(warm, call);
		/* Nobody else sets it while the call runs. */
		if (warm->call == call)
			wake_by(pool, vt_warm_due(warm));
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
	if (!pool->waiting && pool->warm[VT_WARM_PARKED] && live(pool) < pool->options.live_max) {
		struct vt_warm *warm = pool->warm[VT_WARM_PARKED];

		vt_warm_run(warm, call);
		/* Nobody else sets it while the call runs. */
		if (warm->call == call)
			wake_by(pool, vt_warm_due(warm));
		return;
	}
	pool->counts.cold_calls++;
	call->due = vt_clock_now() + pool->options.queue_ms * VT_NS_PER_MS;
	call->next = NULL;
	call->link = pool->last_waiting;
	*pool->last_waiting = call;
	pool->last_waiting = &call->next;
	pool->waiting_count++;
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
	if (call->warm) {
		vt_warm_stop(call->warm, VT_STOP_CANCEL);
	} else if (call->link) {
		unqueue(call->pool, call);
		end_unrun(call, VT_STATUS_CANCELLED, "Cancelled", "the call was cancelled");
	}
}

void vt_pool_count(const struct vt_pool *pool, struct vt_pool_counts *ret_counts)
{
	*ret_counts = pool->counts;
	ret_counts->ready = pool->count[VT_WARM_PARKED];
	ret_counts->refilling = under_way(pool);
	ret_counts->live = live(pool);
	ret_counts->waiting = pool->waiting_count;
}

/* ---- its beginning and end ----------------------------------------------------------------- */

static void init_lists(struct vt_pool *pool)
{
	for (size_t i = 0; i < VT_WARM_STATES; i++)
		pool->last[i] = &pool->warm[i];
	pool->last_waiting = &pool->waiting;
}

static int start(struct vt_pool *pool, struct vt_err *err)
{
	pool->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (pool->null_fd < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "open '/dev/null'");
	pool->image_fd = vt_image_make(pool->plan, err);
	return pool->image_fd < 0 ? pool->image_fd : start_hull(pool, err);
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
	pool->owner = (struct vt_warm_owner){
		.user = pool, .moved = warm_moved, .failed = warm_failed, .gone = warm_gone
	};
	pool->timer = (struct vt_timer){ .fire = timer_fires, .owner = pool };
	pool->hull_notes = (struct vt_watch){ .fd = -1, .ready = hull_notes, .owner = pool };
	pool->hull_end = (struct vt_watch){ .fd = -1, .ready = hull_ended, .owner = pool };
	pool->image_fd = pool->null_fd = -1;
	pool->target = options->ready_min;
	memset(pool->hull_fds, -1, sizeof(pool->hull_fds)); /* all bits set is -1 */
	vt_cell_init(&pool->hull);
	init_lists(pool);
	vt_loop_add_timer(loop, &pool->timer);
	pool->zygote = pool->zygotes;
	for (size_t i = 0; i < 2; i++) {
		pool->zygotes[i] = (struct vt_pool_zygote){ .loop = loop,
							    .program = options->program,
							    .argv = options->argv,
							    .envp = pool->plan->envp,
							    .is_ready = zygote_ready,
							    .note = zygote_note,
							    .ended = zygote_ended,
							    .user = pool };
		vt_pool_zygote_init(&pool->zygotes[i]);
	}
	int r = start(pool, err);

	if (r < 0) {
		vt_pool_free(pool);
		return r;
	}
	*ret_pool = pool;
	return 0;
}

void vt_pool_free(struct vt_pool *pool)
{
	struct vt_err err;

	if (!pool)
		return;
	pool->closing = true;
	while (pool->waiting)
		vt_pool_cancel(pool->waiting);
	end_zygotes(pool);
	/* All die with the spawner, which goes only when the last occupant was reaped. */
	if (pool->hull.init > 0)
		(void)vt_cell_kill(&pool->hull, &err); /* it may have ended */
	end_all(pool, VT_WARM_BUILT);
	end_hull(pool);
	/* Whether these have processes nobody knew as long as there was a spawner. */
	end_all(pool, VT_WARM_MAKING);
	vt_loop_remove_timer(pool->loop, &pool->timer);
	vt_fd_close(&pool->image_fd);
	vt_fd_close(&pool->null_fd);
	free(pool);
}
