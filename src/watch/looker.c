/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/looker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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
#include "watch/glance.h"
#include "watch/pipes.h"

/* Where the looker's descriptors are, and nothing else: it must not hold a cell's pipe open. */
enum { PROC_FD, ROOT_FD, REPORT_FD };

#define SOON     (2 * VT_NS_PER_MS) /* after a look that failed, or found too much */
#define HEARD_OF VT_NS_PER_S        /* it reports as often, also of a cell that sleeps */
#define LONGEST  (1 * VT_NS_PER_S)  /* who is silent for longer is taken for stuck */

enum { WRITTEN_US = 4000 }; /* bytes of fresh memory that a CPU writes in a microsecond, at best */

/* What a look or a glance has taken of a CPU; one that waits for a lock takes nothing. */
static int64_t cpu_now(void)
{
	struct timespec used;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used); /* cannot fail for this clock */
	return used.tv_sec * VT_NS_PER_S + used.tv_nsec;
}

static void pause_for(int64_t ns)
{
	const struct timespec pause = { ns / VT_NS_PER_S, ns % VT_NS_PER_S };

	(void)nanosleep(&pause, NULL); /* woken early, it looks early */
}

/*
 * Until the next look, after so long at the latest. A cell that grows, or has other processes, is
 * looked at sooner.
 */
static void await_next(const struct vt_glance *glance, const struct vt_usage_limits *limits,
		       int64_t used, int64_t wait)
{
	const int64_t end = vt_clock_now() + wait;
	int64_t left = limits->memory_bytes - used, grown, rest;

	while ((rest = end - vt_clock_now()) > 0) {
		int64_t next = glance->on ? vt_usage_next_glance(left, limits) : rest;

		pause_for(next < rest ? next : rest);
		if (next >= rest || vt_glance(glance, &grown) < 0)
			return;
		left = limits->memory_bytes - used - grown;
		if (left < 0)
			return;
	}
}

/*
 * Asks for short turns, so that it has the next one where the CPUs are busy: it takes little of
 * them. Kernels before 6.12 do not heed that.
 */
static void ask_for_short_turns(void)
{
	struct sched {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} sched = { .size = sizeof(sched) };

	if (syscall(SYS_sched_getattr, 0, &sched, sizeof(sched), 0) < 0 ||
	    sched.policy != SCHED_OTHER)
		return;
	sched.size = sizeof(sched);
	sched.flags = 0;
	sched.runtime = VT_NS_PER_MS / 10;
	(void)syscall(SYS_sched_setattr, 0, &sched, 0); /* else it has turns like everybody's */
}

static _Noreturn void look_on(const struct vt_usage_limits *limits, bool has_proc)
{
	const bool of_memory = has_proc && limits->memory_bytes >= 0;
	struct vt_usage_limits mine = *limits, glanced;
	int proc = has_proc ? PROC_FD : -1;
	struct vt_glance glance = { .on = false };

	if (of_memory) {
		ask_for_short_turns();
		vt_glance_init(&glance, proc, limits->tmp_bytes > 0 ? -1 : ROOT_FD, limits->init);
	}
	for (;;) {
		struct vt_look_report report = { 0 };
		int64_t began = cpu_now();

		if (of_memory)
			vt_glance_prepare(&glance);
		report.result = vt_usage_look(proc, ROOT_FD, &mine, &report.usage);
		if (write(REPORT_FD, &report, sizeof(report)) != sizeof(report))
			_exit(1);
		/* It is told before they end: so nobody takes their end for another's doing. */
		if (report.result == 0 && report.usage.certain)
			vt_usage_kill(proc, &mine);
		if (report.result == 0 && mine.inherited < 0)
			mine.inherited = report.usage.largest_bytes;
		/* What is glanced at is looked at for what is written, which takes longer. */
		glanced = mine;
		if (glance.on && glanced.touch_us > WRITTEN_US)
			glanced.touch_us = WRITTEN_US;
		/* Never so soon that looking itself takes more than a fifth of a CPU. */
		int64_t cost = cpu_now() - began;
		int64_t wait = vt_usage_next_look(&report.usage, &glanced);
		bool above = of_memory && report.usage.memory_bytes > mine.memory_bytes;

		wait = wait > 4 * cost ? wait : 4 * cost;
		/* But for one that tells whether the cell stays above its limit. */
		wait = report.result < 0 || above ? SOON : wait;
		wait = wait < LONGEST ? wait : LONGEST;
		const int64_t heard = vt_clock_now() + HEARD_OF;

		do
			await_next(&glance, &mine, report.usage.memory_bytes, wait);
		while (vt_clock_now() < heard && !above && vt_glance_is_idle(&glance));
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
