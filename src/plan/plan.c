/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions, in the order in which later ones need earlier ones: the kind of cell, ids, the
 * root, the limits, the seal; then each restriction is graded and what cannot hold is refused.
 */
#include "plan/plan.h"

#include <errno.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/stat.h>

#include "host/idrange.h"
#include "plan/environment.h"
#include "plan/fail.h"
#include "plan/grade.h"
#include "plan/places.h"
#include "plan/pooled.h"
#include "plan/protect.h"
#include "plan/reach.h"
#include "plan/sealing.h"
#include "plan/sources.h"
#include "uapi/landlock.h"

/* The user that the occupant is inside; plan/places.c gives it a name. */
#define INNER_ID 1000

struct making {
	const struct vt_policy *policy;
	const struct vt_host *host;
	const struct vt_request *request;
	struct vt_plan *plan;
};

static int decide_ids(struct making *m, struct vt_err *err)
{
	struct vt_plan *plan = m->plan;
	const struct vt_host *host = m->host;

	plan->inner_uid = INNER_ID;
	plan->inner_gid = INNER_ID;
	plan->own_ids = (plan->bare ? host->can_change_ids : host->privileged) &&
			host->id_count > 0;
	plan->id_base = host->id_base;
	plan->id_count = host->id_count;
	plan->outer_uid = host->uid;
	plan->outer_gid = host->gid;
	if (host->uid == 0 && !plan->own_ids)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: root has no other user id to give to the cell here; run vitro as "
			"an ordinary user, or map a range of ids into this user namespace");
	return 0;
}

/* Without user namespaces a cell is bare, unless that cannot be what the policy asks for. */
static int decide_kind(struct making *m, struct vt_err *err)
{
	const struct vt_host *host = m->host;
	struct vt_plan *plan = m->plan;

	plan->bare = host->userns.err != 0;
	plan->watched_tmp_bytes = -1;
	if (!plan->bare) {
		plan->namespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC |
				   CLONE_NEWUTS;
		plan->own_network = m->policy->network != VT_NETWORK_HOST;
		plan->loopback_up = m->policy->network == VT_NETWORK_LOOPBACK;
		return 0;
	}
	if (m->policy->network == VT_NETWORK_LOOPBACK)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: network: a loopback of the cell's own takes a network "
			       "namespace, which cannot be had here (%s: %s); `vitro doctor` says "
			       "what to do",
			       host->userns.tried, strerror(host->userns.err));
	if (!host->scratch)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: there is no place for the cell's private folder: /tmp, "
			       "/var/tmp and /dev/shm cannot be written, and a cell with a /tmp of "
			       "its own cannot be had here (%s: %s)",
			       host->userns.tried, strerror(host->userns.err));
	plan->scratch = vt_arena_printf(plan->arena, "%s/vitro-%s", host->scratch,
					m->request->name ? m->request->name : "CALL");
	if (plan->scratch && plan->pooled)
		plan->scratch = vt_arena_printf(plan->arena, "%s-%0*d", plan->scratch,
						VT_SCRATCH_DIGITS, 0);
	plan->watched_tmp_bytes = m->policy->limits.tmp_mb << 20;
	return plan->scratch ? 0 : vt_plan_nomem(err);
}

static int decide_rlimits(struct making *m, struct vt_err *err)
{
	const struct vt_policy *policy = m->policy;
	struct vt_plan *plan = m->plan;
	/* Of each other cell of a pool, its init and its occupant. */
	const rlim_t others = plan->bare && !plan->own_ids
				      ? m->host->tasks + 2 * (rlim_t)m->request->cells
				      : 0;
	const struct vt_rlimit limits[] = {
		/*
		 * Init counts too: it has the same user in the same user namespace. So do all
		 * others of the caller's, where the cell's user is the caller and has no namespace.
		 */
		{ RLIMIT_NPROC,
		  { policy->limits.pids + 1 + others, policy->limits.pids + 1 + others } },
		{ RLIMIT_NOFILE, { plan->open_files, plan->open_files } },
		{ RLIMIT_FSIZE, { policy->limits.file_mb << 20, policy->limits.file_mb << 20 } },
		/* 1, not 0: a core_pattern with a pipe ignores 0, and runs its program on the host.
		 */
		{ RLIMIT_CORE, { 1, 1 } },
		{ RLIMIT_MEMLOCK, { 8 << 20, 8 << 20 } },
		{ RLIMIT_MSGQUEUE, { 800 << 10, 800 << 10 } },
		{ RLIMIT_STACK, { 8 << 20, RLIM_INFINITY } },
		/* Counted per user of the whole machine: a cell must not use up everybody's. */
		{ RLIMIT_SIGPENDING, { 1024, 1024 } },
		{ RLIMIT_RTPRIO, { 0, 0 } },
		{ RLIMIT_NICE, { 0, 0 } },
		/* A backstop for one process, should the supervisor be starved; rounded up. */
		{ RLIMIT_CPU, { plan->cpu_ms / 1000 + 2, plan->cpu_ms / 1000 + 2 } },
	};
	size_t count = sizeof(limits) / sizeof(limits[0]);
	struct vt_rlimit *copy = vt_arena_alloc(plan->arena, sizeof(limits));

	if (!copy)
		return vt_plan_nomem(err);
	memcpy(copy, limits, sizeof(limits));
	plan->rlimits = copy;
	plan->rlimit_count = plan->cpu_ms < 0 ? count - 1 : count;
	return 0;
}

/* ---- limits that need somebody to hold them ------------------------------------------------ */

static void decide_limits(struct making *m)
{
	static const struct vt_cgroup_site nowhere = { .version = VT_CGROUP_NONE };
	const struct vt_policy *policy = m->policy;
	struct vt_plan *plan = m->plan;
	/*
	 * The way into a cgroup of v2 is to be born in it, which takes the rights of the caller's;
	 * and whoever makes the processes of a pool has only those of the hull. Without a hull he
	 * has the caller's.
	 */
	const bool closed = m->request->pooled && !plan->bare &&
			    m->host->cgroup.version == VT_CGROUP_V2;
	const struct vt_cgroup_site *site = closed ? &nowhere : &m->host->cgroup;

	plan->wall_ms = policy->limits.wall_ms;
	plan->grace_ms = policy->limits.grace_ms;
	plan->queue_ms = policy->limits.queue_ms;
	plan->cpu_ms = policy->limits.cpu_ms;
	plan->cpus = m->host->cpus;
	plan->cpu_share = policy->limits.cpus;
	plan->pids = policy->limits.pids;
	plan->open_files = policy->limits.open_files;
	plan->memory_bytes = policy->limits.memory_mb << 20;
	plan->file_mb = policy->limits.file_mb;
	plan->own_proc = !plan->bare && m->host->own_proc.err == 0;
	plan->can_look = plan->own_proc || m->host->proc;
	plan->watched_memory_bytes = plan->can_look ? plan->memory_bytes : -1;
	plan->result_bytes = policy->limits.result_mb << 20;
	plan->stdout_bytes = policy->limits.stdout_kb << 10;
	plan->stderr_bytes = policy->limits.stderr_kb << 10;
	plan->stdout_capped = vt_policy_gave(policy, VT_FIELD_LIMITS_STDOUT_KB);
	plan->stderr_capped = vt_policy_gave(policy, VT_FIELD_LIMITS_STDERR_KB);
	if (*site->memory) {
		plan->cgroup.memory_bytes = plan->memory_bytes;
		plan->cgroup.has_network = policy->network != VT_NETWORK_NONE;
		plan->watched_memory_bytes = -1;
	}
	/* On v1 that would be one more hierarchy to move through, and RLIMIT_NPROC holds as well.
	 */
	if (*site->pids && site->version == VT_CGROUP_V2)
		plan->cgroup.pids = policy->limits.pids + 1;
	if (*site->cpu && policy->limits.cpus > 0)
		plan->cgroup.cpu_quota_us = (int64_t)(policy->limits.cpus * 100000);
	plan->cgroup.count_cpu = *site->cpuacct && plan->cpu_ms >= 0;
	if (plan->cgroup.memory_bytes || plan->cgroup.pids || plan->cgroup.cpu_quota_us ||
	    plan->cgroup.count_cpu)
		plan->cgroup_site = *site;
}

/* A limit that the caller does not have cannot be given on. Who asked for more is told. */
static int warn_lower(struct making *m, enum vt_field field, const char *option, int64_t most,
		      const char *unit, struct vt_err *err)
{
	if (!vt_policy_gave(m->policy, field))
		return 0;
	const char *text = vt_arena_printf(
		m->plan->arena,
		"%s: the caller's own hard limit (ulimit -H%s) is lower and holds: %lld%s",
		vt_field_info(field)->key, option, (long long)most, unit);

	if (!text)
		return vt_plan_nomem(err);
	vt_plan_warn(m->plan, text);
	return 0;
}

static int lower_limits(struct making *m, struct vt_err *err)
{
	const struct vt_host *host = m->host;
	struct vt_plan *plan = m->plan;
	int r = 0;

	if (host->most_open_files && host->most_open_files < plan->open_files) {
		plan->open_files = host->most_open_files;
		r = warn_lower(m, VT_FIELD_LIMITS_OPEN_FILES, "n", plan->open_files, "", err);
	}
	if (r == 0 && host->most_file_kb && host->most_file_kb < plan->file_mb << 10) {
		plan->lower_file_kb = host->most_file_kb;
		r = warn_lower(m, VT_FIELD_LIMITS_FILE_MB, "f", plan->lower_file_kb, " KB", err);
	}
	return r;
}

/*
 * What the kernel counts per user is a cell's own, then. Not where a grant's owner is mapped: a
 * mount of the hull maps to one id.
 */
static void decide_pool_ids(struct making *m)
{
	struct vt_plan *plan = m->plan;

	if (plan->bare || !plan->own_ids || !m->host->pool_ids || plan->id_count < VT_IDS_FOR_ALL ||
	    plan->idmap_count)
		return;
	plan->pool_id_base = VT_IDRANGE_POOL_BASE;
	plan->pool_id_count = VT_IDRANGE_POOL_COUNT;
}

/*
 * Only unix sockets may ever have been in it, of which the kernel forgets the last a moment after
 * their cell; none of the next cell's can be connected to them.
 */
static bool may_keep_networks(const struct making *m)
{
	const struct vt_plan *plan = m->plan;

	return plan->own_network && m->policy->network == VT_NETWORK_NONE && plan->filter_count &&
	       plan->landlock_scoped & LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET;
}

static int decide_pool(struct making *m, struct vt_err *err)
{
	struct vt_plan *plan = m->plan;

	decide_pool_ids(m);
	plan->keeps_networks = may_keep_networks(m);
	plan->bars_rights = m->host->bars_rights;
	plan->loads_ahead = vt_pooled_loads_ahead(plan, m->host);
	return plan->bare ? 0 : vt_pooled_divide(plan, err);
}

static char **copy_strings(struct vt_arena *arena, char *const *strings)
{
	size_t count = 0;

	while (strings[count])
		count++;
	char **copy = vt_arena_array(arena, count + 1, sizeof(char *));

	for (size_t i = 0; copy && i < count; i++) {
		copy[i] = vt_arena_dup(arena, strings[i]);
		if (!copy[i])
			return NULL;
	}
	return copy;
}

static int decide_occupant(struct making *m, struct vt_err *err)
{
	const struct vt_request *request = m->request;
	struct vt_plan *plan = m->plan;

	const char *cwd = m->policy->files.cwd;

	/* A bare cell's /tmp is its private folder, unless the host's was granted. */
	if (plan->bare && strcmp(cwd, "/tmp") == 0 && !vt_plan_shows(plan, cwd))
		cwd = plan->scratch;
	plan->cwd = vt_arena_dup(plan->arena, cwd);
	plan->envp = vt_environment_make(plan->arena, m->policy, request->environ, request->command,
					 plan->scratch);
	if (!plan->cwd || !plan->envp)
		return vt_plan_nomem(err);
	int r = vt_reach_check(plan, m->policy, m->host, err);

	if (r == 0)
		r = vt_sources_check(plan, m->policy, m->host, request, err);
	if (r < 0 || !request->command)
		return r;
	plan->exec_path = vt_arena_dup(plan->arena, request->command->path);
	plan->argv = copy_strings(plan->arena, request->argv);
	/* A relative name is relative to the caller's folder; Python, for one, finds its venv by
	 * it. */
	if (plan->exec_path && plan->argv && strchr(request->argv[0], '/'))
		plan->argv[0] = vt_arena_dup(plan->arena, plan->exec_path);
	return plan->exec_path && plan->argv ? 0 : vt_plan_nomem(err);
}

static int decide(struct making *m, struct vt_err *err)
{
	bool foreign = false;
	int r = decide_kind(m, err);

	if (r == 0)
		r = decide_ids(m, err);
	if (r == 0)
		r = vt_places_decide(m->plan, m->policy, m->host, m->request->command, &foreign,
				     err);
	if (r == 0)
		r = vt_protect_decide(m->plan, m->policy, m->host, m->request->environ, err);
	if (r < 0)
		return r;
	decide_limits(m);
	r = lower_limits(m, err);
	if (r == 0)
		r = decide_rlimits(m, err);
	/* Every socket file of the host is in a bare cell's reach. */
	if (r == 0)
		r = vt_sealing_decide(m->plan, m->policy, m->host, foreign || m->plan->bare, err);
	if (r == 0)
		r = decide_occupant(m, err);
	if (r == 0 && m->plan->pooled)
		r = decide_pool(m, err);
	if (r < 0)
		return r;
	return vt_grade_plan(m->plan, m->policy, m->host, err);
}

int vt_plan_make(const struct vt_policy *policy, const struct vt_host *host,
		 const struct vt_request *request, struct vt_plan **ret_plan, struct vt_err *err)
{
	struct vt_arena *arena = vt_arena_new();
	struct vt_plan *plan = arena ? vt_arena_alloc(arena, sizeof(*plan)) : NULL;
	struct making m = { .policy = policy, .host = host, .request = request, .plan = plan };

	if (!plan) {
		vt_arena_free(arena);
		return vt_plan_nomem(err);
	}
	plan->arena = arena;
	plan->rehearsal = request->rehearsal;
	plan->pooled = request->pooled;
	(void)vt_host_trouble(host); /* of whoever asked before */
	vt_host_look_anew(host);
	int r = decide(&m, err), trouble = vt_host_trouble(host);

	if (r == 0 && trouble)
		r = vt_fail(err, VT_STEP_PLAN, trouble, "look at the paths that the policy names");
	if (r < 0) {
		vt_arena_free(arena);
		return r;
	}
	*ret_plan = plan;
	return 0;
}

int vt_plan_foresee(struct vt_policy *policy, const struct vt_host *host,
		    const struct vt_request *request, struct vt_plan **ret_plan, struct vt_err *err)
{
	int r = vt_plan_make(policy, host, request, ret_plan, err);
	struct vt_err later;

	if (r == 0)
		return 0;
	*ret_plan = NULL;
	policy->require = VT_REQUIRE_BEST_EFFORT;
	/* The first reason is the one that counts. */
	(void)vt_plan_make(policy, host, request, ret_plan, &later);
	return r;
}

void vt_plan_free(struct vt_plan *plan)
{
	if (plan)
		vt_arena_free(plan->arena);
}

void vt_plan_warn(struct vt_plan *plan, const char *text)
{
	if (plan->warning_count < VT_WARNINGS_MAX)
		plan->warnings[plan->warning_count++] = text;
}
