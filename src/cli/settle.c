/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/settle.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "watch/run.h"

/* Builds and seals a cell that runs nothing. Whether that taught something about the host. */
static bool rehearse(const struct vt_plan *plan, struct vt_host *host)
{
	AUTO_CLOSE int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const struct vt_run_io io = {
		.in_fd = null,
		.out = { .kind = VT_SINK_CAPTURE, .fd = -1 },
		.err = { .kind = VT_SINK_CAPTURE, .fd = -1 },
		.signal_fd = -1,
	};
	struct vt_result result;
	struct vt_err err;

	vt_result_init(&result);
	bool learned = vt_run(plan, &io, &result, &err) == 0 && result.unbuilt &&
		       vt_host_learn(host, &result.failure);

	vt_result_done(&result);
	return learned;
}

void vt_cli_settle(struct vt_policy *policy, struct vt_host *host, const struct vt_request *request)
{
	const enum vt_require require = policy->require;
	struct vt_request rehearsal = *request;
	char name[32];
	struct vt_err err;
	bool learned = true;

	rehearsal.rehearsal = true;
	(void)snprintf(name, sizeof(name), "rehearsal-%d", getpid()); /* fits */
	rehearsal.name = name;
	policy->require = VT_REQUIRE_BEST_EFFORT;
	while (learned) {
		struct vt_plan *plan;

		/* What is refused whatever is required is the caller's to find out. */
		if (vt_plan_make(policy, host, &rehearsal, &plan, &err) < 0)
			break;
		learned = rehearse(plan, host);
		vt_plan_free(plan);
	}
	policy->require = require;
}
