/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/looker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/caps.h"
#include "kernel/ns.h"
#include "kernel/process.h"
#include "watch/pipes.h"

/* Where the looker's descriptors are, and nothing else: it must not hold a cell's pipe open. */
enum { PROC_FD, ROOT_FD, REPORT_FD };

#define SOON    (2 * VT_NS_PER_MS) /* after a look that failed */
#define LONGEST (1 * VT_NS_PER_S)  /* who is silent for longer is taken for stuck */

static _Noreturn void look_on(const struct vt_usage_limits *limits, bool has_proc)
{
	int proc = has_proc ? PROC_FD : -1;

	for (;;) {
		struct vt_look_report report = { 0 };
		int64_t began = vt_clock_now();

		report.result = vt_usage_look(proc, ROOT_FD, limits, &report.usage);
		if (write(REPORT_FD, &report, sizeof(report)) != sizeof(report))
			_exit(1);
		/* Never so soon that looking itself takes more than a fifth of a CPU. */
		int64_t cost = vt_clock_now() - began;
		int64_t wait = vt_usage_next_look(&report.usage, limits);

		wait = report.result < 0 ? SOON : wait;
		wait = wait > 4 * cost ? wait : 4 * cost;
		wait = wait < LONGEST ? wait : LONGEST;
		const struct timespec pause = { wait / VT_NS_PER_S, wait % VT_NS_PER_S };

		(void)nanosleep(&pause, NULL); /* woken early, it looks early */
	}
}

/*
 * Sees what that user sees, by the effective ids. The others stay the supervisor's: a signal to all
 * of that user's, which is how init ends a cell that has its id alone, does not reach it, and no
 * signal of the cell's does.
 */
static int see_as(const struct vt_outer *as)
{
	const long keep = -1;
	struct vt_err err;

	if (syscall(SYS_setgroups, 0, NULL) < 0 ||
	    syscall(SYS_setresgid, keep, as->gid, keep) < 0 ||
	    syscall(SYS_setresuid, keep, as->uid, keep) < 0)
		return -errno;
	return vt_caps_empty(&err);
}

static _Noreturn void become_looker(pid_t parent, int proc_fd, int root_fd, int report_fd,
				    const struct vt_usage_limits *limits, const struct vt_outer *as)
{
	bool has_proc = proc_fd >= 0;
	struct vt_err err;

	/* Before the rest: a change of ids undoes the wish to die with one's parent. */
	if (as && see_as(as) < 0)
		_exit(1);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ||
	    vt_process_descriptors(has_proc ? proc_fd : report_fd, root_fd, report_fd, report_fd,
				   &err) < 0)
		_exit(1);
	look_on(limits, has_proc);
}

int vt_looker_start(struct vt_looker *looker, int proc_fd, int root_fd,
		    const struct vt_usage_limits *limits, const struct vt_outer *as,
		    struct vt_err *err)
{
	AUTO_CLOSE int reading = -1, writing = -1, pidfd = -1;
	pid_t parent = getpid();
	int r = vt_pipe_make(&reading, &writing, &reading, err);

	if (r < 0)
		return r;
	pid_t pid = vt_ns_clone(0, -1, &pidfd, err);

	if (pid < 0)
		return pid;
	if (pid == 0)
		become_looker(parent, proc_fd, root_fd < 0 ? writing : root_fd, writing, limits,
			      as);
	looker->pid = pid;
	looker->report_fd = vt_fd_take(&reading);
	return 0;
}

int vt_looker_read(const struct vt_looker *looker, struct vt_look_report *ret_report)
{
	struct vt_look_report report;
	ssize_t len;

	do
		len = read(looker->report_fd, &report, sizeof(report));
	while (len < 0 && errno == EINTR);
	if (len < 0 && errno == EAGAIN)
		return 0;
	if (len != sizeof(report))
		return -EPIPE;
	*ret_report = report;
	return 1;
}

void vt_looker_stop(const struct vt_looker *looker)
{
	if (looker->pid)
		(void)kill(looker->pid, SIGKILL); /* our own child, not yet reaped: it is there */
}

void vt_looker_done(struct vt_looker *looker)
{
	if (!looker->pid)
		return;
	vt_process_end(looker->pid);
	looker->pid = 0;
	vt_fd_close(&looker->report_fd);
}
