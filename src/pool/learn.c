/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pool's zygote learns while it lives: one module after the other, since its socket holds
 * only so many orders. Cells that were occupied before are replaced, one at a time, when nobody
 * waits for anything else: another is made first, then one goes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "base/clock.h"
#include "kernel/pass.h"
#include "pool/pool_private.h"

enum { LINES_MAX = 64 }; /* of one zygote in the log: what it has loaded may be anybody's */

static unsigned index_of(const struct vt_pool *pool, const struct vt_pool_zygote *zygote)
{
	return (unsigned)(zygote - pool->zygotes);
}

/* Has the zygote learn what is wanted next, if it has nothing to learn now. Of one that does not
 * answer, its end tells. */
static void teach(struct vt_pool *pool)
{
	struct vt_pool_zygote *zygote = pool->zygote;
	struct vt_note note = { .kind = VT_NOTE_LEARN };
	const struct vt_lesson *lesson = vt_lessons_next(&pool->lessons);
	struct vt_err err;

	if (!lesson || !zygote->ready || zygote->lesson)
		return;
	memcpy(note.err.what, lesson->name, sizeof(lesson->name));
	if (vt_pass_send(zygote->control.fd, &note, sizeof(note), NULL, 0, &err) < 0)
		return;
	zygote->lesson = 1 + (size_t)(lesson - pool->lessons.items);
	zygote->asked = vt_clock_now();
	vt_pool_wake_by(pool, zygote->asked + VT_POOL_LESSON);
}

void vt_pool_learn(struct vt_pool *pool, const char *module)
{
	char text[VT_MODULE_MAX + 128];
	int r = pool->options.learns && !pool->closing ? vt_lessons_want(&pool->lessons, module)
						       : 0;

	if (r < 0) {
		/* What does not fit is cut: it is for a person. */
		(void)snprintf(text, sizeof(text), "'%.255s' is not imported ahead of calls: %s",
			       module, r == -E2BIG ? "there are too many already" : strerror(-r));
		vt_pool_log_line(pool, LOG_INFO, text);
	}
	if (r > 0)
		teach(pool);
}

bool vt_pool_can_learn(const struct vt_pool *pool, const char *module)
{
	return vt_lessons_take(&pool->lessons, module);
}

void vt_pool_learn_same(struct vt_pool *pool, const struct vt_pool *other)
{
	for (size_t i = 0; i < other->lessons.count; i++)
		if (other->lessons.items[i].state != VT_LESSON_LEFT_OUT)
			vt_pool_learn(pool, other->lessons.items[i].name);
}

static void take_learned(struct vt_pool *pool, struct vt_pool_zygote *zygote,
			 const struct vt_note *note)
{
	if (!zygote->lesson)
		return; /* nobody has asked */
	struct vt_lesson *lesson = &pool->lessons.items[zygote->lesson - 1];

	zygote->lesson = 0;
	/* It was tried in a child of ours that nobody here knows. */
	vt_children_sweep(pool->options.children);
	if (zygote != pool->zygote || lesson->state != VT_LESSON_WANTED)
		return; /* it forks no more */
	if (note->err.num) {
		lesson->state = VT_LESSON_FAILED;
		vt_pool_log_line(pool, LOG_INFO, note->err.what);
	} else {
		lesson->state = VT_LESSON_LEARNED;
		lesson->known |= 1U << index_of(pool, zygote);
		pool->learned++;
		vt_pool_wake_by(pool, 0);
	}
	teach(pool);
}

void vt_pool_zygote_said(struct vt_pool_zygote *zygote, const struct vt_note *note)
{
	struct vt_pool *pool = zygote->user;

	if (note->kind == VT_NOTE_OBJECT)
		vt_pool_object_is(pool, note->err.what);
	if (!pool->options.preloads)
		return;
	if (note->kind == VT_NOTE_LEARNED) {
		take_learned(pool, zygote, note);
	} else if (note->kind == VT_NOTE_TOLD && zygote->lines < LINES_MAX) {
		zygote->lines++;
		vt_pool_log_line(pool, note->err.num ? LOG_WARNING : LOG_INFO, note->err.what);
	}
}

/* It came with some of them. */
void vt_pool_zygote_knows(struct vt_pool *pool)
{
	if (vt_lessons_turn_to(&pool->lessons, index_of(pool, pool->zygote)))
		pool->learned++;
	teach(pool);
}

char **vt_pool_zygote_words(struct vt_pool *pool, const struct vt_pool_zygote *zygote)
{
	return vt_lessons_words(&pool->lessons, pool->options.argv, index_of(pool, zygote));
}

bool vt_pool_blame_lesson(struct vt_pool *pool, struct vt_pool_zygote *zygote,
			  const struct vt_err *err)
{
	char text[VT_MODULE_MAX + 128];
	size_t lesson = zygote->lesson;

	zygote->lesson = 0;
	if (!pool->options.preloads || zygote->retired)
		return false;
	if (*zygote->loading && vt_lessons_leave_out(&pool->lessons, zygote->loading) == 0) {
		(void)snprintf(text, sizeof(text),
			       "'%s' is not imported ahead of calls from now on",
			       zygote->loading); /* fits */
		vt_pool_log(pool, LOG_WARNING, text, err);
		return true;
	}
	if (lesson && pool->lessons.items[lesson - 1].state == VT_LESSON_WANTED) {
		pool->lessons.items[lesson - 1].state = VT_LESSON_FAILED;
		(void)snprintf(text, sizeof(text), "'%s' is not imported ahead of calls",
			       pool->lessons.items[lesson - 1].name); /* fits */
		vt_pool_log(pool, LOG_WARNING, text, err);
	}
	return false;
}

/* ---- cells of before ----------------------------------------------------------------------- */

bool vt_pool_is_stale(const struct vt_pool *pool, const struct vt_warm *warm)
{
	return warm->learned < pool->learned;
}

/* The oldest that is parked; NULL: none. */
static struct vt_warm *find_stale(const struct vt_pool *pool)
{
	struct vt_warm *warm = pool->learned ? pool->warm[VT_WARM_PARKED] : NULL;

	while (warm && !vt_pool_is_stale(pool, warm))
		warm = warm->next;
	return warm;
}

bool vt_pool_has_stale(const struct vt_pool *pool)
{
	return find_stale(pool);
}

void vt_pool_drop_stale(struct vt_pool *pool)
{
	struct vt_warm *stale;

	while (pool->count[VT_WARM_PARKED] > pool->target && (stale = find_stale(pool)))
		vt_warm_kill(stale);
}
