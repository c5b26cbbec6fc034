/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v2: one tree, one folder for a cell. What a folder's children are given is in its
 * cgroup.subtree_control, and the kernel lets a folder other than the root have processes or give
 * controllers, not both. So the own cgroup serves where it gives them already, where it is the
 * root, or where it is the caller's alone, who then steps aside into a child. Else root makes a
 * folder below the root; an ordinary user has nowhere to go.
 *
 * Units of systemd's are taken only where they were delegated. Any other it stops as soon as the
 * kernel has killed a process for want of memory anywhere below it (OOMPolicy=): a cell that fills
 * its memory would take its supervisor along.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "kernel/cgroup_private.h"

static const struct {
	unsigned bit;
	const char *name;
} controllers[] = {
	{ VT_CGROUP_MEMORY, "memory" },
	{ VT_CGROUP_PIDS, "pids" },
	{ VT_CGROUP_CPU, "cpu" },
};

enum { CONTROLLERS = sizeof(controllers) / sizeof(controllers[0]) };

/* The set in a file such as cgroup.controllers; none where it cannot be read. */
static unsigned controllers_in(int dir, const char *file, struct vt_cgroup_site *site)
{
	char text[VT_CGROUP_TEXT_MAX];
	unsigned set = 0;

	ssize_t len = vt_file_read(dir, file, text, sizeof(text));

	if (len < 0) {
		(void)vt_cgroup_noted(site, (int)-len);
		return 0;
	}
	for (int i = 0; i < CONTROLLERS; i++)
		if (vt_cgroup_has_word(text, ' ', controllers[i].name))
			set |= controllers[i].bit;
	return set;
}

static bool can(int dir, const char *name, int mode, struct vt_cgroup_site *site)
{
	if (vt_file_access(dir, name, mode) == 0)
		return true;
	(void)vt_cgroup_noted(site, errno);
	return false;
}

/* The real root has no type, whatever a cgroup namespace calls root. */
static bool is_root(int dir, struct vt_cgroup_site *site)
{
	return !can(dir, "cgroup.type", F_OK, site) && errno == ENOENT &&
	       can(dir, "cgroup.controllers", F_OK, site);
}

static bool is_threaded(int dir, struct vt_cgroup_site *site)
{
	char type[32];
	ssize_t len = vt_file_read(dir, "cgroup.type", type, sizeof(type));

	(void)vt_cgroup_noted(site, len < 0 ? (int)-len : 0);
	return len > 0 && strcmp(type, "domain\n") != 0;
}

/* Whether no process but perhaps the caller is in it. */
static bool is_alone(int dir, struct vt_cgroup_site *site)
{
	char text[64], self[32];
	ssize_t len = vt_file_read(dir, "cgroup.procs", text, sizeof(text));

	(void)vt_cgroup_noted(site, len < 0 ? (int)-len : 0);
	(void)snprintf(self, sizeof(self), "%d\n", (int)getpid());
	return len == 0 || (len > 0 && strcmp(text, self) == 0);
}

/* What the children of a folder can be given: what it gives already, or could. */
static unsigned offer(int dir, bool may_enable, struct vt_cgroup_site *site)
{
	unsigned set = controllers_in(dir, "cgroup.subtree_control", site);

	if (may_enable && can(dir, "cgroup.subtree_control", W_OK, site))
		set |= controllers_in(dir, "cgroup.controllers", site);
	return set;
}

/* Leaves the folder's last name out, and gives it. */
static const char *split(char *folder)
{
	char *slash = strrchr(folder, '/');

	if (!slash)
		return "";
	*slash = '\0';
	return slash + 1;
}

/* What systemd wrote on a unit's cgroup: for root, and from 251 on for everyone. */
static bool is_marked(const char *folder, const char *mark, struct vt_cgroup_site *site)
{
	static const char *const kinds[] = { "user", "trusted" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char name[64], value[64];

		(void)snprintf(name, sizeof(name), "%s.%s", kinds[i], mark); /* fits */
		if (getxattr(folder, name, value, sizeof(value)) > 0)
			return true;
		(void)vt_cgroup_noted(site, errno);
	}
	return false;
}

static bool is_unit(const char *folder, struct vt_cgroup_site *site)
{
	return is_marked(folder, "invocation_id", site);
}

static bool is_delegated(const char *folder, struct vt_cgroup_site *site)
{
	return is_marked(folder, "delegate", site);
}

/* Whether a folder is for the processes of its parent, which is the place then: by an earlier step
 * aside, or within a unit that was delegated, by DelegateSubgroup= or a step aside of its own. */
static bool is_aside(const char *folder, const char *parent, const char *name,
		     struct vt_cgroup_site *site)
{
	return strcmp(name, VT_CGROUP_SUPERVISOR) == 0 ||
	       (!is_unit(folder, site) && is_unit(parent, site) && is_delegated(parent, site));
}

/* What the own cgroup offers; 0 with a reason where that is nothing. */
static unsigned look_own(char folder[PATH_MAX], struct vt_cgroup_site *site)
{
	char parent[PATH_MAX];

	memcpy(parent, folder, PATH_MAX);
	const char *name = split(parent);
	if (is_aside(folder, parent, name, site))
		memcpy(folder, parent, PATH_MAX);

	AUTO_CLOSE int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* A process is cloned into a child only by who may write the common ancestor's
	 * cgroup.procs. */
	if (dir < 0 || !can(dir, ".", W_OK | X_OK, site) || !can(dir, "cgroup.procs", W_OK, site)) {
		(void)vt_cgroup_noted(site, errno);
		vt_cgroup_say(site, "cannot make cgroups: %s: '%s'", strerror(errno), folder);
		return 0;
	}
	if (is_unit(folder, site) && !is_delegated(folder, site)) {
		vt_cgroup_say(site, "systemd has not delegated the own cgroup (Delegate=yes): '%s'",
			      folder);
		return 0;
	}
	if (is_threaded(dir, site)) {
		vt_cgroup_say(site, "the own cgroup is a threaded one: '%s'", folder);
		return 0;
	}

	bool free_to_enable = is_root(dir, site) || is_alone(dir, site);
	unsigned set = offer(dir, free_to_enable, site);
	if (set == 0 && free_to_enable)
		vt_cgroup_say(site, "no controller is delegated to cgroup '%s'", folder);
	else if (set == 0)
		vt_cgroup_say(site,
			      "the own cgroup has other processes; start vitro with systemd-run"
			      " --user --scope -p Delegate=yes: '%s'",
			      folder);
	return set;
}

/* What a folder of vitro's own below the root could be given. */
static unsigned look_top(const char *root, struct vt_cgroup_site *site)
{
	AUTO_CLOSE int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		(void)vt_cgroup_noted(site, errno);
	if (dir < 0 || !can(dir, ".", W_OK | X_OK, site) || !is_root(dir, site))
		return 0;
	return offer(dir, true, site);
}

/* The v2 tree's mount point: the usual one, or a folder of it beside v1's. */
static bool find_root(const char *mount, char root[PATH_MAX], struct vt_cgroup_site *site)
{
	static const char *const places[] = { "", "unified" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char file[PATH_MAX];

		if (vt_cgroup_path(root, mount, places[i]) == 0 &&
		    vt_cgroup_path(file, root, "cgroup.controllers") == 0 &&
		    can(AT_FDCWD, file, F_OK, site))
			return true;
	}
	return false;
}

void vt_cgroup_v2_find(const char *mount, const char *text, struct vt_cgroup_site *site)
{
	char list[NAME_MAX + 1], path[PATH_MAX], root[PATH_MAX], own[PATH_MAX], top[PATH_MAX];
	const char *folder = own;

	if (!find_root(mount, root, site)) {
		vt_cgroup_say(site, "no cgroup tree is mounted at %s", mount);
		return;
	}
	if (!vt_cgroup_own(text, "", list, path) || vt_cgroup_path(own, root, path) < 0 ||
	    vt_cgroup_path(top, root, VT_CGROUP_TOP) < 0) {
		vt_cgroup_say(site, "the own cgroup is outside what is mounted at %s", root);
		return;
	}

	unsigned set = look_own(own, site);
	if (!(set & VT_CGROUP_MEMORY)) {
		unsigned top_set = look_top(root, site);

		if (top_set & VT_CGROUP_MEMORY || set == 0) {
			set = top_set;
			folder = top;
		}
	}
	if (set == 0)
		return;

	site->version = VT_CGROUP_V2;
	if (set & VT_CGROUP_MEMORY)
		memcpy(site->memory, folder, PATH_MAX);
	if (set & VT_CGROUP_PIDS)
		memcpy(site->pids, folder, PATH_MAX);
	if (set & VT_CGROUP_CPU)
		memcpy(site->cpu, folder, PATH_MAX);
	/* CPU time is counted in every cgroup of v2, whatever controllers it has. */
	memcpy(site->cpuacct, folder, PATH_MAX);
}

/* 0 or -errno: -EBUSY where the folder has processes of its own. */
static int enable(int dir, unsigned set)
{
	unsigned missing = set & ~controllers_in(dir, "cgroup.subtree_control", NULL);
	char text[64] = "";

	if (missing == 0)
		return 0;
	for (int i = 0; i < CONTROLLERS; i++) {
		size_t len = strlen(text);

		if (missing & controllers[i].bit)
			(void)snprintf(text + len, sizeof(text) - len, "%s+%s", len ? " " : "",
				       controllers[i].name); /* fits: three short names */
	}
	return vt_cgroup_put(dir, "cgroup.subtree_control", text);
}

int vt_cgroup_v2_step_aside(int dir)
{
	if (!is_alone(dir, NULL))
		return -EBUSY;
	if (mkdirat(dir, VT_CGROUP_SUPERVISOR, 0755) < 0 && errno != EEXIST)
		return -errno;
	return vt_cgroup_put(dir, VT_CGROUP_SUPERVISOR "/cgroup.procs", "0");
}

static void step_back(int dir)
{
	/* Undoes a step that turned out to be of no use; where it fails, the caller just stays. */
	(void)vt_cgroup_put(dir, "cgroup.procs", "0");
	(void)unlinkat(dir, VT_CGROUP_SUPERVISOR, AT_REMOVEDIR);
}

/* Where the place is vitro's own folder below the root, it may have to be made. */
static int prepare_top(const char *folder, unsigned set)
{
	char parent[PATH_MAX];

	if (vt_cgroup_path(parent, folder, "") < 0)
		return -ENAMETOOLONG;
	if (strcmp(split(parent), VT_CGROUP_TOP) != 0)
		return 0;

	AUTO_CLOSE int root = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	if (!is_root(root, NULL))
		return 0;

	int r = enable(root, set);
	if (r == 0 && mkdirat(root, VT_CGROUP_TOP, 0755) < 0 && errno != EEXIST)
		r = -errno;
	return r;
}

int vt_cgroup_v2_prepare(const char *folder, unsigned set, struct vt_err *err)
{
	AUTO_CLOSE int dir = -1;
	int r = prepare_top(folder, set);

	if (r < 0)
		return vt_fail(err, VT_STEP_CGROUP, -r, "prepare '%s'", folder);
	dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return vt_fail(err, VT_STEP_CGROUP, errno, "open cgroup '%s'", folder);
	r = enable(dir, set);
	if (r == -EBUSY && vt_cgroup_v2_step_aside(dir) == 0) {
		r = enable(dir, set);
		if (r < 0)
			step_back(dir);
	}
	return r < 0 ? vt_cgroup_fail(err, -r, "set", "cgroup.subtree_control", folder) : 0;
}

/* needed: without this file the limit does not hold. */
static int put(int dir, const char *path, const char *file, const char *text, bool needed,
	       struct vt_err *err)
{
	int r = vt_cgroup_put(dir, file, text);

	if (r < 0 && (needed || r != -ENOENT))
		return vt_cgroup_fail(err, -r, "set", file, path);
	return 0;
}

int vt_cgroup_v2_limit(int dir, const char *path, const struct vt_cgroup_limits *limits,
		       struct vt_err *err)
{
	char text[64];
	int r = 0;

	if (limits->memory_bytes > 0) {
		(void)snprintf(text, sizeof(text), "%lld", (long long)limits->memory_bytes);
		r = put(dir, path, "memory.max", text, true, err);
		/* Absent where the kernel has no swap, or is too old to kill a cgroup as one. */
		if (r == 0)
			r = put(dir, path, "memory.swap.max", "0", false, err);
		if (r == 0)
			r = put(dir, path, "memory.oom.group", "1", false, err);
	}
	if (r == 0 && limits->pids > 0) {
		(void)snprintf(text, sizeof(text), "%lld", (long long)limits->pids);
		r = put(dir, path, "pids.max", text, true, err);
	}
	if (r == 0 && limits->cpu_quota_us > 0) {
		(void)snprintf(text, sizeof(text), "%lld %d", (long long)limits->cpu_quota_us,
			       VT_CGROUP_PERIOD_US);
		r = put(dir, path, "cpu.max", text, true, err);
	}
	return r;
}

/* The one folder: all of a v2 site's folders are the same. */
static const char *place(const struct vt_cgroup_site *site)
{
	return site->memory[0] ? site->memory : site->cpuacct;
}

int vt_cgroup_v2_make(const struct vt_cgroup_site *site, const struct vt_cgroup_limits *limits,
		      struct vt_cgroup *cgroup, struct vt_err *err)
{
	unsigned set = (limits->memory_bytes > 0 ? VT_CGROUP_MEMORY : 0) |
		       (limits->pids > 0 ? VT_CGROUP_PIDS : 0) |
		       (limits->cpu_quota_us > 0 ? VT_CGROUP_CPU : 0);
	int r = vt_cgroup_v2_prepare(place(site), set, err);

	if (r == 0)
		r = vt_cgroup_add(cgroup, place(site), NULL, err);
	if (r < 0)
		return r;
	if (limits->memory_bytes > 0)
		cgroup->memory = r;
	if (limits->count_cpu)
		cgroup->cpuacct = r;
	return vt_cgroup_v2_limit(cgroup->dirs[r], cgroup->paths[r], limits, err);
}

int vt_cgroup_v2_read(const struct vt_cgroup *cgroup, struct vt_cgroup_usage *usage,
		      struct vt_err *err)
{
	int64_t cpu_us = 0;
	int r;

	if (cgroup->memory >= 0) {
		int dir = cgroup->dirs[cgroup->memory];
		const char *path = cgroup->paths[cgroup->memory];

		r = vt_cgroup_get_number(dir, "memory.current", &usage->memory_bytes);
		if (r < 0)
			return vt_cgroup_fail(err, -r, "read", "memory.current", path);
		r = vt_cgroup_get_number(dir, "memory.peak", &usage->memory_peak_bytes);
		if (r < 0 && r != -ENOENT)
			return vt_cgroup_fail(err, -r, "read", "memory.peak", path);
		r = vt_cgroup_get_keyed(dir, "memory.events", "oom_kill", &usage->oom_kills);
		if (r < 0)
			return vt_cgroup_fail(err, -r, "read", "memory.events", path);
	}
	if (cgroup->cpuacct >= 0) {
		r = vt_cgroup_get_keyed(cgroup->dirs[cgroup->cpuacct], "cpu.stat", "usage_usec",
					&cpu_us);
		if (r < 0)
			return vt_cgroup_fail(err, -r, "read", "cpu.stat",
					      cgroup->paths[cgroup->cpuacct]);
		usage->cpu_ns = cpu_us > INT64_MAX / 1000 ? INT64_MAX : cpu_us * 1000;
	}
	return 0;
}
