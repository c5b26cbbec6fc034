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
#include "host/runtime.h"
#include "kernel/landlock.h"
#include "kernel/seccomp.h"
#include "plan/environment.h"
#include "plan/grade.h"
#include "plan/root.h"
#include "uapi/landlock.h"

/* The user that the occupant is inside; /etc/passwd there knows it by name. */
#define INNER_ID 1000
#define PASSWD   "user:x:1000:1000::/tmp:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
#define GROUP    "user:x:1000:\nnogroup:x:65534:\n"
#define HOSTS    "127.0.0.1 localhost vitro\n::1 localhost vitro\n"
#define NSSWITCH "passwd: files\ngroup: files\nhosts: files dns\n"

/* Tmpfs pages are bound by size; so are its inodes, for each of which the kernel keeps about 1 kB.
 */
#define BYTES_PER_INODE   4096
#define INODES_FOR_BUILDS 1024

struct making {
	const struct vt_policy *policy;
	const struct vt_host *host;
	const struct vt_request *request;
	struct vt_plan *plan;
	struct vt_root *root;
	bool granted; /* the user granted host folders */
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

/* ---- the root ------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
	const struct vt_entry *one = a, *other = b;
	int order = strcmp(one->to, other->to);

	/* Of two grants of one place the one for writing comes first: it covers the other. */
	return order ? order : other->writable - one->writable;
}

/* The cell's own places: the host's, wherever they are put, would undo what they are for. */
static int check_grant(const struct vt_entry *entry, struct vt_err *err)
{
	static const char *const own[] = { "/proc", "/dev" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (vt_path_lies_in(entry->to, own[i]) || vt_path_lies_in(entry->from, own[i]))
			return vt_fail(err, VT_STEP_PLAN, EPERM,
				       "refused: %s: '%s': the cell has a %s of its own",
				       entry->origin, entry->from, own[i]);
	}
	if (strcmp(entry->from, "/") != 0)
		return 0;
	if (entry->writable || strcmp(entry->to, "/") != 0)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: %s: '/' as a whole is given neither for writing nor at another "
			"place: name the folders",
			entry->origin);
	return 0;
}

/* Adds one entry of the host's root for a grant of "/". */
struct spreading {
	struct making *m;
	const char *origin;
	int result;
	struct vt_err *err;
};

static void spread_one(void *arg, const char *name)
{
	struct spreading *s = arg;
	static const char *const own[] = { "proc", "dev", "tmp" };
	const char *path = vt_arena_printf(s->m->plan->arena, "/%s", name);

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strcmp(name, own[i]) == 0)
			return;
	if (s->result < 0)
		return;
	const struct vt_entry entry = {
		.from = path, .to = path, .origin = s->origin, .optional = true
	};
	struct vt_path seen;

	if (!path) {
		s->result = out_of_memory(s->err);
		return;
	}
	/* What is neither a file nor a folder there was not asked for by name: leave it out. */
	if (s->m->host->look(s->m->host, path, &seen) < 0 ||
	    (!S_ISDIR(seen.mode) && !S_ISREG(seen.mode)))
		return;
	s->result = vt_root_link_or_mount(s->m->root, &entry, s->err);
}

static int spread_root(struct making *m, const struct vt_entry *entry, struct vt_err *err)
{
	struct spreading s = { .m = m, .origin = entry->origin, .err = err };
	int r = m->host->list ? m->host->list(m->host, "/", spread_one, &s) : -ENOTSUP;

	if (r < 0)
		return vt_fail(err, VT_STEP_PLAN, -r, "%s: list '/': %s", entry->origin,
			       strerror(-r));
	return s.result;
}

/*
 * Ids are mapped for workspaces, never for the system's own folders: /etc/shadow would open up.
 * Below those they are where the user wants to write.
 */
static bool is_workspace(const char *path, bool writable)
{
	static const char *const system[] = { "/", "/boot", "/etc", "/run", "/sys", "/var" };

	for (size_t i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		if (strcmp(path, system[i]) == 0)
			return false;
	if (vt_runtime_has(path))
		return false;
	return writable || !(vt_path_lies_in(path, "/etc") || vt_runtime_covers(path));
}

/*
 * What a path of the user's leads to: rules are about that, not about the name. Whoever may write
 * to a granted folder can put a link there.
 */
static int resolve(const struct making *m, const char *path, const char *origin,
		   const char **ret_real, struct vt_err *err)
{
	char real[PATH_MAX];
	int r = m->host->resolve(m->host, path, real, sizeof(real));

	if (r < 0)
		return vt_fail(err, VT_STEP_PLAN, -r, "%s: '%s': %s", origin, path, strerror(-r));
	*ret_real = vt_arena_dup(m->plan->arena, real);
	return *ret_real ? 0 : out_of_memory(err);
}

static int add_grants(struct making *m, struct vt_err *err)
{
	const struct vt_grants *lists[] = { &m->policy->files.read, &m->policy->files.write };
	size_t count = lists[0]->count + lists[1]->count, n = 0;
	struct vt_entry *entries = vt_arena_array(m->plan->arena, count + 1, sizeof(*entries));

	if (!entries)
		return out_of_memory(err);
	for (size_t which = 0; which < 2; which++) {
		for (size_t i = 0; i < lists[which]->count; i++) {
			const struct vt_grant *grant = &lists[which]->items[i];
			const char *real;
			int r = resolve(m, grant->from, grant->origin, &real, err);

			if (r < 0)
				return r;
			entries[n++] = (struct vt_entry){
				.from = real,
				.to = grant->to,
				.origin = grant->origin,
				.writable = which == 1,
				.granted = true,
				.mapped = is_workspace(real, which == 1),
			};
		}
	}
	qsort(entries, n, sizeof(*entries), by_place); /* outer folders first */
	m->granted = n > 0;
	for (size_t i = 0; i < n; i++) {
		int r = check_grant(&entries[i], err);

		if (r == 0 && strcmp(entries[i].to, "/") == 0)
			r = spread_root(m, &entries[i], err);
		else if (r == 0)
			r = vt_root_mount(m->root, &entries[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_runtime(struct making *m, struct vt_err *err)
{
	const struct vt_command *command = m->request->command;
	struct vt_runtime_path *paths;
	size_t count;
	int r = vt_runtime_expand(m->plan->arena, m->host, &paths, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct vt_entry entry = {
			.from = paths[i].path,
			.to = paths[i].path,
			.origin = "the system's runtime",
			.optional = paths[i].optional,
		};

		r = vt_root_link_or_mount(m->root, &entry, err);
	}
	m->granted |= command && command->prefix_count;
	for (size_t i = 0; r == 0 && command && i < command->prefix_count; i++) {
		struct vt_entry entry = {
			.from = command->prefixes[i],
			.to = command->prefixes[i],
			.origin = "the command's own prefix",
		};

		/* It is found by following what somebody else may have written: judge where it
		 * leads. */
		r = resolve(m, command->prefixes[i], entry.origin, &entry.from, err);
		if (r == 0)
			r = check_grant(&entry, err);
		if (r == 0)
			r = vt_root_mount(m->root, &entry, err);
	}
	return r;
}

static const struct own {
	enum vt_act act;
	const char *to, *from;
	mode_t mode;
} own_places[] = {
	{ VT_ACT_SCRATCH, "/tmp", NULL, 01777 },
	{ VT_ACT_DIR, "/dev", NULL, 0755 },
	{ VT_ACT_SCRATCH, "/dev/shm", NULL, 01777 },
	{ VT_ACT_LINK, "/dev/fd", "/proc/self/fd", 0777 },
	{ VT_ACT_LINK, "/dev/stdin", "/proc/self/fd/0", 0777 },
	{ VT_ACT_LINK, "/dev/stdout", "/proc/self/fd/1", 0777 },
	{ VT_ACT_LINK, "/dev/stderr", "/proc/self/fd/2", 0777 },
	{ VT_ACT_DIR, "/mnt", NULL, 0755 },
	{ VT_ACT_DIR, "/run", NULL, 0755 },
	{ VT_ACT_DIR, "/var", NULL, 0755 },
	{ VT_ACT_LINK, "/var/tmp", "../tmp", 0777 },
	{ VT_ACT_FILE, "/etc/passwd", PASSWD, 0444 },
	{ VT_ACT_FILE, "/etc/group", GROUP, 0444 },
	{ VT_ACT_FILE, "/etc/nsswitch.conf", NSSWITCH, 0444 },
	{ VT_ACT_PROC, "/proc", NULL, 0555 },
	/* What tells of the machine and of other people's doings on it, to any user. */
	{ VT_ACT_MASK, "/proc/acpi", "mnt", 0 },
	{ VT_ACT_MASK, "/proc/asound", "mnt", 0 },
	{ VT_ACT_MASK, "/proc/cmdline", "dev/null", 0 },
	{ VT_ACT_MASK, "/proc/interrupts", "dev/null", 0 },
	{ VT_ACT_MASK, "/proc/iomem", "dev/null", 0 },
	{ VT_ACT_MASK, "/proc/kallsyms", "dev/null", 0 },
	{ VT_ACT_MASK, "/proc/kcore", "dev/null", 0 },
	{ VT_ACT_MASK, "/proc/keys", "dev/null", 0 },
	{ VT_ACT_MASK, "/proc/latency_stats", "dev/null", 0 },
	{ VT_ACT_MASK, "/proc/modules", "dev/null", 0 },
	{ VT_ACT_MASK, "/proc/scsi", "mnt", 0 },
	{ VT_ACT_MASK, "/proc/timer_list", "dev/null", 0 },
};

static const char *const devices[] = { "/dev/full", "/dev/null", "/dev/random", "/dev/urandom",
				       "/dev/zero" };

static int add_own(struct making *m, struct vt_err *err)
{
	static const char *const networked[] = { "/etc/protocols", "/etc/services",
						 "/etc/resolv.conf", "/etc/hosts" };
	enum { LOOPBACK = 2, HOST = 4 }; /* how many of them */
	size_t count = m->policy->network == VT_NETWORK_NONE       ? 0
		       : m->policy->network == VT_NETWORK_LOOPBACK ? LOOPBACK
								   : HOST;
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(own_places) / sizeof(own_places[0]); i++) {
		const struct own *own = &own_places[i];

		r = vt_root_own(m->root, own->act, own->to, own->from, own->mode, err);
	}
	for (size_t i = 0; r == 0 && i < sizeof(devices) / sizeof(devices[0]); i++) {
		const struct vt_entry entry = {
			.from = devices[i], .to = devices[i], .origin = "devices", .device = true
		};

		r = vt_root_mount(m->root, &entry, err);
	}
	if (r == 0 && m->policy->network != VT_NETWORK_HOST)
		r = vt_root_own(m->root, VT_ACT_FILE, "/etc/hosts", HOSTS, 0444, err);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct vt_entry entry = { .from = networked[i],
						.to = networked[i],
						.origin = "network",
						.optional = true };

		r = vt_root_mount(m->root, &entry, err);
	}
	return r;
}

/*
 * A deny of what is not there anyway holds by itself. One that lies in what is, or around it,
 * cannot be held against renames yet, and is refused rather than weakened.
 */
static int check_denies(struct making *m, struct vt_err *err)
{
	const struct vt_grants *deny = &m->policy->files.deny;

	for (size_t i = 0; i < deny->count; i++) {
		const char *real, *shown;
		int r = resolve(m, deny->items[i].from, deny->items[i].origin, &real, err);

		if (r < 0)
			return r;
		shown = vt_root_shows(m->root, real);
		if (shown)
			return vt_fail(
				err, VT_STEP_PLAN, EPERM,
				"refused: %s: '%s' cannot be kept apart from '%s', which is there "
				"inside; grant the folders beside it instead",
				deny->items[i].origin, deny->items[i].from, shown);
	}
	return 0;
}

static int decide_root(struct making *m, struct vt_err *err)
{
	struct vt_plan *plan = m->plan;

	m->root = vt_root_new(plan->arena, m->host);
	if (!m->root)
		return out_of_memory(err);
	plan->scratch_bytes = m->policy->limits.tmp_mb << 20;
	plan->scratch_inodes = plan->scratch_bytes / BYTES_PER_INODE + INODES_FOR_BUILDS;
	int r = add_grants(m, err);

	if (r == 0)
		r = add_runtime(m, err);
	if (r == 0)
		r = add_own(m, err);
	if (r == 0)
		r = check_denies(m, err);
	return r < 0 ? r : vt_root_finish(m->root, plan, err);
}

/* ---- the seal ------------------------------------------------------------------------------ */

static int decide_landlock(struct making *m, struct vt_err *err)
{
	struct vt_plan *plan = m->plan;
	const struct vt_landlock_abi abi = vt_landlock_rights(m->host->landlock_abi);
	const uint64_t device = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
	struct vt_landlock_rule *rules = vt_arena_array(plan->arena, plan->build_count + 1,
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
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];
		bool open = build->act == VT_ACT_SCRATCH ||
			    (build->act == VT_ACT_BIND && build->writable);

		if (open || (build->act == VT_ACT_BIND && build->device))
			rules[plan->landlock_rule_count++] = (struct vt_landlock_rule){
				build->to,
				(open ? vt_landlock_read() | vt_landlock_write() : device) & abi.fs,
			};
	}
	plan->landlock_rules = rules;
	return 0;
}

/*
 * Which socket families exist inside. A unix socket in a granted folder could be connected to
 * though the folder is for reading only; on the host's network so could abstract ones, where
 * Landlock cannot scope them.
 */
static void decide_sockets(struct making *m)
{
	const struct vt_policy *policy = m->policy;
	bool abstract = policy->network == VT_NETWORK_HOST &&
			!(m->plan->landlock_scoped & LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET);
	unsigned sockets = policy->network == VT_NETWORK_NONE ? 0 : VT_SOCKETS_INET;

	if (!m->granted && !abstract)
		sockets |= VT_SOCKETS_UNIX;
	m->plan->unix_sockets = sockets & VT_SOCKETS_UNIX;
	m->plan->seccomp = vt_seccomp_builtin(
		policy->syscalls == VT_SYSCALLS_STRICT ? VT_SECCOMP_STRICT : VT_SECCOMP_DEFAULT,
		sockets);
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
		r = decide_root(m, err);
	if (r < 0)
		return r;
	decide_namespaces(m);
	decide_limits(m);
	r = decide_landlock(m, err);
	if (r == 0)
		r = decide_rlimits(m, err);
	if (r < 0)
		return r;
	decide_sockets(m);
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
