/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/look.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "kernel/cgroup.h"
#include "watch/usage.h"

/* How often a cgroup is asked whether the kernel killed for memory, and a call's size is looked at.
 */
#define FIRST_LOOK     (4 * VT_NS_PER_MS) /* most calls of a tool are over by then */
#define LOOK_SILENCE   (3 * VT_NS_PER_S)
#define LOOK_AT_CGROUP (50 * VT_NS_PER_MS)
/* With many calls at once, looks are spread this far apart per call: a look takes a tenth of it. */
#define LOOK_APART (2 * VT_NS_PER_MS)
enum { MAX_UNSEEN = 3 }; /* looks in a row that something may be out of sight */

static struct vt_usage_limits limits_of(const struct vt_look *look)
{
	const struct vt_plan *plan = look->plan;

	return (struct vt_usage_limits){
		.memory_bytes = plan->watched_memory_bytes,
		.cpu_ns = plan->cpu_ms < 0 || !plan->can_look ? -1 : plan->cpu_ms * VT_NS_PER_MS,
		.tmp_bytes = plan->watched_tmp_bytes < 0 ? 0 : plan->watched_tmp_bytes,
		.cpus = plan->cpus,
		.touch_us = plan->touch_us,
		.inherited = plan->pooled ? -1 : 0,
		.init = plan->own_proc ? 0 : look->cell->init,
	};
}

static bool has_limits(const struct vt_usage_limits *limits)
{
	return limits->memory_bytes >= 0 || limits->cpu_ns >= 0 || limits->tmp_bytes > 0;
}

static void look_at_cgroup(struct vt_look *look)
{
	struct vt_cgroup_usage usage;
	struct vt_err err;

	/* A cell that was never made has not been watched either. */
	if (!look->cell || look->cell->cgroup.version == VT_CGROUP_NONE ||
	    vt_cgroup_read(&look->cell->cgroup, &usage, &err) < 0)
		return;
	look->findings->oom_kills = usage.oom_kills;
	if (usage.memory_peak_bytes >= 0) {
		look->counted = true;
		look->peak_memory = usage.memory_peak_bytes;
	}
	if (usage.cpu_ns > look->cpu_ns)
		look->cpu_ns = usage.cpu_ns;
}

void vt_look_take_rusage(struct vt_look *look, const struct rusage *usage)
{
	int64_t cpu = vt_rusage_cpu_ns(usage);

	if (cpu > look->cpu_ns)
		look->cpu_ns = cpu;
	if (!look->counted && usage->ru_maxrss * 1024 > look->peak_memory)
		look->peak_memory = usage->ru_maxrss * 1024;
}

/* A limit that cannot be watched any more does not hold. */
static void give_up_watching(struct vt_look *look, int num)
{
	struct vt_err err;

	(void)vt_fail(&err, VT_STEP_WATCH, num, "see how much the cell uses");
	look->lose(look->owner, &err);
}

/*
 * A look that takes so long is the cell's doing: of mappings by the ten thousand, or of files. It
 * is not left to run unwatched for that, and does not pass for a failure of ours.
 */
static void give_up_measuring(struct vt_look *look, const struct vt_usage_limits *limits)
{
	vt_timer_set(&look->timer, INT64_MAX);
	if (look->findings->stop == VT_STOP_NONE) {
		look->findings->unmeasured = true;
		/* Nobody here had the CPU, say: then that is no word on what the cell uses. */
		if (look->deadline <= vt_clock_now())
			look->findings->stop = VT_STOP_DEADLINE;
	}
	look->stop(look->owner, limits->memory_bytes >= 0 ? VT_STOP_MEMORY
				: limits->tmp_bytes > 0   ? VT_STOP_TMP
							  : VT_STOP_CPU);
}

static void judge_tmp(struct vt_look *look, const struct vt_usage *usage, int64_t most)
{
	bool passing = usage->tmp_odd == VT_FOLDER_CLOSED || usage->tmp_odd == VT_FOLDER_SLOW;

	look->unmeasured = passing ? look->unmeasured + 1 : 0;
	if (usage->tmp_bytes > most)
		look->findings->tmp_odd = VT_FOLDER_PLAIN;
	else if (usage->tmp_odd != VT_FOLDER_PLAIN && (!passing || look->unmeasured > MAX_UNSEEN))
		look->findings->tmp_odd = usage->tmp_odd;
	else
		return;
	look->stop(look->owner, VT_STOP_TMP);
}

static void judge_usage(struct vt_look *look, const struct vt_usage *usage)
{
	const struct vt_usage_limits limits = limits_of(look);
	bool above = limits.memory_bytes >= 0 && usage->memory_bytes > limits.memory_bytes;

	if (usage->processes > look->processes)
		look->processes = usage->processes;
	/* Where a cgroup counts memory, its peak is the better one. */
	if (limits.memory_bytes >= 0 && usage->memory_bytes > look->peak_memory)
		look->peak_memory = usage->memory_bytes;
	if (usage->cpu_ns > look->cpu_ns)
		look->cpu_ns = usage->cpu_ns;
	/*
	 * A child of vfork has its parent's memory until it execs: one look may be that, two are
	 * not. A certain one is about memory that nobody has twice.
	 */
	if (look->findings->oom_kills > 0 || usage->certain || (above && look->above))
		look->stop(look->owner, VT_STOP_MEMORY);
	else if (limits.cpu_ns >= 0 && look->cpu_ns >= limits.cpu_ns)
		look->stop(look->owner, VT_STOP_CPU);
	else if (limits.tmp_bytes > 0)
		judge_tmp(look, usage, limits.tmp_bytes);
	look->above = above;
}

/* Whether there were any. */
static bool take_reports(struct vt_look *look)
{
	struct vt_look_report report = { 0 };
	bool any = false;
	int r;

	while (!look->over && (r = vt_looker_read(&look->looker, &report)) != 0) {
		any = true;
		/* A process that is just executing a program cannot be looked at for a moment. */
		look->unseen = r > 0 && report.result == -EACCES ? look->unseen + 1 : 0;
		if (r < 0 ||
		    (report.result < 0 && (look->unseen == 0 || look->unseen > MAX_UNSEEN)))
			give_up_watching(look, r < 0 ? -r : -report.result);
		else if (report.result == 0)
			judge_usage(look, &report.usage);
	}
	if (any && !look->over)
		vt_timer_set(&look->timer, vt_clock_now() + LOOK_SILENCE);
	return any;
}

static void reports_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_look *look = source->owner;

	(void)events; /* its end shows as such */
	look_at_cgroup(look);
	(void)take_reports(look); /* whoever reads them */
}

static void start_looker(struct vt_look *look)
{
	const struct vt_usage_limits limits = limits_of(look);
	struct vt_err err;
	int r = vt_looker_start(&look->looker, look->proc_fd, look->root_fd, &limits,
				look->plan->bare && look->plan->own_ids ? &look->cell->outer : NULL,
				&err);

	look->reports = (struct vt_watch){ .fd = look->looker.report_fd,
					   .ready = reports_ready,
					   .owner = look };
	if (r == 0)
		r = vt_loop_add(look->loop, &look->reports, EPOLLIN, &err);
	if (r < 0)
		give_up_watching(look, err.num);
	else
		vt_timer_set(&look->timer, vt_clock_now() + LOOK_SILENCE);
}

static int64_t pause_of(const struct vt_look *look)
{
	int64_t apart = look->loop->looks * LOOK_APART;

	return apart > LOOK_AT_CGROUP ? apart : LOOK_AT_CGROUP;
}

static void look_fires(struct vt_timer *timer)
{
	struct vt_look *look = timer->owner;
	const struct vt_usage_limits limits = limits_of(look);
	struct vt_usage usage = { 0 };

	if (look->over)
		return;
	look_at_cgroup(look);
	if (has_limits(&limits)) {
		if (!look->looker.pid)
			start_looker(look);
		else if (!take_reports(look)) /* it was silent, and not us deaf */
			give_up_measuring(look, &limits);
		return;
	}
	/* Nothing to hold: only the number of processes is of interest, and that waits for no lock.
	 */
	if (!look->plan->can_look || vt_usage_look(look->proc_fd, -1, &limits, &usage) < 0)
		usage = (struct vt_usage){ 0 };
	judge_usage(look, &usage);
	if (!look->over)
		vt_timer_set(timer, vt_clock_now() + pause_of(look));
}

void vt_look_init(struct vt_look *look)
{
	look->timer = (struct vt_timer){ .fire = look_fires, .owner = look };
	look->proc_fd = look->root_fd = -1;
	vt_loop_add_timer(look->loop, &look->timer);
	look->loop->looks++;
}

void vt_look_begin(struct vt_look *look, int proc_fd, int root_fd, int64_t deadline)
{
	const struct vt_usage_limits limits = limits_of(look);
	int64_t first = has_limits(&limits) ? FIRST_LOOK : pause_of(look);

	/* A low limit is passed sooner. */
	if (limits.memory_bytes >= 0 && vt_usage_next_glance(limits.memory_bytes, &limits) < first)
		first = vt_usage_next_glance(limits.memory_bytes, &limits);
	look->deadline = deadline;
	look->proc_fd = proc_fd;
	look->root_fd = root_fd;
	vt_timer_set(&look->timer, vt_clock_now() + first);
}

void vt_look_conclude(struct vt_look *look)
{
	struct vt_look_report report;

	look_at_cgroup(look);
	while (look->looker.pid && vt_looker_read(&look->looker, &report) > 0)
		if (report.result == 0 && report.usage.certain) {
			if (report.usage.memory_bytes > look->peak_memory)
				look->peak_memory = report.usage.memory_bytes;
			if (look->findings->stop == VT_STOP_NONE)
				look->findings->stop = VT_STOP_MEMORY;
		}
}

void vt_look_stop(struct vt_look *look)
{
	look->over = true;
	vt_timer_set(&look->timer, INT64_MAX);
	vt_loop_remove(look->loop, &look->reports);
	vt_looker_stop(&look->looker);
}

void vt_look_done(struct vt_look *look)
{
	if (!look->loop)
		return; /* never begun */
	vt_loop_remove(look->loop, &look->reports);
	vt_loop_remove_timer(look->loop, &look->timer);
	vt_looker_done(&look->looker);
	look->loop->looks--;
}
