/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/settle.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "watch/run.h"

/* Builds and seals a cell that runs nothing. 0 if that works, else why it does not, in *err. */
static int rehearse(const struct vt_plan *plan, int signal_fd, struct vt_result *result,
		    struct vt_err *err)
{
	const struct vt_run_io io = {
		.in_fd = -1,
		.out = { .kind = VT_SINK_CAPTURE, .fd = -1 },
		.err = { .kind = VT_SINK_CAPTURE, .fd = -1 },
		.signal_fd = signal_fd,
	};
	int r = vt_run(plan, &io, result, err);

	if (r < 0 || result->verdict.status == VT_STATUS_OK)
		return r;
	if (result->verdict.status == VT_STATUS_TIMEOUT)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: limits.wall_ms is too short: no cell is made in that time");
	return vt_fail(err, VT_STEP_PLAN, EPERM, "refused: no cell can be made here: %s",
		       result->verdict.message);
}

enum { ACCIDENTS_MAX = 3 };

/* One plan, and one rehearsal of it. *ret_again: it failed, and taught something; or somebody
 * killed its cell, which says nothing of this host. */
static int try_once(const struct vt_policy *policy, struct vt_host *host,
		    const struct vt_request *request, int signal_fd, int *accidents,
		    bool *ret_again, struct vt_err *err)
{
	struct vt_result result;
	struct vt_plan *plan;
	struct vt_err later;

	*ret_again = false;
	/* What is refused whatever is required is told by who makes the plan in earnest. */
	if (vt_plan_make(policy, host, request, &plan, &later) < 0)
		return 0;
	vt_result_init(&result);
	int r = rehearse(plan, signal_fd, &result, err);

	if (result.unbuilt)
		*ret_again = r < 0 && vt_host_learn(host, &result.failure);
	else
		*ret_again = r < 0 && result.verdict.status == VT_STATUS_LOST &&
			     ++*accidents < ACCIDENTS_MAX;
	vt_result_done(&result);
	vt_plan_free(plan);
	return r;
}

int vt_settle(struct vt_policy *policy, struct vt_host *host, const struct vt_request *request,
	      int signal_fd, struct vt_err *err)
{
	const enum vt_require require = policy->require;
	struct vt_request rehearsal = *request;
	char name[32];
	int accidents = 0;
	bool again;
	int r;

	rehearsal.rehearsal = true;
	(void)snprintf(name, sizeof(name), "rehearsal-%d", getpid()); /* fits */
	rehearsal.name = name;
	policy->require = VT_REQUIRE_BEST_EFFORT;
	do
		r = try_once(policy, host, &rehearsal, signal_fd, &accidents, &again, err);
	while (again);
	policy->require = require;
	return r;
}
