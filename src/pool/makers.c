/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who makes the cells of a pool: its hull, with the spawner, and the zygote. Whoever of them ends
 * is started anew, and a zygote is renewed while it lives.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/clock.h"
#include "pool/pool_private.h"

enum { FORKS_MAX = 4096 }; /* of one zygote */

/*
 * All that a zygote forks have its addresses and canaries: what one cell learns of them is of no
 * use for long. Nor does one fork for longer than this.
 */
#define AGE_MAX (600 * VT_NS_PER_S)

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

/*
 * A zygote has loaded what may be anybody's: constructors of an object run in it. It tells of the
 * occupant that it was to fork into a cell, once, and of nothing else.
 */
static void give_zygote_note(void *user, const struct vt_note *note, int fds[VT_NOTE_FDS])
{
	const struct vt_pool *pool = user;
	struct vt_warm *warm = find(pool, note->cell);

	if (!warm || !warm->zygote || warm->occupant.fd >= 0 || warm->findings.ended)
		return;
	if (note->kind == VT_NOTE_FAILED || (note->kind == VT_NOTE_ENTERED && !pool->plan->bare))
		vt_warm_note(warm, note, fds);
}

/* The hull, or its zygote, is to be started. */
bool vt_pool_is_incomplete(const struct vt_pool *pool)
{
	if (pool->plan->bare)
		return !pool->zygote->child.pid;
	return !vt_pool_hull_lives(&pool->hull) ||
	       (!pool->hull.ending && pool->hull.fds[0] >= 0 && !pool->zygote->child.pid);
}

/* The object is loaded anew by each zygote, and nobody holds it: somebody may want to know. */
void vt_pool_object_is(struct vt_pool *pool, const char *mark)
{
	bool is_other = *pool->object && strncmp(pool->object, mark, VT_FILE_STAMP) != 0;
	char text[PATH_MAX + 128];

	(void)snprintf(pool->object, sizeof(pool->object), "%s", mark); /* fits */
	if (!pool->options.log || !pool->options.object || !is_other)
		return;
	(void)snprintf(text, sizeof(text),
		       "'%s' was changed or removed after it was loaded: calls from now on may run "
		       "the new one",
		       pool->options.object); /* fits */
	pool->options.log(pool->options.user, LOG_WARNING, text);
}

static int start_zygote(struct vt_pool *pool, struct vt_pool_zygote *zygote, struct vt_err *err)
{
	char **words = vt_pool_zygote_words(pool, zygote);

	if (!words)
		return vt_fail(err, VT_STEP_CLONE, ENOMEM, "start a zygote");
	zygote->argv = words;
	int r = vt_pool_zygote_start(zygote, pool->image_fd, pool->hull.fds, err);

	zygote->argv = NULL;
	free(words);
	return r;
}

/* Neither is started again and again if it dies at once. */
void vt_pool_keep(struct vt_pool *pool)
{
	struct vt_err err;
	int r;

	if (pool->closing || !vt_pool_is_incomplete(pool) || vt_clock_now() < pool->paused_until)
		return;
	if (!pool->plan->bare && !vt_pool_hull_lives(&pool->hull))
		r = vt_pool_hull_start(&pool->hull, &err);
	else
		r = start_zygote(pool, pool->zygote, &err);
	if (r < 0) {
		vt_pool_log(pool, LOG_WARNING, "a pool could not be started", &err);
		vt_pool_count_failure(pool, &err);
		vt_pool_set_timer(pool); /* to try again */
	}
}

static void hull_built(void *user)
{
	vt_pool_keep(user);
}

static void hull_ready(void *user)
{
	vt_pool_refill(user);
}

static void hull_refreshed(void *user)
{
	vt_pool_serve_refreshed(user);
}

/* What a call's processes did after its result: nobody waits for it any more. */
static void hull_judged(void *user, int fd)
{
	struct vt_pool *pool = user;
	json_t *guarded = vt_warm_read_judged(pool->plan, fd), *item;
	struct vt_str text;
	size_t i;

	vt_str_init(&text);
	json_array_foreach(json_object_get(guarded, "set_apart"), i, item)
	{
		const char *path = json_string_value(json_object_get(item, "path"));
		const char *to = json_string_value(json_object_get(item, "to"));

		vt_str_clear(&text);
		vt_str_addf(
			&text,
			"'%s' appeared after a call gave its result, where programs of the host "
			"run or trust it (files.protect); %s%s",
			path ? path : "", to ? "it is now " : "it could not be renamed",
			to ? to : "");
		if (vt_str_ok(&text))
			vt_pool_log_line(pool, LOG_WARNING, text.text);
	}
	if (pool->hull.unguarded)
		vt_pool_wake_by(pool, 0);
	json_array_foreach(json_object_get(guarded, "unseen"), i, item)
	{
		const char *path = json_string_value(json_object_get(item, "path"));
		const char *error = json_string_value(json_object_get(item, "error"));

		vt_str_clear(&text);
		vt_str_addf(&text,
			    "'%s' could not be looked at after a call gave its result, so that "
			    "something may be there that programs of the host run or trust "
			    "(files.protect): %s",
			    path ? path : "", error ? error : "");
		if (vt_str_ok(&text))
			vt_pool_log_line(pool, LOG_WARNING, text.text);
	}
	vt_str_done(&text);
	json_decref(guarded);
}

/* Calls that run in it go on; those that wait have the next one. */
static void hull_unguarded(void *user)
{
	struct vt_pool *pool = user;

	vt_pool_wake_by(pool, 0);
}

void vt_pool_leave_unguarded(struct vt_pool *pool)
{
	struct vt_err why;

	if (!pool->hull.unguarded || pool->hull.ending || pool->count[VT_WARM_RUNNING])
		return;
	/*
	 * What is left of a cell can have made what was taken for the host's. It is judged by what
	 * was noted here; in the next hull it would have been there before. A cell that does not
	 * die in time dies with the hull.
	 */
	while (pool->warm[VT_WARM_OVER])
		vt_warm_kill(pool->warm[VT_WARM_OVER]);
	for (const struct vt_warm *warm = pool->warm[VT_WARM_ENDING]; warm; warm = warm->next)
		if (warm->call || (warm->unjudged && warm->given_up != INT64_MAX))
			return;
	if (pool->hull.looks)
		return;
	(void)vt_fail(&why, VT_STEP_WATCH, ESTALE,
		      "keep a protected name: the host has another file there than before");
	vt_pool_hull_kill(&pool->hull, &why);
}

void vt_pool_end_zygotes(struct vt_pool *pool)
{
	vt_pool_zygote_end(&pool->zygotes[0]);
	vt_pool_zygote_end(&pool->zygotes[1]);
}

/* Whatever is in it dies with it; and a zygote that has joined it is of no use to the next. */
static void hull_ending(void *user, const struct vt_err *why)
{
	struct vt_pool *pool = user;

	if (pool->closing)
		return;
	vt_pool_log(pool, pool->hull.unguarded ? LOG_INFO : LOG_WARNING, "the hull is made anew",
		    why);
	vt_pool_end_zygotes(pool);
	while (pool->warm[VT_WARM_RUNNING])
		vt_warm_lose(pool->warm[VT_WARM_RUNNING], why);
	for (size_t state = 0; state < VT_WARM_ENDING; state++)
		while (pool->warm[state])
			vt_warm_kill(pool->warm[state]);
	for (struct vt_warm *warm = pool->warm[VT_WARM_ENDING], *next; warm; warm = next) {
		next = warm->next;
		if (warm->judging)
			vt_warm_judged(warm, -1);
	}
	if (!pool->hull.unguarded)
		vt_pool_count_failure(pool, why);
	vt_pool_set_timer(pool);
}

static void hull_ended(void *user)
{
	struct vt_pool *pool = user;

	vt_pool_keep(pool);
	vt_pool_set_timer(pool);
}

/* ---- the zygote ---------------------------------------------------------------------------- */

struct vt_pool_zygote *vt_pool_other_zygote(const struct vt_pool *pool)
{
	return (struct vt_pool_zygote *)&pool->zygotes[pool->zygote == pool->zygotes];
}

/* Starts the next one, while this one goes on. */
void vt_pool_renew_zygote(struct vt_pool *pool, int64_t now)
{
	const unsigned most = pool->options.forks_max ? pool->options.forks_max : FORKS_MAX;
	struct vt_err err;

	if (!pool->zygote->ready || vt_pool_other_zygote(pool)->child.pid ||
	    (pool->forks < most && now - pool->born < AGE_MAX))
		return;
	pool->forks = 0; /* one that does not come is tried again when as many more were forked */
	pool->born = now;
	if (start_zygote(pool, vt_pool_other_zygote(pool), &err) < 0)
		vt_pool_log(pool, LOG_WARNING, "the program that holds the tools goes on", &err);
}

static void zygote_ready(void *user)
{
	struct vt_pool *pool = user;

	if (vt_pool_other_zygote(pool)->ready) {
		vt_pool_zygote_retire(pool->zygote);
		vt_pool_wake_by(pool, pool->zygote->retired + VT_POOL_STUCK);
		pool->zygote = vt_pool_other_zygote(pool);
	}
	pool->forks = 0;
	pool->born = vt_clock_now();
	vt_pool_zygote_knows(pool);
	while (pool->warm[VT_WARM_BUILT] && pool->zygote->ready)
		vt_pool_order_occupant(pool, pool->warm[VT_WARM_BUILT]);
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
static void zygote_ended(struct vt_pool_zygote *zygote, const struct vt_err *err)
{
	struct vt_pool *pool = zygote->user;
	struct vt_pool_zygote *other = vt_pool_other_zygote(pool);

	bool blamed = vt_pool_blame_lesson(pool, zygote, err);

	give_up_entering(pool, zygote);
	if (zygote == other) {
		if (!other->retired && !blamed)
			vt_pool_log(pool, LOG_WARNING, "the program that holds the tools goes on",
				    err);
		vt_pool_refill(pool);
		return;
	}
	if (!blamed)
		vt_pool_log(pool, LOG_WARNING,
			    "the program that holds the tools ended, and is started anew", err);
	if (other->child.pid && !other->retired)
		pool->zygote = other; /* it is on its way already */
	if (!blamed)
		vt_pool_count_failure(pool, err);
	vt_pool_keep(pool);
	vt_pool_refill(pool);
}

/* ---- both ---------------------------------------------------------------------------------- */

void vt_pool_init_makers(struct vt_pool *pool)
{
	const struct vt_pool_options *options = &pool->options;

	pool->hull = (struct vt_pool_hull){ .loop = pool->loop,
					    .children = options->children,
					    .plan = pool->plan,
					    .spawner_fd = options->spawner_fd,
					    .image_fd = -1,
					    .is_built = hull_built,
					    .is_ready = hull_ready,
					    .note = give_note,
					    .is_refreshed = hull_refreshed,
					    .is_judged = hull_judged,
					    .is_unguarded = hull_unguarded,
					    .is_ending = hull_ending,
					    .ended = hull_ended,
					    .user = pool };
	vt_pool_hull_init(&pool->hull);
	pool->zygote = pool->zygotes;
	for (size_t i = 0; i < 2; i++) {
		pool->zygotes[i] = (struct vt_pool_zygote){ .loop = pool->loop,
							    .children = options->children,
							    .plan = pool->plan,
							    .program = options->program,
							    .program_fd = options->program_fd,
							    .has_main = options->has_main,
							    .advice = options->advice,
							    .preload = options->preload,
							    .object = options->object,
							    .envp = pool->plan->envp,
							    .is_ready = zygote_ready,
							    .note = give_zygote_note,
							    .said = vt_pool_zygote_said,
							    .ended = zygote_ended,
							    .user = pool };
		vt_pool_zygote_init(&pool->zygotes[i]);
	}
}
