/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/own.h"

#include <limits.h>
#include <string.h>

struct vt_outer vt_own_ids(const struct vt_plan *plan, pid_t owner)
{
	uint32_t id = plan->id_base + (plan->own_ids ? (uint32_t)owner % plan->id_count : 0);

	return plan->own_ids ? (struct vt_outer){ id, id }
			     : (struct vt_outer){ plan->outer_uid, plan->outer_gid };
}

/* The plan's has room for the number at its end. */
void vt_own_scratch(const struct vt_plan *plan, uint64_t cell, char *ret_path)
{
	static const char digits[] = "0123456789abcdef";
	size_t len = strlen(plan->scratch);

	len = len < PATH_MAX ? len : PATH_MAX - 1; /* nobody could make a longer one */
	memcpy(ret_path, plan->scratch, len);
	ret_path[len] = '\0';
	for (size_t i = 1; i <= VT_SCRATCH_DIGITS && i <= len; i++) {
		ret_path[len - i] = digits[cell % 16];
		cell /= 16;
	}
}
