/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fail.h"

#include <errno.h>
#include <string.h>

int vt_plan_nomem(struct vt_err *err)
{
	return vt_fail(err, VT_STEP_PLAN, ENOMEM, "make the plan");
}

int vt_plan_fail_aliases(const char *origin, const char *path, int r, struct vt_err *err)
{
	return vt_fail(
		err, VT_STEP_PLAN, -r,
		"refused: %s: where '%s' is mounted cannot be found out: %s%s", origin, path,
		r == -ENAMETOOLONG ? "" : "/proc/self/mountinfo cannot be read: ", strerror(-r));
}
