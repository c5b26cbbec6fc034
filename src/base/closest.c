/* SPDX-License-Identifier: Apache-2.0 */
#include "base/closest.h"

#include <string.h>

/* How many letters to put, drop, change, or swap with the next, to make one text the other. Both
 * fit in LONGEST. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][VT_CLOSEST_LONGEST + 1];
	size_t len = strlen(b), i;

	for (size_t j = 0; j <= len; j++)
		rows[0][j] = j;
	for (i = 1; a[i - 1]; i++) {
		const size_t *before = rows[(i + 1) % 3], *above = rows[(i + 2) % 3];
		size_t *row = rows[i % 3];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			size_t changed = above[j - 1] + (a[i - 1] != b[j - 1]);
			size_t moved = (above[j] < row[j - 1] ? above[j] : row[j - 1]) + 1;

			row[j] = changed < moved ? changed : moved;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
	}
	return rows[(i - 1) % 3][len];
}

void vt_closest_init(struct vt_closest *closest, const char *typed)
{
	size_t len = strlen(typed);

	/* Beyond a third of its letters and one, a guess is noise; of one letter nothing is left.
	 */
	*closest = (struct vt_closest){ .typed = typed, .steps = len > 1 ? len / 3 + 2 : 0 };
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
