/* SPDX-License-Identifier: Apache-2.0 */
/* A policy that its cells can change says nothing about the next call. Pure. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/host.h"
#include "plan/plan.h"
#include "policy/policy.h"

/*
 * Refuses a policy, or a profile that it names, which lies in what the plan lets the cell write,
 * itself or a link on the way to it, and is not denied. Under best effort it is a warning; but for
 * what is a server's own (request->kept), which is never its clients' to give away: to be written,
 * or its socket to be spoken to. Its audit log (request->closed) is not to be read either: who may
 * read a file may keep it locked.
 */
int vt_sources_check(struct vt_plan *plan, const struct vt_policy *policy,
		     const struct vt_host *host, const struct vt_request *request,
		     struct vt_err *err);

/*
 * Whether cells of a plan that was made before may be able to write to path, or to a link on the
 * way to it: also where the policy denies it, which the plan does not tell any more.
 */
bool vt_sources_reach(const struct vt_plan *plan, const struct vt_host *host, const char *path);

/*
 * Refuses a plan that lets its cells write to one of these, files or folders with all that is in
 * them, or to a link on the way: what vitro executes outside of cells. Neither best effort nor
 * files.deny changes that: the folder around what is denied could be renamed.
 */
int vt_sources_check_run(struct vt_plan *plan, const struct vt_policy *policy,
			 const struct vt_host *host, const struct vt_strings *paths,
			 struct vt_err *err);
