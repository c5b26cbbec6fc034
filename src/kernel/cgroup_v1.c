/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v1: one hierarchy per controller or group of controllers, each with a folder of its own
 * for a cell. Each costs a mkdir and a move, so only those that a limit needs are used.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "kernel/cgroup_private.h"

/* A file that shows that the folder is of that controller; the root of pids has no pids.max. */
static const struct {
	const char *name;
	const char *file;
	size_t folder; /* where in a site */
} controllers[] = {
	{ "memory", "memory.limit_in_bytes", offsetof(struct vt_cgroup_site, memory) },
	{ "pids", "tasks", offsetof(struct vt_cgroup_site, pids) },
	{ "cpu", "cpu.cfs_quota_us", offsetof(struct vt_cgroup_site, cpu) },
	{ "cpuacct", "cpuacct.usage", offsetof(struct vt_cgroup_site, cpuacct) },
};

/* 0, or the errno that says why children cannot be made in a folder. */
static int usable(const char *folder, const char *file)
{
	AUTO_CLOSE int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return errno;
	if (vt_file_access(dir, ".", W_OK | X_OK) < 0 || vt_file_access(dir, file, F_OK) < 0)
		return errno;
	return 0;
}

/*
 * The own folder of a controller. Hierarchies are mounted at the list of their controllers; where
 * that name is another ("cpuacct,cpu"), at least a link of the first one's name is there. All
 * controllers of a hierarchy get the same text: two folders for one cell in one hierarchy would be
 * a mistake, since joining the second leaves the first.
 */
static int locate(const char *mount, char *list, const char *path, const char *file,
		  char folder[PATH_MAX])
{
	int num = ENOENT;

	for (int tries = 0; tries < 2; tries++) {
		char top[PATH_MAX];

		if (vt_cgroup_path(top, mount, list) < 0 || vt_cgroup_path(folder, top, path) < 0)
			return ENAMETOOLONG;
		num = usable(folder, file);
		if (num != ENOENT || !strchr(list, ','))
			break;
		*strchr(list, ',') = '\0';
	}
	return num;
}

void vt_cgroup_v1_find(const char *mount, const char *text, struct vt_cgroup_site *site)
{
	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		char list[NAME_MAX + 1], path[PATH_MAX];
		char *folder = (char *)site + controllers[i].folder;

		if (!vt_cgroup_own(text, controllers[i].name, list, path))
			continue;

		int num = vt_cgroup_noted(site,
					  locate(mount, list, path, controllers[i].file, folder));
		if (num == 0) {
			site->version = VT_CGROUP_V1;
			continue;
		}
		if (!site->why[0])
			vt_cgroup_say(site, "cannot make cgroups: %s: '%s'", strerror(num), folder);
		if (folder == site->cpu)
			(void)snprintf(site->cpu_why, sizeof(site->cpu_why),
				       "cannot make cgroups: %s: '%s'", strerror(num),
				       folder); /* a cut reason is still one */
		folder[0] = '\0';
	}
	if (site->version == VT_CGROUP_NONE && !site->why[0])
		vt_cgroup_say(site, "no usable cgroup v1 controller in /proc/self/cgroup");
}

/* The index of the cell's folder in a hierarchy, made at its first use. */
static int folder_in(struct vt_cgroup *cgroup, const char *folder,
		     const char *parents[VT_CGROUP_HIERARCHIES], struct vt_err *err)
{
	for (int i = 0; i < cgroup->count; i++)
		if (strcmp(parents[i], folder) == 0)
			return i;

	int at = vt_cgroup_add(cgroup, folder, "tasks", err);
	if (at >= 0)
		parents[at] = folder;
	return at;
}

static int put(const struct vt_cgroup *cgroup, int at, const char *file, int64_t number,
	       struct vt_err *err)
{
	int r = vt_cgroup_put_number(cgroup->dirs[at], file, number);

	return r < 0 ? vt_cgroup_fail(err, -r, "set", file, cgroup->paths[at]) : 0;
}

static int limit_memory(const struct vt_cgroup *cgroup, int at,
			const struct vt_cgroup_limits *limits, struct vt_err *err)
{
	int64_t bytes = limits->memory_bytes;
	int r = put(cgroup, at, "memory.limit_in_bytes", bytes, err);

	/* A counter of its own, without which nobody counts what sockets have queued. */
	if (r == 0 && limits->has_network)
		r = put(cgroup, at, "memory.kmem.tcp.limit_in_bytes", bytes, err);
	if (r < 0)
		return r;

	/* memsw is memory and swap together, and may not be below memory: so it comes second. */
	r = vt_cgroup_put_number(cgroup->dirs[at], "memory.memsw.limit_in_bytes", bytes);
	if (r == 0)
		return 0;
	if (r != -ENOENT && r != -EOPNOTSUPP)
		return vt_cgroup_fail(err, -r, "set", "memory.memsw.limit_in_bytes",
				      cgroup->paths[at]);
	/* Swap is not counted here; then the limit may not push anything out to it. */
	(void)vt_cgroup_put_number(cgroup->dirs[at], "memory.swappiness", 0); /* has no other way */
	return 0;
}

static int limit_cpu(const struct vt_cgroup *cgroup, int at, int64_t quota_us, struct vt_err *err)
{
	int r = put(cgroup, at, "cpu.cfs_period_us", VT_CGROUP_PERIOD_US, err);
	if (r < 0)
		return r;

	/* v1 refuses more than an ancestor has: then the tighter limit holds already. */
	r = vt_cgroup_put_number(cgroup->dirs[at], "cpu.cfs_quota_us", quota_us);
	if (r < 0 && (r != -EINVAL || quota_us < 1000))
		return vt_cgroup_fail(err, -r, "set", "cpu.cfs_quota_us", cgroup->paths[at]);
	return 0;
}

int vt_cgroup_v1_make(const struct vt_cgroup_site *site, const struct vt_cgroup_limits *limits,
		      struct vt_cgroup *cgroup, struct vt_err *err)
{
	const char *parents[VT_CGROUP_HIERARCHIES];
	int at, r = 0;

	if (limits->memory_bytes > 0) {
		at = cgroup->memory = folder_in(cgroup, site->memory, parents, err);
		r = at < 0 ? at : limit_memory(cgroup, at, limits, err);
	}
	if (r == 0 && limits->pids > 0) {
		at = folder_in(cgroup, site->pids, parents, err);
		r = at < 0 ? at : put(cgroup, at, "pids.max", limits->pids, err);
	}
	if (r == 0 && limits->cpu_quota_us > 0) {
		at = folder_in(cgroup, site->cpu, parents, err);
		r = at < 0 ? at : limit_cpu(cgroup, at, limits->cpu_quota_us, err);
	}
	if (r == 0 && limits->count_cpu) {
		at = cgroup->cpuacct = folder_in(cgroup, site->cpuacct, parents, err);
		r = at < 0 ? at : 0;
	}
	return r;
}

static int read_number(const struct vt_cgroup *cgroup, int at, const char *file,
		       int64_t *ret_number, struct vt_err *err)
{
	int r = vt_cgroup_get_number(cgroup->dirs[at], file, ret_number);

	return r < 0 ? vt_cgroup_fail(err, -r, "read", file, cgroup->paths[at]) : 0;
}

int vt_cgroup_v1_read(const struct vt_cgroup *cgroup, struct vt_cgroup_usage *usage,
		      struct vt_err *err)
{
	int r = 0;

	if (cgroup->memory >= 0) {
		int at = cgroup->memory;

		r = read_number(cgroup, at, "memory.usage_in_bytes", &usage->memory_bytes, err);
		if (r == 0)
			r = read_number(cgroup, at, "memory.max_usage_in_bytes",
					&usage->memory_peak_bytes, err);
		if (r < 0)
			return r;
		r = vt_cgroup_get_keyed(cgroup->dirs[at], "memory.oom_control", "oom_kill",
					&usage->oom_kills);
		if (r < 0)
			return vt_cgroup_fail(err, -r, "read", "memory.oom_control",
					      cgroup->paths[at]);
	}
	if (cgroup->cpuacct >= 0)
		r = read_number(cgroup, cgroup->cpuacct, "cpuacct.usage", &usage->cpu_ns, err);
	return r;
}
