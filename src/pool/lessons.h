/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the zygotes of a pool are to know ahead of calls: modules by their names, and which of the
 * pool's two zygotes knows them. A list, and nothing else: learn.c acts by it.
 *
 *	WANTED ──► LEARNED ◄─┐     a zygote that does not know it comes next: WANTED again
 *	   │          │      │
 *	   ├──────────┴──────┴─► LEFT_OUT    it ended a zygote that imported it
 *	   └──► FAILED                       it cannot be imported; WANTED when somebody asks again
 */
#pragma once

#include <stddef.h>

#include "launch/cell.h"

enum vt_lesson_state {
	VT_LESSON_WANTED,
	VT_LESSON_LEARNED,
	VT_LESSON_FAILED,
	VT_LESSON_LEFT_OUT,
};

struct vt_lesson {
	char                 name[VT_MODULE_MAX + 1];
	enum vt_lesson_state state;
	unsigned             known; /* a bit for each zygote */
};

struct vt_lessons {
	struct vt_lesson *items;
	size_t            count, room;
};

enum { VT_LESSONS_MAX = 256, VT_LESSONS_LEFT_OUT_MAX = 16 };

/* A zeroed one is empty. */
void vt_lessons_done(struct vt_lessons *lessons);

/*
 * 1: somebody has to learn it; 0: it is known, or will be, or never; -E2BIG, -EINVAL (no name),
 * -ENOMEM.
 */
int vt_lessons_want(struct vt_lessons *lessons, const char *name);
/* Whether a module of that name is among the lessons, or can become one of them. */
bool vt_lessons_take(const struct vt_lessons *lessons, const char *name);

/*
 * From now on no zygote is told of it, but that it is not to import it. 0, -EALREADY, or as above.
 */
int vt_lessons_leave_out(struct vt_lessons *lessons, const char *name);

/* The first that is wanted; NULL: none is. It stays where it is until another one is added. */
struct vt_lesson *vt_lessons_next(const struct vt_lessons *lessons);

/*
 * The words that a zygote is started with: argv, then "+NAME" of each that it is to know and
 * "-NAME" of each that is left out. It is taken to know them then. Freed by free(), in one; NULL:
 * no memory.
 */
char **vt_lessons_words(struct vt_lessons *lessons, char *const *argv, unsigned zygote);

/* This zygote is the one who forks now. Returns how many were wanted, and it knows them. */
unsigned vt_lessons_turn_to(struct vt_lessons *lessons, unsigned zygote);
