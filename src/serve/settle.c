/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/settle.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
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

/*
 * Whether a zygote can make children of the supervisor's, as cells of every kind are; else why not.
 * A filter cannot look at the flags of clone3(), and lets all of them pass or none. Of clone()
 * these flags are never taken together, so that nobody is born whose errno tells of a filter.
 */
static int try_clone_parent(void)
{
	if (syscall(SYS_clone3, NULL, 0) < 0 && errno != ENOSYS && errno != EPERM)
		return 0;
	long pid = syscall(SYS_clone, CLONE_PARENT | CLONE_SIGHAND | SIGCHLD, NULL, NULL, NULL,
			   NULL);

	if (pid == 0)
		_exit(0);
	return pid < 0 && errno != EINVAL ? errno : 0;
}

int vt_serve_settle(struct vt_policy *policy, struct vt_host *host, struct vt_err *err)
{
	const struct vt_request request = { .environ = environ };
	struct vt_err why;
	int denied = try_clone_parent();

	if (denied)
		return vt_fail(err, VT_STEP_PLAN, denied,
			       "refused: a pool needs clone(CLONE_PARENT), which a filter denies "
			       "here, as that of a cell does: %s",
			       strerror(denied));
	if (host->userns.err)
		return 0; /* that was tried */
	int r = vt_settle(policy, host, &request, -1, err);

	if (r == 0 && !host->userns.err && lacks(host, &why))
		(void)vt_host_learn(host, &why); /* or it is refused by who tries */
	return r;
}
