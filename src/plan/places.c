/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/places.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "host/runtime.h"
#include "plan/deny.h"
#include "plan/fail.h"
#include "plan/pipes.h"
#include "plan/root.h"
#include "plan/way.h"

/* The user inside, by name. */
#define PASSWD   "user:x:1000:1000::/tmp:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
#define GROUP    "user:x:1000:\nnogroup:x:65534:\n"
#define HOSTS    "127.0.0.1 localhost vitro\n::1 localhost vitro\n"
#define NSSWITCH "passwd: files\ngroup: files\nhosts: files dns\n"

/* Tmpfs pages are bound by size; so are its inodes, for each of which the kernel keeps about 1 kB.
 */
#define BYTES_PER_INODE   4096
#define INODES_FOR_BUILDS 1024

struct placing {
	const struct vt_policy *policy;
	const struct vt_host *host;
	const struct vt_command *command; /* may be NULL */
	struct vt_plan *plan;
	struct vt_root *root;
	const struct vt_entry *entries; /* the grants of files and folders, once they are known */
	size_t entry_count;
	size_t link_notes;
	bool foreign;
};

static int by_place(const void *a, const void *b)
{
	const struct vt_entry *one = a, *other = b;
	int order = strcmp(one->to, other->to);

	/* Of two grants of one place the one for writing comes first: it covers the other. */
	return order ? order : other->writable - one->writable;
}

const char *vt_plan_own_place(const char *path)
{
	static const char *const own[] = { "/proc", "/dev" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (vt_path_lies_in(path, own[i]))
			return own[i];
	return NULL;
}

/* The host's, wherever they are put, would undo what the cell's own places are for. */
static int check_grant(const struct vt_entry *entry, struct vt_err *err)
{
	const char *own = vt_plan_own_place(entry->to);

	if (!own)
		own = vt_plan_own_place(entry->from);
	if (own)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: %s: '%s': the cell has a %s of its own", entry->origin,
			       entry->from, own);
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
	struct placing *m;
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
		s->result = vt_plan_nomem(s->err);
		return;
	}
	/* What is neither a file nor a folder there was not asked for by name: leave it out. */
	if (s->m->host->look(s->m->host, path, &seen) < 0 ||
	    (!S_ISDIR(seen.mode) && !S_ISREG(seen.mode)))
		return;
	s->result = vt_root_link_or_mount(s->m->root, &entry, s->err);
}

static int spread_root(struct placing *m, const struct vt_entry *entry, struct vt_err *err)
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

static int find_way(struct placing *m, const char *path, struct vt_entry *entry, struct vt_err *err)
{
	struct vt_way *way = vt_arena_alloc(m->plan->arena, sizeof(*way));
	int r = way ? vt_way_find(m->host, m->plan->arena, path, entry->origin, way, err)
		    : vt_plan_nomem(err);

	if (r < 0)
		return r;
	entry->way = way;
	entry->from = way->real;
	return 0;
}

static bool has_writable(const struct placing *m)
{
	for (size_t i = 0; i < m->entry_count; i++)
		if (m->entries[i].writable)
			return true;
	return false;
}

static const struct vt_entry *writable_around(const struct placing *m, const char *path)
{
	for (size_t i = 0; i < m->entry_count; i++)
		if (m->entries[i].writable && vt_path_lies_in(path, m->entries[i].from))
			return &m->entries[i];
	return NULL;
}

struct opening {
	const struct placing *m;
	const struct vt_entry *found; /* the write grant that a link lies in */
};

static void find_opening(void *arg, const char *alias)
{
	struct opening *open = arg;

	if (!open->found)
		open->found = writable_around(open->m, alias);
}

static int check_link(const struct placing *m, const struct vt_entry *entry, const char *link,
		      struct vt_err *err)
{
	struct opening open = { .m = m };
	int r = 0;

	find_opening(&open, link);
	if (!open.found && m->host->aliases && has_writable(m))
		r = m->host->aliases(m->host, link, find_opening, &open);
	if (r < 0)
		return vt_plan_fail_aliases(entry->origin, link, r, err);
	if (open.found)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: %s: '%s' leads through the symbolic link '%s', which lies "
			       "in '%s', where cells may write and choose what it leads to; name "
			       "'%s' itself if that is meant",
			       entry->origin, entry->way->path, link, open.found->from,
			       entry->from);
	return 0;
}

/* An earlier cell may have made the link, and the caller thinks of another folder. */
static int note_link(struct placing *m, const struct vt_entry *entry, const char *planted,
		     struct vt_err *err)
{
	enum { ENOUGH = VT_WARNINGS_MAX / 2 };
	struct vt_plan *plan = m->plan;
	bool last = strcmp(planted, entry->way->path) == 0;

	if (m->link_notes++ >= ENOUGH)
		return 0;
	const char *text = vt_arena_printf(plan->arena, "%s: '%s' %s%s%sleads to '%s'",
					   entry->origin, entry->way->path,
					   last ? "is a link and " : "passes the link '",
					   last ? "" : planted, last ? "" : "' and ", entry->from);

	if (!text)
		return vt_plan_nomem(err);
	vt_plan_warn(plan, text);
	plan->links_note = plan->links_note
				   ? vt_arena_printf(plan->arena, "%s; %s", plan->links_note, text)
				   : text;
	return plan->links_note ? 0 : vt_plan_nomem(err);
}

/* Names are followed where they lead; but never by the word of this call's own cell. */
static int check_links(struct placing *m, const struct vt_entry *entry, struct vt_err *err)
{
	const struct vt_link *links = entry->way->links;
	const char *planted = NULL;

	for (size_t i = 0; i < entry->way->link_count; i++) {
		int r = check_link(m, entry, links[i].path, err);

		if (r < 0)
			return r;
		if (!planted && !vt_link_is_trusted(m->host, &links[i]))
			planted = links[i].path;
	}
	return planted ? note_link(m, entry, planted, err) : 0;
}

/* Without mounts a path shows where it is, or not at all. */
static int leave_in_place(const struct vt_grant *grant, struct vt_entry *entry, struct vt_err *err)
{
	if (strcmp(grant->from, grant->to) != 0)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: %s: '%s' cannot be moved to '%s': that takes a mount "
			       "namespace, which cannot be had here; `vitro doctor` says why",
			       grant->origin, grant->from, grant->to);
	/* A link to "/" stays a grant of "/" at another place, which nobody gets. */
	if (strcmp(entry->from, "/") != 0)
		entry->to = entry->from;
	return 0;
}

static int add_grants(struct placing *m, struct vt_err *err)
{
	const struct vt_grants *lists[] = { &m->policy->files.read, &m->policy->files.write };
	size_t count = lists[0]->count + lists[1]->count, n = 0;
	struct vt_entry *entries = vt_arena_array(m->plan->arena, count + 1, sizeof(*entries));

	if (!entries)
		return vt_plan_nomem(err);
	for (size_t which = 0; which < 2; which++) {
		for (size_t i = 0; i < lists[which]->count; i++) {
			const struct vt_grant *grant = &lists[which]->items[i];
			struct vt_entry *entry = &entries[n++];

			*entry = (struct vt_entry){
				.to = grant->to,
				.origin = grant->origin,
				.writable = which == 1,
				.granted = true,
			};
			int r = find_way(m, grant->from, entry, err);

			if (r < 0)
				return r;
			entry->mapped = is_workspace(entry->from, entry->writable);
			r = m->plan->bare ? leave_in_place(grant, entry, err) : 0;
			if (r < 0)
				return r;
		}
	}
	m->entries = entries;
	m->entry_count = n;
	for (size_t i = 0; i < n; i++) {
		int r = check_links(m, &entries[i], err);

		if (r < 0)
			return r;
	}
	qsort(entries, n, sizeof(*entries), by_place); /* outer folders first */
	m->foreign = n > 0;
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

/*
 * Each is mounted by itself, whatever lies around it, and with its owner mapped, wherever it is:
 * who may connect to a socket is who may write to it, and this is the one that the user wants.
 */
static int add_sockets(struct placing *m, struct vt_err *err)
{
	const struct vt_grants *sockets = &m->policy->files.sockets;

	for (size_t i = 0; i < sockets->count; i++) {
		const struct vt_grant *grant = &sockets->items[i];
		struct vt_entry entry = {
			.to = grant->to,
			.origin = grant->origin,
			.socket = true,
			.granted = true,
			.mapped = true,
		};
		int r = find_way(m, grant->from, &entry, err);

		if (r == 0)
			r = check_links(m, &entry, err);
		if (r == 0)
			r = check_grant(&entry, err);
		if (r == 0)
			r = vt_root_mount(m->root, &entry, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * It was found by following what somebody else may have written, who may write on: judge where it
 * leads, and that it is what the search has seen there.
 */
static int add_need(struct placing *m, const struct vt_need *need, struct vt_err *err)
{
	struct vt_entry entry = {
		.to = need->path,
		.origin = "the command's own prefix",
	};
	int r = find_way(m, need->path, &entry, err);

	if (r < 0)
		return r;
	const struct vt_path *seen = &entry.way->seen;

	if (!entry.way->err && (seen->dev != need->dev || seen->ino != need->ino))
		return vt_way_fail(entry.way, entry.origin, ESTALE, err);
	r = check_grant(&entry, err);
	return r < 0 ? r : vt_root_mount(m->root, &entry, err);
}

static int add_runtime(struct placing *m, struct vt_err *err)
{
	const struct vt_command *command = m->command;
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
	m->foreign |= command && command->prefix_count;
	for (size_t i = 0; r == 0 && command && i < command->prefix_count; i++)
		r = add_need(m, &command->prefixes[i], err);
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

static int add_devices(struct placing *m, struct vt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(devices) / sizeof(devices[0]); i++) {
		const struct vt_entry entry = {
			.from = devices[i], .to = devices[i], .origin = "devices", .device = true
		};

		r = vt_root_mount(m->root, &entry, err);
	}
	return r;
}

static int add_optional(struct placing *m, const char *path, const char *origin, struct vt_err *err)
{
	const struct vt_entry entry = {
		.from = path, .to = path, .origin = origin, .optional = true
	};

	return vt_root_mount(m->root, &entry, err);
}

static int add_own(struct placing *m, struct vt_err *err)
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

		bool no_proc = m->host->own_proc.err && vt_path_lies_in(own->to, "/proc");

		/* Where no proc can be mounted it is an empty folder, with nothing to mask. */
		if (!no_proc || own->act == VT_ACT_PROC)
			r = vt_root_own(m->root, no_proc ? VT_ACT_DIR : own->act, own->to,
					own->from, own->mode, err);
	}
	if (r == 0)
		r = add_devices(m, err);
	if (r == 0 && m->policy->network != VT_NETWORK_HOST)
		r = vt_root_own(m->root, VT_ACT_FILE, "/etc/hosts", HOSTS, 0444, err);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_optional(m, networked[i], "network", err);
	return r;
}

/* What a bare cell sees of the host beside the runtime. */
static int add_hosts(struct placing *m, struct vt_err *err)
{
	static const char *const always[] = {
		"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts",
		/* Facts about the machine that runtimes size themselves by. */
		"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime",
		"/proc/version", "/proc/filesystems", "/proc/sys/vm/overcommit_memory",
		"/proc/sys/kernel/osrelease"
	};
	static const char *const networked[] = { "/etc/protocols", "/etc/services",
						 "/etc/resolv.conf" };
	bool network = m->policy->network == VT_NETWORK_HOST;
	int r = add_devices(m, err);

	for (size_t i = 0; r == 0 && i < sizeof(always) / sizeof(always[0]); i++)
		r = add_optional(m, always[i], "the system's runtime", err);
	for (size_t i = 0; r == 0 && network && i < sizeof(networked) / sizeof(networked[0]); i++)
		r = add_optional(m, networked[i], "network", err);
	return r;
}

int vt_places_decide(struct vt_plan *plan, const struct vt_policy *policy,
		     const struct vt_host *host, const struct vt_command *command,
		     bool *ret_foreign, struct vt_err *err)
{
	struct placing m = {
		.policy = policy,
		.host = host,
		.command = command,
		.plan = plan,
	};

	m.root = vt_root_new(plan->arena, host);
	if (!m.root)
		return vt_plan_nomem(err);
	plan->scratch_bytes = policy->limits.tmp_mb << 20;
	plan->scratch_inodes = plan->scratch_bytes / BYTES_PER_INODE + INODES_FOR_BUILDS;
	int r = add_grants(&m, err);

	if (r == 0)
		r = add_sockets(&m, err);
	if (r == 0)
		r = add_runtime(&m, err);
	if (r == 0)
		r = plan->bare ? add_hosts(&m, err) : add_own(&m, err);
	if (r == 0)
		r = vt_deny_decide(m.root, policy, plan, err);
	if (r == 0)
		r = vt_pipes_decide(m.root, plan, err);
	if (r == 0)
		r = vt_root_finish(m.root, plan, err);
	if (r == 0)
		*ret_foreign = m.foreign;
	return r;
}
