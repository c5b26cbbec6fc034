/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCKED_BITS                                                                              \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                         \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

int vt_caps_empty(struct vt_err *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capset, &header, none) < 0)
		return vt_fail_at(err, VT_STEP_CAPS, errno, "give up all capabilities", NULL);
	return 0;
}

/* Closes the ways by which an exec or a change of ids brings capabilities back. */
static int close_ways(bool all, struct vt_err *err)
{
	/* The kernel says where its list ends: EINVAL. A newer kernel has more than our header. */
	for (unsigned long cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if ((errno == EINVAL && cap > 0) || (errno == EPERM && !all))
			break;
		return vt_fail_at(err, VT_STEP_CAPS, errno, "drop the bounding set", NULL);
	}
	if (prctl(PR_SET_SECUREBITS, LOCKED_BITS, 0, 0, 0) < 0 && (all || errno != EPERM))
		return vt_fail_at(err, VT_STEP_CAPS, errno, "lock the securebits", NULL);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return vt_fail_at(err, VT_STEP_CAPS, errno, "clear the ambient set", NULL);
	return 0;
}

int vt_caps_drop(struct vt_err *err)
{
	int r = close_ways(true, err);

	return r < 0 ? r : vt_caps_empty(err);
}

int vt_caps_bound(struct vt_err *err)
{
	return close_ways(false, err);
}

int vt_caps_no_new_privs(struct vt_err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return vt_fail_at(err, VT_STEP_CAPS, errno, "set no_new_privs", NULL);
	return 0;
}
