/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/seccomp.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/seccomp_profile.h"

const struct sock_fprog *vt_seccomp_builtin(enum vt_seccomp_profile profile, unsigned sockets)
{
	/* A profile or family that does not exist is a mistake of the caller's: the tightest
	 * filter. */
	if ((unsigned)profile >= VT_SECCOMP_PROFILES)
		profile = VT_SECCOMP_STRICT;
	if (sockets >= VT_SOCKETS_SETS)
		sockets = VT_SOCKETS_NONE;
	return &vt_seccomp_filters[profile][sockets];
}

const struct sock_fprog *vt_seccomp_addon(enum vt_seccomp_addon addon, unsigned sockets)
{
	if (sockets >= VT_SOCKETS_SETS)
		sockets = VT_SOCKETS_NONE;
	return &vt_seccomp_addons[addon][sockets];
}

/*
 * Without SECCOMP_FILTER_FLAG_SPEC_ALLOW. Where filters bring speculation mitigations along, which
 * is the default only before Linux 5.16 and an administrator's wish since, they slow the program
 * down; but code that nobody trusts is what they are for, and that is what runs here.
 */
static long install(const struct sock_fprog *filter, unsigned long flags)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, filter);
}

static int fail(int num, struct vt_err *err)
{
	return vt_fail_at(err, VT_STEP_SECCOMP, num,
			  num == EACCES  ? "install the system call filter: no_new_privs is not set"
			  : num == EBUSY ? "install the system call filter: another one around it "
					   "has a listener"
					 : "install the system call filter",
			  NULL);
}

int vt_seccomp_install(const struct sock_fprog *filter, struct vt_err *err)
{
	return install(filter, 0) < 0 ? fail(errno, err) : 0;
}

/*
 * A caller that waits for its answer is woken by what kills it, and by nothing else: one that went
 * into a handler would ask again, and find that it is connected already. Older kernels lack that.
 */
int vt_seccomp_listen(const struct sock_fprog *filter, struct vt_err *err)
{
	const unsigned long listen = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	long fd = install(filter, listen | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

	if (fd < 0 && errno == EINVAL)
		fd = install(filter, listen);
	return fd < 0 ? fail(errno, err) : (int)fd;
}
