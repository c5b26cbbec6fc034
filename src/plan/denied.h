/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which host paths a policy denies: where the paths that it names lead, what the names themselves
 * are, and where else the host mounts the same. Pure; used by deny.c alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "plan/root.h"
#include "policy/policy.h"

struct vt_denied {
	const char *path;   /* absolute, free of links */
	const char *named;  /* as the policy names it */
	const char *origin; /* for messages; one and the same for all that one entry of the
			       policy names */
	const char *closed; /* what is closed in its stead, NULL: itself. For deny.c to fill */
	bool        used; /* it takes away something that the cell would see. For deny.c to fill */
};

/*
 * Lists them: what lies in a folder right after it in order, and none inside another. Refuses a
 * path that leads through a link which the cell could change, by the mounts of the finished tree;
 * and what was meant as a pattern.
 */
int vt_denied_list(const struct vt_root *root, const struct vt_grants *grants,
		   struct vt_denied **ret_denied, size_t *ret_count, struct vt_err *err);
