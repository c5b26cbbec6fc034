/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/room.h"

/* How many descriptors each has, at the most; and the server itself, with who asks for its metrics.
 */
enum { FILES_MAX = 1 << 30 };
enum { OWN = 64, CLIENT = 3, SET = 16, CELL = 16, LIVE = 24, LOOK = 1 };

static unsigned lesser(uint64_t a, unsigned b)
{
	return a < b ? (unsigned)a : b;
}

void vt_room_find(uint64_t files, const struct vt_room *wanted, struct vt_room *ret_room)
{
	/* What is infinite is not to be multiplied. */
	files = files < FILES_MAX ? files : FILES_MAX;
	uint64_t burst = files / 8 > 64 ? files / 8 : 64;
	unsigned looks = lesser(files / 64 > 1 ? files / 64 : 1, wanted->looks);
	uint64_t own = OWN + burst + looks * LOOK;
	uint64_t all = files > own ? files - own : 0;
	struct vt_room room = {
		.clients = lesser(all / 8 / CLIENT, wanted->clients),
		.live = lesser(all * 3 / 8 / LIVE, wanted->live),
		.sets = lesser(all / 4 / SET, wanted->sets),
		.looks = looks,
		.burst = lesser(burst, wanted->burst),
	};

	all -= room.clients * CLIENT + room.live * LIVE + room.sets * SET;
	room.spare = lesser(all / CELL, wanted->spare);
	*ret_room = room;
}
