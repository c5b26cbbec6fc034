/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions, in the order in which later ones need earlier ones: ids, the root, the network,
 * the limits, the seal; then each restriction is graded and what cannot hold is refused.
 */
#include "plan/plan.h"

#include <errno.h>
#include <limits.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "kernel/landlock.h"
#include "kernel/seccomp.h"
#include "plan/environment.h"
#include "plan/grade.h"
#include "plan/places.h"
#include "uapi/landlock.h"

/* The user that the occupant is inside; plan/places.c gives it a name. */
#define INNER_ID 1000

struct making {
	const struct vt_policy *policy;
	const struct vt_host *host;
	const struct vt_request *request;
	struct vt_plan *plan;
	bool foreign; /* folders that are neither the system's nor the cell's own are there */
};

static int out_of_memory(struct vt_err *err)
{
	return vt_fail(err, VT_STEP_PLAN, ENOMEM, "make the plan");
}

static int decide_ids(struct making *m, struct vt_err *err)
{
	struct vt_plan *plan = m->plan;
	const struct vt_host *host = m->host;

	plan->inner_uid = INNER_ID;
	plan->inner_gid = INNER_ID;
	plan->own_ids = host->privileged && host->id_count > 0;
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

/* ---- the seal ------------------------------------------------------------------------------ */

static int decide_landlock(struct making *m, struct vt_err *err)
{
	struct vt_plan *plan = m->plan;
	const struct vt_landlock_abi abi = vt_landlock_rights(m->host->landlock_abi);
	const uint64_t device = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
	struct vt_landlock_rule *rules = vt_arena_array(plan->arena, plan->build_count + 2,
							sizeof(*rules));

	if (!rules)
		return out_of_memory(err);
	plan->landlock_fs = abi.fs;
	plan->landlock_scoped = abi.scoped;
	/*
	 * The root holds nothing but what may be read. A host file reached by any other road, say a
	 * leaked descriptor, has no ancestor in it and is denied.
	 */
	rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){ "", vt_landlock_read() };
	/* Of /dev, which is the cell's own, the few devices are all that can be written. */
	rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){ "dev", device };
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];
		bool open = build->act == VT_ACT_SCRATCH ||
			    (build->act == VT_ACT_BIND && build->writable);

		if (open)
			rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){
				build->to,
				(vt_landlock_read() | vt_landlock_write()) & abi.fs,
			};
	}
	plan->landlock_rules = rules;
	return 0;
}

/* The named sockets, as what they are and not by name. */
static int list_sockets(struct vt_plan *plan, struct vt_err *err)
{
	struct vt_inode *sockets = vt_arena_array(plan->arena, plan->build_count + 1,
						  sizeof(*sockets));

	if (!sockets)
		return out_of_memory(err);
	for (size_t i = 0; i < plan->build_count; i++)
		if (plan->builds[i].socket)
			sockets[plan->broker.socket_count++] = (struct vt_inode){
				plan->builds[i].dev, plan->builds[i].ino
			};
	plan->broker.sockets = sockets;
	return 0;
}

/*
 * AF_UNIX where it cannot be had as it is: the supervisor connects, and looks whom it connects to.
 * On the host's network only if sockets are named, since every connect() pays for it there. Without
 * that, there is no AF_UNIX.
 */
static int decide_broker(struct making *m, unsigned *sockets, struct vt_err *err)
{
	const struct vt_policy *policy = m->policy;
	const struct vt_fact *notify = &m->host->notify;
	bool named = policy->files.sockets.count > 0;

	if (named && notify->err)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: files.sockets: other sockets of the host cannot be kept apart "
			"from these here: %s: %s; grant no folders beside them, or run vitro where "
			"that works",
			notify->tried, strerror(notify->err));
	if (notify->err || (!named && policy->network == VT_NETWORK_HOST))
		return 0;
	*sockets |= VT_SOCKETS_BROKERED;
	m->plan->broker.on = true;
	m->plan->broker.inet = *sockets & VT_SOCKETS_INET;
	m->plan->broker.abstract = m->plan->own_network;
	return list_sockets(m->plan, err);
}

/*
 * Which socket families exist inside. A unix socket in a granted folder could be connected to
 * though the folder is for reading only; on the host's network so could abstract ones, where
 * Landlock cannot scope them.
 */
static int decide_sockets(struct making *m, struct vt_err *err)
{
	const struct vt_policy *policy = m->policy;
	bool abstract = policy->network == VT_NETWORK_HOST &&
			!(m->plan->landlock_scoped & LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET);
	unsigned sockets = policy->network == VT_NETWORK_NONE ? 0 : VT_SOCKETS_INET;
	int r = 0;

	if (!m->foreign && !abstract)
		sockets |= VT_SOCKETS_UNIX;
	else
		r = decide_broker(m, &sockets, err);
	m->plan->unix_sockets = sockets & VT_SOCKETS_UNIX;
	m->plan->filters[m->plan->filter_count++] = vt_seccomp_builtin(
		policy->syscalls == VT_SYSCALLS_STRICT ? VT_SECCOMP_STRICT : VT_SECCOMP_DEFAULT,
		sockets);
	return r;
}

static void decide_namespaces(struct making *m)
{
	m->plan->namespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC |
			      CLONE_NEWUTS;
	m->plan->own_network = m->policy->network != VT_NETWORK_HOST;
	m->plan->loopback_up = m->policy->network == VT_NETWORK_LOOPBACK;
}

static int decide_rlimits(struct making *m, struct vt_err *err)
{
	const struct vt_policy *policy = m->policy;
	struct vt_plan *plan = m->plan;
	const struct vt_rlimit limits[] = {
		/* Init counts too: it has the same user in the same user namespace. */
		{ RLIMIT_NPROC, { policy->limits.pids + 1, policy->limits.pids + 1 } },
		{ RLIMIT_NOFILE, { policy->limits.open_files, policy->limits.open_files } },
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
		return out_of_memory(err);
	memcpy(copy, limits, sizeof(limits));
	plan->rlimits = copy;
	plan->rlimit_count = plan->cpu_ms < 0 ? count - 1 : count;
	return 0;
}

/* ---- limits that need somebody to hold them ------------------------------------------------ */

static void decide_limits(struct making *m)
{
	const struct vt_policy *policy = m->policy;
	const struct vt_cgroup_site *site = &m->host->cgroup;
	struct vt_plan *plan = m->plan;

	plan->wall_ms = policy->limits.wall_ms;
	plan->grace_ms = policy->limits.grace_ms;
	plan->cpu_ms = policy->limits.cpu_ms;
	plan->cpus = m->host->cpus;
	plan->cpu_share = policy->limits.cpus;
	plan->pids = policy->limits.pids;
	plan->open_files = policy->limits.open_files;
	plan->memory_bytes = policy->limits.memory_mb << 20;
	plan->file_mb = policy->limits.file_mb;
	plan->watched_memory_bytes = plan->memory_bytes;
	plan->stdout_bytes = policy->limits.stdout_kb << 10;
	plan->stderr_bytes = policy->limits.stderr_kb << 10;
	plan->stdout_capped = vt_policy_gave(policy, VT_FIELD_LIMITS_STDOUT_KB);
	plan->stderr_capped = vt_policy_gave(policy, VT_FIELD_LIMITS_STDERR_KB);
	if (*site->memory) {
		plan->cgroup.memory_bytes = plan->memory_bytes;
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

	plan->cwd = vt_arena_dup(plan->arena, m->policy->files.cwd);
	plan->envp = vt_environment_make(plan->arena, m->policy, request->environ,
					 request->command);
	if (!plan->cwd || !plan->envp)
		return out_of_memory(err);
	struct vt_path seen;

	if (!vt_plan_shows(plan, plan->cwd) && m->host->look(m->host, plan->cwd, &seen) < 0)
		return vt_fail(err, VT_STEP_PLAN, ENOENT,
			       "refused: the working directory '%s' does not exist", plan->cwd);
	if (!vt_plan_shows(plan, plan->cwd))
		return vt_fail(
			err, VT_STEP_PLAN, ENOENT,
			"refused: the working directory '%s' is not there inside; add --read %s",
			plan->cwd, plan->cwd);
	if (!request->command)
		return 0;
	plan->exec_path = vt_arena_dup(plan->arena, request->command->path);
	plan->argv = copy_strings(plan->arena, request->argv);
	/* A relative name is relative to the caller's folder; Python, for one, finds its venv by
	 * it. */
	if (plan->exec_path && plan->argv && strchr(request->argv[0], '/'))
		plan->argv[0] = vt_arena_dup(plan->arena, plan->exec_path);
	return plan->exec_path && plan->argv ? 0 : out_of_memory(err);
}

static int decide(struct making *m, struct vt_err *err)
{
	int r = decide_ids(m, err);

	if (r == 0)
		r = vt_places_decide(m->plan, m->policy, m->host, m->request->command, &m->foreign,
				     err);
	if (r < 0)
		return r;
	decide_namespaces(m);
	decide_limits(m);
	r = decide_landlock(m, err);
	if (r == 0)
		r = decide_rlimits(m, err);
	if (r == 0)
		r = decide_sockets(m, err);
	if (r == 0)
		r = decide_occupant(m, err);
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
		return out_of_memory(err);
	}
	plan->arena = arena;
	int r = decide(&m, err);

	if (r < 0) {
		vt_arena_free(arena);
		return r;
	}
	*ret_plan = plan;
	return 0;
}

void vt_plan_free(struct vt_plan *plan)
{
	if (plan)
		vt_arena_free(plan->arena);
}

bool vt_plan_shows(const struct vt_plan *plan, const char *path)
{
	while (*path == '/')
		path++;
	if (!*path)
		return true;
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		bool below = build->act == VT_ACT_BIND || build->act == VT_ACT_LINK;

		if (below ? vt_path_lies_in(path, build->to) : strcmp(path, build->to) == 0)
			return true;
	}
	return false;
}
