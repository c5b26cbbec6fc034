/* SPDX-License-Identifier: Apache-2.0 */
#include "host/idrange.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SPANS = 340 }; /* the kernel's bound on the lines of a map */

/* Ids [first, end), in 64 bits so that an end past the last id is a number. */
struct span {
	uint64_t first, end;
};

struct spans {
	struct span items[MAX_SPANS];
	size_t count;
};

static void insert_sorted(struct spans *spans, struct span span)
{
	size_t at = spans->count;

	while (at > 0 && spans->items[at - 1].first > span.first) {
		spans->items[at] = spans->items[at - 1];
		at--;
	}
	spans->items[at] = span;
	spans->count++;
}

/* Neighbours become one: a map may be written in pieces. */
static void merge(struct spans *spans)
{
	size_t kept = 0;

	for (size_t i = 1; i < spans->count; i++) {
		if (spans->items[i].first <= spans->items[kept].end) {
			if (spans->items[i].end > spans->items[kept].end)
				spans->items[kept].end = spans->items[i].end;
		} else {
			spans->items[++kept] = spans->items[i];
		}
	}
	if (spans->count > 0)
		spans->count = kept + 1;
}

/* A line that is cut off or not three numbers ends the map: what follows is not trusted to be one.
 */
static void parse_map(const char *text, struct spans *ret_spans)
{
	const char *line_end;

	ret_spans->count = 0;
	while ((line_end = strchr(text, '\n')) != NULL && ret_spans->count < MAX_SPANS) {
		uint32_t inside, outside, count;

		if (sscanf(text, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &count) !=
		    3)
			break;
		insert_sorted(ret_spans, (struct span){ inside, (uint64_t)inside + count });
		text = line_end + 1;
	}
	merge(ret_spans);
}

static bool covers(const struct spans *spans, struct span span)
{
	for (size_t i = 0; i < spans->count; i++)
		if (spans->items[i].first <= span.first && span.end <= spans->items[i].end)
			return true;
	return false;
}

/* On equal size the higher one: fewer people live there. */
static void keep_larger(struct span *best, uint64_t first, uint64_t end)
{
	if (first < end && end - first >= best->end - best->first)
		*best = (struct span){ first, end };
}

/* The largest part of [first, end) that has no id of somebody else's. */
static void consider(struct span *best, uint64_t first, uint64_t end)
{
	const uint64_t least = 1000, nobody = 65534, old_none = 65535;

	if (first < least)
		first = least;
	keep_larger(best, first, end < nobody ? end : nobody);
	keep_larger(best, first > old_none ? first : old_none + 1, end);
}

struct vt_idrange vt_idrange_pick(const char *uid_map, const char *gid_map)
{
	const struct span preferred = { VT_IDRANGE_BASE,
					(uint64_t)VT_IDRANGE_BASE + VT_IDRANGE_COUNT };
	struct spans uids, gids;
	struct span best = { 0, 0 };

	parse_map(uid_map, &uids);
	parse_map(gid_map, &gids);
	if (covers(&uids, preferred) && covers(&gids, preferred))
		return (struct vt_idrange){ VT_IDRANGE_BASE, VT_IDRANGE_COUNT };

	for (size_t i = 0; i < uids.count; i++) {
		for (size_t j = 0; j < gids.count; j++) {
			const struct span *u = &uids.items[i], *g = &gids.items[j];

			consider(&best, u->first > g->first ? u->first : g->first,
				 u->end < g->end ? u->end : g->end);
		}
	}
	if (best.end - best.first > VT_IDRANGE_COUNT)
		best.first = best.end - VT_IDRANGE_COUNT;
	return (struct vt_idrange){ (uint32_t)best.first, (uint32_t)(best.end - best.first) };
}

bool vt_idrange_has_pools(const char *uid_map, const char *gid_map)
{
	const struct span wanted = { VT_IDRANGE_POOL_BASE,
				     (uint64_t)VT_IDRANGE_POOL_BASE +
					     (uint64_t)VT_IDRANGE_COUNT * VT_IDRANGE_POOL_COUNT };
	struct spans uids, gids;

	parse_map(uid_map, &uids);
	parse_map(gid_map, &gids);
	return covers(&uids, wanted) && covers(&gids, wanted);
}
