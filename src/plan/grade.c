/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/grade.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "plan/fail.h"
#include "plan/notes.h"

struct grading {
	struct vt_plan *plan;
	const struct vt_policy *policy;
	const struct vt_host *host;
	bool failed; /* out of memory for a text: the plan fails, rather than say less */
};

static void hold(struct grading *g, enum vt_property property, struct vt_holding holding)
{
	holding.note = holding.note ? holding.note : "";
	g->plan->holdings[property] = holding;
}

/* A text of the plan's. Never NULL. */
static __attribute__((format(printf, 2, 3))) const char *compose(struct grading *g, const char *fmt,
								 ...)
{
	va_list args;

	va_start(args, fmt);
	const char *text = vt_arena_vprintf(g->plan->arena, fmt, args);

	va_end(args);
	g->failed |= !text;
	return text ? text : "";
}

/* A restriction that the kernel holds if a mechanism works, and nobody else. */
static struct vt_holding by_kernel(struct grading *g, const char *name, const char *key,
				   const char *mechanism, const struct vt_fact *fact)
{
	if (fact->err == 0)
		return (struct vt_holding){ name, key, mechanism, VT_GRADE_KERNEL, NULL };
	return (struct vt_holding){
		name,
		key,
		"none",
		VT_GRADE_NONE,
		compose(g, "%s: %s; `vitro doctor` says what to do", fact->tried,
			strerror(fact->err)),
	};
}

static void grade_syscalls(struct grading *g)
{
	struct vt_holding calls = by_kernel(g, "syscalls", "syscalls", "seccomp",
					    &g->host->seccomp);

	if (g->policy->syscalls == VT_SYSCALLS_PROFILE && calls.grade == VT_GRADE_KERNEL)
		calls.note = compose(g,
				     "the profile %s decides which calls pass; vitro's "
				     "default filter is not in force, only the rules "
				     "that its other promises stand on",
				     g->policy->profile->path);
	hold(g, VT_PROPERTY_SYSCALLS, calls);
}

/* ---- a cell in namespaces ------------------------------------------------------------------ */

/*
 * The namespace has inet and abstract sockets of its own. Unix sockets are found by path in
 * whatever shows of the host, also for reading only, and vsock ones are the machine's: a filter
 * parts these.
 */
static struct vt_holding hold_network(struct grading *g)
{
	const struct vt_fact *seccomp = &g->host->seccomp;
	struct vt_holding held = by_kernel(g, "network", "network", "netns", &g->host->userns);

	if (!g->plan->filter_count) {
		held.mechanism = "none";
		held.grade = VT_GRADE_NONE;
		held.note = compose(
			g,
			"a network namespace, but no system call filter (%s: %s) to keep the cell "
			"from unix sockets of the host that it sees, and from vsock ones; "
			"`vitro doctor` says what to do",
			seccomp->tried, strerror(seccomp->err));
	}
	return held;
}

static void grade_namespaces(struct grading *g)
{
	const struct vt_fact *userns = &g->host->userns;
	struct vt_holding files = by_kernel(
		g, "files", "files", g->plan->landlock_fs ? "mountns+landlock" : "mountns", userns);

	files.note = files.note ? files.note : g->plan->open_pipes;
	hold(g, VT_PROPERTY_PROCESSES, by_kernel(g, "processes", "processes", "pidns", userns));
	hold(g, VT_PROPERTY_FILES, files);
	if (g->plan->own_network)
		hold(g, VT_PROPERTY_NETWORK, hold_network(g));
	hold(g, VT_PROPERTY_TMP,
	     (struct vt_holding){ "tmp", "limits.tmp_mb", "tmpfs", VT_GRADE_KERNEL, NULL });
}

/* ---- a bare cell --------------------------------------------------------------------------- */

static struct vt_holding hold_bare_processes(const struct vt_plan *plan)
{
	struct vt_holding held = { "processes", "processes", "landlock-scope", VT_GRADE_KERNEL,
				   "that other processes exist can be seen, and no more; if vitro "
				   "and the cell's init are killed at the same time, what the call "
				   "started in the background stays" };

	/* An id that is the cell's alone lets vitro end what an init that was killed did not. */
	if (!plan->own_ids || plan->id_count < VT_IDS_FOR_ALL)
		held.note = "that other processes exist can be seen, and no more; if somebody on "
			    "the host kills the cell's init, what the call started in the "
			    "background stays";
	if (plan->sweep == VT_SWEEP_USER) {
		held.mechanism = "own-uid";
		held.note =
			"that other processes exist can be seen, and no more; signals are denied "
			"but to one's own process group";
	}
	if (plan->sweep == VT_SWEEP_TREE) {
		held.mechanism = "subreaper";
		held.grade = VT_GRADE_WATCHED;
		held.note = "what the call leaves behind is looked for and killed, and a program "
			    "that means to can dodge that for a while; signals are denied";
	}
	/* The memory of a process with the same id is a file of proc's. */
	if (plan->sweep == VT_SWEEP_TREE && !plan->own_ids && !plan->landlock_fs) {
		held.mechanism = "none";
		held.grade = VT_GRADE_NONE;
		held.note = "what the call leaves behind is looked for and killed, and signals are "
			    "denied, but through /proc it reaches the memory and environment of "
			    "the caller's other processes: without Landlock nothing keeps it out";
	}
	if (plan->sweep == VT_SWEEP_TREE && !plan->own_ids && !plan->filter_count)
		held.note = "what the call leaves behind is looked for and killed; nothing keeps "
			    "it from signalling the caller's other processes";
	return held;
}

/* What a cell with the caller's own id can do about modes. "" where it has one of its own. */
static const char *tell_modes(struct grading *g)
{
	const struct vt_fact *modes = &g->host->modes;

	if (g->plan->broker.modes)
		return "; modes and times can be changed only inside folders that may be written, "
		       "owners nowhere";
	if (g->plan->own_ids || !modes->err)
		return "";
	return compose(g, "; modes, owners and times cannot be changed (%s: %s)", modes->tried,
		       strerror(modes->err));
}

static struct vt_holding hold_bare_files(struct grading *g)
{
	const struct vt_plan *plan = g->plan;
	const char *modes = tell_modes(g);
	struct vt_holding held = { "files", "files", "none", VT_GRADE_NONE, NULL };

	if (plan->landlock_fs && plan->filter_count) {
		held.mechanism = "landlock";
		held.grade = VT_GRADE_KERNEL;
		held.note = compose(g,
				    "names, sizes and owners of other files can be seen, "
				    "their content not%s",
				    modes);
	} else if (plan->landlock_fs) {
		held.note = "without a system call filter modes and owners of the caller's files "
			    "can be changed";
	} else if (g->host->landlock_abi) {
		held.note = compose(
			g,
			"no mount namespace, and this kernel's Landlock is older than ABI 3, "
			"which cannot keep files from being emptied%s",
			modes);
	} else {
		held.note = compose(g, "no mount namespace, and no Landlock: %s%s",
				    strerror(g->host->landlock_err), modes);
	}
	return held;
}

static void grade_bare(struct grading *g)
{
	const struct vt_plan *plan = g->plan;

	hold(g, VT_PROPERTY_PROCESSES, hold_bare_processes(plan));
	hold(g, VT_PROPERTY_FILES, hold_bare_files(g));
	if (g->policy->network == VT_NETWORK_NONE)
		hold(g, VT_PROPERTY_NETWORK,
		     by_kernel(g, "network", "network",
			       plan->landlock_net ? "seccomp+landlock" : "seccomp",
			       &g->host->seccomp));
	hold(g, VT_PROPERTY_TMP,
	     (struct vt_holding){ "tmp", "limits.tmp_mb", "watchdog", VT_GRADE_WATCHED,
				  plan->can_look
					  ? "a folder on the host, sampled every 2 to 50 ms: a "
					    "burst passes unseen; its inodes are not bounded"
					  : "a folder on the host, sampled every 2 to 50 ms: a "
					    "burst passes unseen, and without a /proc so do "
					    "deleted files that are open; its inodes are not "
					    "bounded" });
}

static void grade_isolation(struct grading *g)
{
	hold(g, VT_PROPERTY_NETWORK,
	     (struct vt_holding){ "network", "network", NULL, VT_GRADE_NONE,
				  "the host's network, as the policy says" });
	grade_syscalls(g);
	if (g->plan->bare)
		grade_bare(g);
	else
		grade_namespaces(g);
}

/* ---- limits -------------------------------------------------------------------------------- */

static const char no_proc[] = "no cgroup, and no /proc to see what the cell uses";

/*
 * What can be touched until a cell is found above its limit and killed, from the sampling of
 * watch/looker.c: near the limit it is glanced at every half millisecond; then come a look, what a
 * kill takes, and a wait for a CPU where others are busy. A few CPUs are as fast as the memory.
 */
static int64_t find_slack_mb(const struct vt_host *host, int64_t touch_us)
{
	enum { LATE_MS = 5, MEMORY_CPUS = 4 };
	unsigned cpus = host->cpus < MEMORY_CPUS ? host->cpus : MEMORY_CPUS;
	int64_t mb = touch_us * 1000 * LATE_MS * (cpus ? cpus : 1) >> 20;

	return mb < 10 ? 10 : (mb + 9) / 10 * 10; /* no more exact than that */
}

static void grade_memory(struct grading *g)
{
	struct vt_holding memory = { "memory", "limits.memory_mb", "watchdog", VT_GRADE_WATCHED,
				     NULL };

	if (g->plan->cgroup.memory_bytes) {
		memory.mechanism = g->host->cgroup.version == VT_CGROUP_V2 ? "cgroup-v2"
									   : "cgroup-v1";
		memory.grade = VT_GRADE_KERNEL;
	} else if (!g->plan->can_look) {
		memory.mechanism = "none";
		memory.grade = VT_GRADE_NONE;
		memory.note = no_proc;
	} else {
		/* Where nobody has measured it, it is fast. */
		g->plan->touch_us = g->host->touch ? g->host->touch() : 16000;
		g->plan->memory_slack_mb = find_slack_mb(g->host, g->plan->touch_us);
		memory.note = compose(
			g,
			"sampled every 0.5 to 50 ms, sooner the nearer the limit: a burst can pass "
			"it by up to about %lld MB, as fast as this machine gives out memory now "
			"(%.2g GB/s on a CPU); by more where many processes grow at once, or wait "
			"for a CPU is long; and a program that means to can hide memory (in pipe "
			"and socket buffers, "
			"descriptors in flight, page tables%s%s); only a cgroup holds against that",
			(long long)g->plan->memory_slack_mb, (double)g->plan->touch_us / 1000,
			g->plan->bare && g->host->proc_hides
				? ", processes that are not dumpable, which /proc hides here"
				: "",
			g->plan->filter_count
				? ""
				: ", threads with descriptors of their own, System V segments");
	}
	hold(g, VT_PROPERTY_MEMORY, memory);
}

static void grade_pids(struct grading *g)
{
	const struct vt_plan *plan = g->plan;
	struct vt_holding pids = { "pids", "limits.pids", "rlimit", VT_GRADE_KERNEL, NULL };

	if (plan->cgroup.pids) {
		pids.mechanism = "cgroup-v2";
	} else if (plan->bare && !plan->own_ids && !g->host->proc) {
		pids.note = "the caller's other processes count too, and how many there are cannot "
			    "be seen without /proc: the cell may have so many fewer";
	} else if (plan->bare && !plan->own_ids && plan->pooled) {
		pids.note = compose(
			g,
			"counted together with the caller's other processes, now %u, and with "
			"those "
			"of the pool's other cells, for which there is room beside: as there are "
			"fewer, the cell may have so many more, and as they grow, fewer",
			g->host->tasks);
	} else if (plan->bare && !plan->own_ids) {
		pids.note = compose(
			g,
			"counted together with the caller's other processes, now %u: as those end, "
			"the cell may have so many more, and as they grow, fewer",
			g->host->tasks);
	}
	hold(g, VT_PROPERTY_PIDS, pids);
}

static void grade_cpu(struct grading *g)
{
	struct vt_holding time = { "cpu_time", "limits.cpu_ms", NULL, VT_GRADE_WATCHED, NULL };
	struct vt_holding cpus = { "cpus", "limits.cpus", NULL, VT_GRADE_NONE, NULL };

	if (g->plan->cpu_ms >= 0) {
		time.mechanism = g->plan->cgroup.count_cpu ? "watchdog+cgroup" : "watchdog";
		time.note = g->plan->cgroup.count_cpu ? "sampled every 2 to 50 ms"
						      : "sampled every 2 to 50 ms; children that "
							"nobody waits for are not counted";
		if (!g->plan->can_look) {
			time.mechanism = "none";
			time.grade = VT_GRADE_NONE;
			time.note = no_proc;
		}
	}
	if (g->policy->limits.cpus > 0) {
		bool held = g->plan->cgroup.cpu_quota_us;

		cpus.mechanism = !held                                     ? "none"
				 : g->host->cgroup.version == VT_CGROUP_V2 ? "cgroup-v2"
									   : "cgroup-v1";
		cpus.grade = held ? VT_GRADE_KERNEL : VT_GRADE_NONE;
		if (!held)
			cpus.note = compose(g, "no cgroup with a cpu controller: %s",
					    g->host->cgroup.cpu_why);
	}
	hold(g, VT_PROPERTY_CPU_TIME, time);
	hold(g, VT_PROPERTY_CPUS, cpus);
}

/* The least grade that a property may have. */
static enum vt_grade needed(enum vt_require require, enum vt_property property)
{
	if (require == VT_REQUIRE_BEST_EFFORT)
		return VT_GRADE_NONE;
	if (require == VT_REQUIRE_FULL &&
	    (property == VT_PROPERTY_MEMORY || property == VT_PROPERTY_CPU_TIME ||
	     property == VT_PROPERTY_TMP))
		return VT_GRADE_WATCHED;
	return VT_GRADE_KERNEL;
}

bool vt_grade_suffices(const struct vt_holding *holding, enum vt_property property,
		       enum vt_require require)
{
	return !holding->mechanism || holding->grade >= needed(require, property);
}

/* In short: `explain` has the rest. */
static const char *why_refused(const struct vt_holding *h, enum vt_property property)
{
	if (h->grade != VT_GRADE_WATCHED)
		return h->note;
	if (property == VT_PROPERTY_MEMORY)
		return "there is no cgroup to hold it";
	if (property == VT_PROPERTY_CPU_TIME)
		return "it is always sampled";
	return property == VT_PROPERTY_PROCESSES
		       ? "there are no namespaces, and no Landlock that scopes signals"
		       : "there are no namespaces";
}

static int refuse(const struct grading *g, enum vt_property property, struct vt_err *err)
{
	const struct vt_holding *h = &g->plan->holdings[property];
	const char *why = why_refused(h, property);

	return vt_fail(err, VT_STEP_PLAN, EPERM,
		       "refused: %s %s here, and require is %s%s%s; --set require=%s would run it",
		       h->key,
		       h->grade == VT_GRADE_WATCHED ? "can only be watched" : "cannot be enforced",
		       vt_require_name(g->policy->require), *why ? ": " : "", why,
		       h->grade >= needed(VT_REQUIRE_FULL, property) ? "full" : "best-effort");
}

/*
 * A setuid bit that a cell sets in a granted folder is the folder owner's on the host. Only a
 * filter keeps it from doing so, whatever else is required.
 */
static int check_writes(const struct grading *g, struct vt_err *err)
{
	if (g->plan->filter_count || !g->policy->files.write.count)
		return 0;
	return vt_fail(err, VT_STEP_PLAN, EPERM,
		       "refused: files.write: without a system call filter (%s: %s) the cell could "
		       "plant setuid files there; `vitro doctor` says what to do",
		       g->host->seccomp.tried, strerror(g->host->seccomp.err));
}

/* What a refusal names: the network falls with the filter, and that is the one to do something
 * about.
 */
static enum vt_property cause_of(const struct grading *g, enum vt_property property)
{
	return property == VT_PROPERTY_NETWORK && !g->plan->filter_count ? VT_PROPERTY_SYSCALLS
									 : property;
}

static int judge(struct grading *g, struct vt_err *err)
{
	enum vt_grade least = VT_GRADE_KERNEL;
	bool partial = false;
	int r = check_writes(g, err);

	if (r < 0)
		return r;
	g->plan->level = "partial";
	for (int i = 0; i < VT_PROPERTIES; i++) {
		const struct vt_holding *h = &g->plan->holdings[i];

		if (!h->mechanism)
			continue;
		if (!vt_grade_suffices(h, (enum vt_property)i, g->policy->require))
			return refuse(g, cause_of(g, (enum vt_property)i), err);
		if (!vt_grade_suffices(h, (enum vt_property)i, VT_REQUIRE_FULL))
			partial = true;
		least = h->grade < least ? h->grade : least;
	}
	if (!partial)
		g->plan->level = least == VT_GRADE_WATCHED ? "full" : "strict";
	return 0;
}

int vt_grade_plan(struct vt_plan *plan, const struct vt_policy *policy, const struct vt_host *host,
		  struct vt_err *err)
{
	struct grading g = { .plan = plan, .policy = policy, .host = host };

	grade_isolation(&g);
	grade_memory(&g);
	grade_pids(&g);
	grade_cpu(&g);
	int r = g.failed ? vt_plan_nomem(err) : vt_notes_make(plan, policy, host, err);

	return r < 0 ? r : judge(&g, err);
}
