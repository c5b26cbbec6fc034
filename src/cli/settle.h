/* SPDX-License-Identifier: Apache-2.0 */
/* watch/settle.h, for a verb: a Ctrl-C ends it. */
#pragma once

#include "host/host.h"
#include "plan/plan.h"
#include "policy/policy.h"

int vt_cli_settle(struct vt_policy *policy, struct vt_host *host, const struct vt_request *request,
		  struct vt_err *err);
