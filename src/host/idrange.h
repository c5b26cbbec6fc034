/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which host ids cells may use, one each, chosen from what /proc/self/uid_map and gid_map say is
 * mapped in the caller's user namespace. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Preferred: above every range that systemd documents (humans, services, containers, foreign ids),
 * and as many as there can be pids, so that a pid picks an id that no other live cell has.
 */
#define VT_IDRANGE_BASE	 UINT32_C(0x70000000)
#define VT_IDRANGE_COUNT UINT32_C(4194304)

/*
 * Above it, below those that are negative to old programs: so many more for each pid, one for each
 * cell of a pool, whose supervisor has the pid.
 */
#define VT_IDRANGE_POOL_BASE  (VT_IDRANGE_BASE + VT_IDRANGE_COUNT)
#define VT_IDRANGE_POOL_COUNT UINT32_C(63)

struct vt_idrange {
	uint32_t base, count;
};

/*
 * The preferred range where both maps have all of it; else the largest range that is in both, its
 * upper part if it is larger than needed. Never an id below 1000, never 65534 (nobody) or 65535 (-1
 * to old interfaces). count 0: there is none.
 */
struct vt_idrange vt_idrange_pick(const char *uid_map, const char *gid_map);

/* Whether both maps have all of those that are for pools. */
bool vt_idrange_has_pools(const char *uid_map, const char *gid_map);
