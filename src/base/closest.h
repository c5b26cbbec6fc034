/* SPDX-License-Identifier: Apache-2.0 */
/* Which of some known words a mistyped one was meant to be: the nearest, if one is near. */
#pragma once

#include <stddef.h>

/* Words are compared up to this length; a longer one is near to nothing. */
enum { VT_CLOSEST_LONGEST = 64 };

struct vt_closest {
	const char *typed;
	const char *best;  /* NULL as long as nothing is near */
	size_t      steps; /* what a better one must be nearer than */
};

void vt_closest_init(struct vt_closest *closest, const char *typed);

/* Takes `answer` for the best if `known` is nearer to what was typed than all before. */
void vt_closest_try(struct vt_closest *closest, const char *known, const char *answer);
