/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call of a policy gets on this host, by trying: for whoever speaks about calls, or makes
 * many.
 */
#pragma once

#include "host/host.h"
#include "plan/plan.h"
#include "policy/policy.h"

/*
 * Builds and seals a cell for the policy in which nothing runs, and lets the host learn from what
 * could not be built, until a cell is or nothing is left to learn. A plan that is made afterwards
 * is the one that `vitro run` would end up with. Fails where no cell can be made at all, and says
 * why. signal_fd ends it as it does a call; -1: nothing does.
 */
int vt_settle(struct vt_policy *policy, struct vt_host *host, const struct vt_request *request,
	      int signal_fd, struct vt_err *err);
