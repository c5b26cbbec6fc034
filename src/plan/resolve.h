/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the names of a policy lead to: rules are about that, not about the name, since whoever may
 * write to a granted folder can put a link there. Grants and denies often come many from one
 * folder, so that the last one is kept. Pure: the host is asked.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "host/host.h"
#include "policy/policy.h"

struct vt_resolver {
	const struct vt_host *host;
	struct vt_arena *arena;
	const char *folder, *real_folder; /* of the last name, as written and where it leads */
};

/*
 * Where an absolute path leads, links on the way and at its end followed. origin is for messages.
 */
int vt_resolve(const struct vt_resolver *resolver, const char *path, const char *origin,
	       const char **ret_real, struct vt_err *err);

/*
 * The same of its folder alone: what grant->from names, be it a link or not there. Returns 0; 1
 * where the folder is another than that of the name before, and resolver->folder is new; or a
 * failure.
 */
int vt_resolve_folder(struct vt_resolver *resolver, const struct vt_grant *grant,
		      const char **ret_name, struct vt_err *err);
