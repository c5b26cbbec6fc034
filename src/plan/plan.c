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
#include "kernel/landlock.h"
#include "kernel/seccomp.h"
#include "kernel/seccomp_oci.h"
#include "plan/environment.h"
#include "plan/fail.h"
#include "plan/grade.h"
#include "plan/places.h"
#include "plan/pooled.h"
#include "plan/reach.h"
#include "plan/sources.h"
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

/* ---- the seal ------------------------------------------------------------------------------ */

/*
 * In a bare cell the rules are all that there is: one for each path that shows, and for the private
 * folder. Without the right to truncate, which ABI 3 brought, files could be emptied that cannot be
 * opened: then there is no ruleset at all, and grade.c says that nothing holds the files.
 */
static void decide_bare_landlock(struct making *m, const struct vt_landlock_abi *abi,
				 struct vt_landlock_rule *rules)
{
	const uint64_t device = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
	const uint64_t writing = (vt_landlock_read() | vt_landlock_write()) & abi->fs;
	struct vt_plan *plan = m->plan;

	if (!(abi->fs & LANDLOCK_ACCESS_FS_TRUNCATE)) {
		plan->landlock_fs = 0;
		return;
	}
	if (m->policy->network == VT_NETWORK_NONE)
		plan->landlock_net = abi->net;
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){
			.to = build->from,
			.rights = build->device     ? device
				  : build->writable ? writing
						    : vt_landlock_read(),
			.dev = build->dev,
			.ino = build->ino,
		};
	}
	rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){ .to = plan->scratch,
									.rights = writing,
									.scratch = true };
}

static int decide_landlock(struct making *m, struct vt_err *err)
{
	struct vt_plan *plan = m->plan;
	const struct vt_landlock_abi abi = vt_landlock_rights(m->host->landlock_abi);
	const uint64_t device = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
	struct vt_landlock_rule *rules = vt_arena_array(plan->arena, plan->build_count + 2,
							sizeof(*rules));

	if (!rules)
		return vt_plan_nomem(err);
	plan->landlock_rules = rules;
	plan->landlock_fs = abi.fs;
	plan->landlock_scoped = abi.scoped;
	if (plan->bare) {
		decide_bare_landlock(m, &abi, rules);
		return 0;
	}
	/*
	 * The root holds nothing but what may be read. A host file reached by any other road, say a
	 * leaked descriptor, has no ancestor in it and is denied.
	 */
	rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){
		.to = "", .rights = vt_landlock_read()
	};
	/* Of /dev, which is the cell's own, the few devices are all that can be written. */
	rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){ .to = "dev",
									.rights = device };
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];
		bool open = build->act == VT_ACT_SCRATCH ||
			    (build->act == VT_ACT_BIND && build->writable);

		if (open)
			rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){
				.to = build->to,
				.rights = (vt_landlock_read() | vt_landlock_write()) & abi.fs,
			};
	}
	return 0;
}

static void add_filter(struct making *m, const struct sock_fprog *filter)
{
	m->plan->filters[m->plan->filter_count++] =
		filter; /* VT_FILTERS_MAX is the most there are */
}

/*
 * A user of its own owns nothing but what it made itself. The caller's own changes modes and times
 * through the supervisor, who has the same user and no more power; it comes first for its listener.
 */
static void add_owner_filter(struct making *m)
{
	struct vt_plan *plan = m->plan;

	if (plan->own_ids)
		return;
	plan->broker.on = plan->broker.modes = m->host->modes.err == 0;
	add_filter(m, vt_seccomp_addon(VT_SECCOMP_OWNER,
				       plan->broker.modes ? VT_SOCKETS_BROKERED : 0));
}

static void add_bare_filters(struct making *m, unsigned sockets)
{
	add_owner_filter(m);
	add_filter(m, vt_seccomp_addon(VT_SECCOMP_BARE, sockets));
	/*
	 * Without a domain nobody bounds whom a signal reaches: others of the caller's, where the
	 * cell's user is the caller or an id that others may have too; and init, which has the
	 * cell's own id.
	 */
	if (m->plan->sweep != VT_SWEEP_DOMAIN)
		add_filter(m, vt_seccomp_addon(VT_SECCOMP_MUTE, sockets));
}

/*
 * A pool's call comes by a socket that was made outside. Where the cell has a network of its own,
 * and may ask about it, that socket must not answer for the host's.
 */
static void add_called_filter(struct making *m, unsigned sockets)
{
	if (m->plan->pooled && m->plan->own_network && sockets & VT_SOCKETS_INET)
		add_filter(m, vt_seccomp_addon(VT_SECCOMP_CALLED, sockets));
}

/*
 * The user's own profile comes last of all filters: it may deny the call that installs one. What
 * must hold whatever it says comes before.
 */
static int decide_profile(struct making *m, unsigned sockets, struct vt_err *err)
{
	struct vt_plan *plan = m->plan;
	struct sock_fprog *filter = vt_arena_alloc(plan->arena, sizeof(*filter));
	int r;

	if (!filter)
		return vt_plan_nomem(err);
	r = vt_oci_compile(m->policy->profile, m->host->kernel_major, m->host->kernel_minor,
			   plan->arena, filter, err);
	if (r < 0)
		return r;
	add_filter(m, vt_seccomp_addon(VT_SECCOMP_ALWAYS, sockets));
	add_called_filter(m, sockets);
	add_filter(m, filter);
	return 0;
}

/* The named sockets, as what they are and not by name. */
static int list_sockets(struct vt_plan *plan, struct vt_err *err)
{
	struct vt_inode *sockets = vt_arena_array(plan->arena, plan->build_count + 1,
						  sizeof(*sockets));

	if (!sockets)
		return vt_plan_nomem(err);
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
	/* What the supervisor answers is asked by a filter. */
	const struct vt_fact *notify = m->host->seccomp.err ? &m->host->seccomp : &m->host->notify;
	bool named = policy->files.sockets.count > 0;

	if (named && m->plan->bare)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: files.sockets: a cell has no unix sockets here, for want "
			       "of namespaces (%s: %s); `vitro doctor` says what to do",
			       m->host->userns.tried, strerror(m->host->userns.err));
	if (named && notify->err)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: files.sockets: other sockets of the host cannot be kept apart "
			"from these here: %s: %s; run vitro where that works",
			notify->tried, strerror(notify->err));
	if (m->plan->bare || notify->err || (!named && policy->network == VT_NETWORK_HOST))
		return 0;
	*sockets |= VT_SOCKETS_BROKERED;
	m->plan->broker.on = true;
	m->plan->broker.inet = *sockets & VT_SOCKETS_INET;
	m->plan->broker.abstract = m->plan->own_network;
	return list_sockets(m->plan, err);
}

/*
 * Which socket families exist inside. A unix socket in a folder of the host's, be it granted or of
 * the system's runtime, could be connected to though the folder is for reading only; on the host's
 * network so could abstract ones, where Landlock cannot scope them.
 */
static int decide_sockets(struct making *m, struct vt_err *err)
{
	const struct vt_policy *policy = m->policy;
	bool abstract = policy->network == VT_NETWORK_HOST &&
			!(m->plan->landlock_scoped & LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET);
	unsigned sockets = policy->network == VT_NETWORK_NONE ? 0 : VT_SOCKETS_INET;
	int r = 0;

	/* On the host's network a broker would cost every connection. */
	if (policy->network == VT_NETWORK_HOST && !m->foreign && !abstract)
		sockets |= VT_SOCKETS_UNIX;
	else
		r = decide_broker(m, &sockets, err);
	if (r < 0 || m->host->seccomp.err)
		return r;
	m->plan->unix_sockets = sockets & VT_SOCKETS_UNIX;
	if (m->plan->bare)
		add_bare_filters(m, sockets);
	if (policy->syscalls == VT_SYSCALLS_PROFILE)
		return decide_profile(m, sockets, err);
	add_filter(m,
		   vt_seccomp_builtin(policy->syscalls == VT_SYSCALLS_STRICT ? VT_SECCOMP_STRICT
									     : VT_SECCOMP_DEFAULT,
				      sockets));
	add_called_filter(m, sockets);
	return r;
}

/* What ends a cell that has no pid namespace, the best that can be had. */
static int decide_sweep(struct making *m, struct vt_err *err)
{
	const struct vt_host *host = m->host;
	struct vt_plan *plan = m->plan;

	plan->sweep = VT_SWEEP_NAMESPACE;
	if (!plan->bare)
		return 0;
	plan->sweep = VT_SWEEP_TREE;
	if (vt_landlock_rights(host->landlock_abi).scoped & LANDLOCK_SCOPE_SIGNAL)
		plan->sweep = VT_SWEEP_DOMAIN;
	else if (plan->own_ids && plan->id_count >= VT_IDS_FOR_ALL)
		plan->sweep = VT_SWEEP_USER;
	if (plan->sweep == VT_SWEEP_TREE && !host->proc)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: nobody could end what a call leaves behind: there are no "
			       "namespaces here (%s: %s), no Landlock that scopes signals, and no "
			       "/proc to look for it; `vitro doctor` says what to do",
			       host->userns.tried, strerror(host->userns.err));
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
	m->foreign = true; /* every socket file of the host is in reach */
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
		r = vt_sources_check(plan, m->policy, m->host, err);
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
	if (r < 0)
		return r;
	m->foreign |= foreign;
	r = decide_sweep(m, err);
	if (r < 0)
		return r;
	decide_limits(m);
	r = lower_limits(m, err);
	if (r == 0)
		r = decide_landlock(m, err);
	if (r == 0)
		r = decide_rlimits(m, err);
	if (r == 0)
		r = decide_sockets(m, err);
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
