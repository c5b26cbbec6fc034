/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "policy/fields.h"

#define LONGEST 64

/* How many letters to put, drop or change, to make one text the other. Both fit in LONGEST. */
static size_t distance(const char *a, const char *b)
{
	size_t len = strlen(b);
	size_t row[LONGEST + 1];

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

/* Keeps the candidate if it is nearer than the best so far. */
static void consider(const char *key, const char *part, const char *candidate, size_t *nearest,
		     const char **best)
{
	size_t steps = distance(key, part);

	if (steps < *nearest) {
		*nearest = steps;
		*best = candidate;
	}
}

const char *vt_field_closest(const char *key)
{
	static const char *const others[] = { "limits", "files", "env", "extends" };
	size_t len = strlen(key);
	size_t nearest = len / 3 + 2; /* beyond this a guess is noise */
	const char *best = NULL;

	if (len > LONGEST)
		return NULL;
	for (int field = 0; field < VT_FIELD_COUNT; field++) {
		const char *known = vt_field_info(field)->key;
		const char *dot = strchr(known, '.');

		consider(key, known, known, &nearest, &best);
		/* A key without its group, as in {"wall_ms": 500}. */
		if (dot && !strchr(key, '.'))
			consider(key, dot + 1, known, &nearest, &best);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		consider(key, others[i], others[i], &nearest, &best);
	return best;
}
