/* SPDX-License-Identifier: Apache-2.0 */
#include "base/user.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

/* The kernel's, unless it was set. */
enum { OVERFLOW_UID = 65534 };

/* All that there are: (uid_t)-1 is none. */
#define ALL UINT64_C(4294967295)

/* Lines of a map do not overlap. One that is cut off, or no three numbers, ends it. */
static uint64_t count_mapped(const char *map)
{
	uint64_t sum = 0;
	uint32_t inside, outside, count;

	for (const char *end; (end = strchr(map, '\n')); map = end + 1) {
		if (sscanf(map, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &count) != 3)
			break;
		sum += count;
	}
	return sum;
}

bool vt_user_is_one(uid_t uid, const char *overflow, const char *map)
{
	uint32_t shown = OVERFLOW_UID;

	(void)sscanf(overflow, "%" SCNu32, &shown); /* else it is as it was */
	return uid != shown || count_mapped(map) >= ALL;
}

bool vt_user_is_known(uid_t uid)
{
	char overflow[32] = "", map[16 << 10] = "";

	(void)vt_file_read(AT_FDCWD, "/proc/sys/kernel/overflowuid", overflow,
			   sizeof(overflow)); /* "": what it is usually */
	if (vt_user_is_one(uid, overflow, ""))
		return true;
	(void)vt_file_read(AT_FDCWD, "/proc/self/uid_map", map, sizeof(map)); /* "": unknown */
	return vt_user_is_one(uid, overflow, map);
}
