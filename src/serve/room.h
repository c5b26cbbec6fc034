/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server has descriptors for. It refuses clients and pools, and holds calls back, before it
 * runs out of them: a call that runs needs some too, and would be broken. Pure.
 */
#pragma once

#include <stdint.h>

struct vt_room {
	unsigned clients;
	unsigned live;  /* calls that run */
	unsigned sets;  /* of cells: pools that have some of their own */
	unsigned spare; /* cells that wait for a call, or are being made, of all sets */
	unsigned looks; /* at paths, those that hang for good among them */
	unsigned burst; /* descriptors that making one set may take, for a moment */
};

/* The fewest descriptors that a server can do with. */
enum { VT_ROOM_FILES_MIN = 256 };

/* As much of what is wanted as so many descriptors will do for; no less than one of each. */
void vt_room_find(uint64_t files, const struct vt_room *wanted, struct vt_room *ret_room);
