/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/settle.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "watch/settle.h"

/*
 * What a pool needs beyond a cell: a proc in its hull, by which zygotes find the namespaces, and
 * the call that joins them. Of a filter that denies the call its errno tells, whatever it is called
 * with.
 */
static bool lacks(const struct vt_host *host, struct vt_err *why)
{
	if (host->own_proc.err) {
		(void)vt_fail(why, VT_STEP_MOUNTS, host->own_proc.err, "have a proc for a pool: %s",
			      host->own_proc.tried);
		return true;
	}
	if (setns(-1, 0) < 0 && errno != EBADF) {
		(void)vt_fail(why, VT_STEP_CLONE, errno, "setns()");
		return true;
	}
	return false;
}

int vt_serve_settle(struct vt_policy *policy, struct vt_host *host, struct vt_err *err)
{
	const struct vt_request request = { .environ = environ };
	struct vt_err why;

	if (host->userns.err)
		return 0; /* that was tried */
	int r = vt_settle(policy, host, &request, -1, err);

	if (r == 0 && !host->userns.err && lacks(host, &why))
		(void)vt_host_learn(host, &why); /* or it is refused by who tries */
	return r;
}
