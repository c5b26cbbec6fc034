/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The raw calls: glibc's own send the change to all threads, by a lock that a fork may have copied
 * in its locked state.
 */
int vt_process_become(uid_t uid, gid_t gid, bool drop_groups, struct vt_err *err)
{
	if (drop_groups && syscall(SYS_setgroups, 0, NULL) < 0)
		return vt_fail_at(err, VT_STEP_IDS, errno, "drop supplementary groups", NULL);
	if (syscall(SYS_setresgid, gid, gid, gid) < 0)
		return vt_fail_at(err, VT_STEP_IDS, errno, "become the cell's group", NULL);
	if (syscall(SYS_setresuid, uid, uid, uid) < 0)
		return vt_fail_at(err, VT_STEP_IDS, errno, "become the cell's user", NULL);
	return 0;
}

/*
 * The raw call: glibc's own keeps 32 and 33 for itself, and says EINVAL for them, though its
 * posix_spawn leaves them ignored in every child.
 */
static int default_signals(struct vt_err *err)
{
	const struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		unsigned long mask;
	} by_default = { 0 };

	for (int number = 1; number < NSIG; number++) {
		/* SIGKILL and SIGSTOP cannot be changed. */
		if (syscall(SYS_rt_sigaction, number, &by_default, NULL, sizeof(by_default.mask)) <
			    0 &&
		    errno != EINVAL)
			return vt_fail_at(err, VT_STEP_SESSION, errno, "reset the signals", NULL);
	}
	return 0;
}

/*
 * A caller's real-time priority is inherited, and with it who never rests keeps the CPU from
 * everybody, whoever should end it included.
 */
static int leave_real_time(struct vt_err *err)
{
	const struct sched_param none = { 0 };
	long policy = syscall(SYS_sched_getscheduler, 0);

	if (policy != SCHED_FIFO && policy != SCHED_RR)
		return 0;
	if (syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none) < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "give up real-time priority", NULL);
	return 0;
}

/* The same for its disks: a caller's class before all others. */
static int leave_real_time_disks(struct vt_err *err)
{
	long priority = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);

	/* A kernel without it has no classes. */
	if (priority < 0 || IOPRIO_PRIO_CLASS(priority) != IOPRIO_CLASS_RT)
		return 0;
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0) < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "give up real-time disks", NULL);
	return 0;
}

/*
 * A caller may have a page at 0, addresses that are not random, or another system's ways: exec
 * keeps them, and a filter that denies asking for them would come too late.
 */
static int leave_personality(struct vt_err *err)
{
	const unsigned long ask = UINT32_MAX;
	long now = syscall(SYS_personality, ask);

	/* Who may not even ask cannot have set one, but for what was there before that filter. */
	if (now <= 0)
		return 0;
	if (syscall(SYS_personality, 0UL) < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "become a plain process", NULL);
	return 0;
}

int vt_process_detach(struct vt_err *err)
{
	if (setsid() < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "start a session", NULL);
	int r = leave_real_time(err);

	if (r == 0)
		r = leave_real_time_disks(err);
	if (r == 0)
		r = leave_personality(err);
	if (r == 0)
		r = default_signals(err);
	sigset_t none;

	if (r < 0)
		return r;
	(void)sigemptyset(&none); /* cannot fail */
	/* Only now, in a session of its own, where a Ctrl-C for vitro does not reach it. */
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "unblock the signals", NULL);
	(void)umask(022); /* returns the old one; cannot fail */
	return 0;
}

int vt_process_leave_keys(struct vt_err *err)
{
	/*
	 * ENOSYS: a kernel without keyrings has none to leak. EPERM: a filter around us denies the
	 * call, and the occupant is under that filter too.
	 */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
	    errno != EPERM)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "start with an empty keyring", NULL);
	return 0;
}

static rlim_t lesser(rlim_t a, rlim_t b)
{
	return a < b ? a : b; /* RLIM_INFINITY is the greatest of all */
}

int vt_process_limit(const struct vt_rlimit *limits, size_t count, struct vt_err *err)
{
	for (size_t i = 0; i < count; i++) {
		__rlimit_resource_t resource = (__rlimit_resource_t)limits[i].resource;
		struct rlimit now;

		if (getrlimit(resource, &now) < 0)
			return vt_fail_at(err, VT_STEP_LIMITS, errno, "ask for a resource limit",
					  NULL);
		const struct rlimit wanted = {
			.rlim_cur = lesser(limits[i].limit.rlim_cur, now.rlim_max),
			.rlim_max = lesser(limits[i].limit.rlim_max, now.rlim_max),
		};

		if (setrlimit(resource, &wanted) < 0)
			return vt_fail_at(err, VT_STEP_LIMITS, errno, "set a resource limit", NULL);
	}
	return 0;
}

/* Moves a descriptor out of the way of 0 to 4. */
static int lift(int *fd)
{
	*fd = fcntl(*fd, F_DUPFD_CLOEXEC, 5);
	return *fd < 0 ? -errno : 0;
}

int vt_process_descriptors(int in, int out, int err_out, int keep, struct vt_err *err)
{
	return vt_process_descriptors_with(in, out, err_out, keep, -1, err);
}

int vt_process_descriptors_with(int in, int out, int err_out, int keep, int more,
				struct vt_err *err)
{
	const bool has_more = more >= 0;

	if (lift(&in) < 0 || lift(&out) < 0 || lift(&err_out) < 0 || lift(&keep) < 0 ||
	    (has_more && lift(&more) < 0))
		return vt_fail_at(err, VT_STEP_DESCRIPTORS, errno, "move the descriptors", NULL);
	if (dup3(keep, 3, O_CLOEXEC) < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 ||
	    dup2(err_out, 2) < 0 || (has_more && dup2(more, 4) < 0))
		return vt_fail_at(err, VT_STEP_DESCRIPTORS, errno, "place the descriptors", NULL);
	if (syscall(SYS_close_range, has_more ? 5U : 4U, ~0U, 0) < 0)
		return vt_fail_at(err, VT_STEP_DESCRIPTORS, errno, "close the other descriptors",
				  NULL);
	return 0;
}

void vt_process_end(pid_t pid)
{
	if (kill(pid, SIGKILL) < 0)
		return;
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}
