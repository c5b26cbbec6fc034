/* SPDX-License-Identifier: Apache-2.0 */
#include "base/closest.h"

#include <string.h>

/* How many letters to put, drop or change, to make one text the other. Both fit in LONGEST. */
static size_t distance(const char *a, const char *b)
{
	size_t len = strlen(b);
	size_t row[VT_CLOSEST_LONGEST + 1];

	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			size_t changed = diagonal + (a[i - 1] != b[j - 1]);
			size_t moved = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = changed < moved ? changed : moved;
		}
	}
	return row[len];
}

void vt_closest_init(struct vt_closest *closest, const char *typed)
{
	/* Beyond a third of its letters and one, a guess is noise. */
	*closest = (struct vt_closest){ .typed = typed, .steps = strlen(typed) / 3 + 2 };
}

void vt_closest_try(struct vt_closest *closest, const char *known, const char *answer)
{
	if (strlen(closest->typed) > VT_CLOSEST_LONGEST || strlen(known) > VT_CLOSEST_LONGEST)
		return;
	size_t steps = distance(closest->typed, known);

	if (steps < closest->steps) {
		closest->steps = steps;
		closest->best = answer;
	}
}
