/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups, v2 or v1: where vitro may make them, and one of them for one cell. Each lives in
 * a folder "vitro-PID.N" of vitro's own below the caller's own cgroup (on v2, for root, below a
 * folder "vitro" of the hierarchy's root where the own cgroup will not do). Its maker holds a lock
 * on it, so that vt_cgroup_sweep() can tell what a killed vitro left behind, from any pid
 * namespace. No other process's cgroup is ever touched.
 *
 * The facade and the two back ends share cgroup_private.h; nobody else includes that.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum vt_cgroup_version { VT_CGROUP_NONE, VT_CGROUP_V1, VT_CGROUP_V2 };

/* Where cgroups may be made here; a controller that may not be used has an empty folder. */
struct vt_cgroup_site {
	enum vt_cgroup_version version;
	char memory[PATH_MAX];
	char pids[PATH_MAX];
	char cpu[PATH_MAX];     /* v1: the cpu hierarchy; v2: the same folder as memory */
	char cpuacct[PATH_MAX]; /* v1: may be the same folder as cpu */
	char why[160];          /* for VT_CGROUP_NONE: the reason, for a person; else "" */
	char cpu_why[160];      /* the same for a cpu that is empty */
	int  short_of;          /* an errno that passes: what is above may be wrong, and is not
				   to be used; else 0 */
};

/* 0 means no limit of that kind. The cell's init is in the cgroup too and counts as one of pids. */
struct vt_cgroup_limits {
	int64_t memory_bytes;
	bool    has_network; /* buffers of inet sockets are bounded: on v1 they are counted apart */
	int64_t pids;
	int64_t cpu_quota_us; /* per 100 ms; the kernel takes 1000 and more */
	bool    count_cpu;    /* CPU time must be readable */
};

enum { VT_CGROUP_HIERARCHIES = 4 };

struct vt_cgroup {
	enum vt_cgroup_version version;
	int  count;                           /* folders made: 1 on v2, one per hierarchy on v1 */
	int  dirs[VT_CGROUP_HIERARCHIES];     /* the folders, each with its lock; -1 where unused */
	/*
	 * v1: `tasks`, which takes "0"; -1 where unused. Permission was asked for when they were
	 * opened: whoever has them may join. On v2 a child is born in it, by vt_cgroup_clone_fd().
	 */
	int  joins[VT_CGROUP_HIERARCHIES];
	int  memory, cpuacct;                 /* indices into dirs, -1 where unused */
	char paths[VT_CGROUP_HIERARCHIES][PATH_MAX];
};

struct vt_cgroup_usage {
	int64_t memory_bytes, memory_peak_bytes; /* -1 where not counted */
	int64_t cpu_ns;                          /* -1 where not counted */
	int64_t oom_kills;
};

/*
 * Finds out, cheaply and without leaving anything behind, where vitro may make cgroups: read
 * /proc/self/cgroup, look at the usual mount points, ask whether they are writable. Never fails: a
 * host without usable cgroups is VT_CGROUP_NONE with the reason.
 */
void vt_cgroup_find(struct vt_cgroup_site *ret_site);

/*
 * Makes one with these limits. *ret_cgroup is untouched on failure and nothing is left behind.
 *
 * On v2 a cgroup that has processes gives its children no controllers. So where the caller is
 * alone in a cgroup that was delegated to it, this moves the caller into a child
 * "vitro-supervisor" first; both stay that way.
 */
int vt_cgroup_make(const struct vt_cgroup_site *site, const struct vt_cgroup_limits *limits,
		   struct vt_cgroup *ret_cgroup, struct vt_err *err);

/* The descriptor for CLONE_INTO_CGROUP, or -1 where the child joins by itself (v1). */
int vt_cgroup_clone_fd(const struct vt_cgroup *cgroup);

/*
 * Child side, no malloc: moves the calling process in. On v2 it does nothing: clone with
 * vt_cgroup_clone_fd() is the only way in, since a later move can take 10 ms.
 */
int vt_cgroup_join(const struct vt_cgroup *cgroup, struct vt_err *err);

/*
 * Child side: a cgroup that another process made, of which only the descriptors to join it by came
 * along. They are what its `joins` has, and stay the caller's. What vt_cgroup_join() wants, and no
 * more.
 */
void vt_cgroup_from_joins(struct vt_cgroup *ret_cgroup, const int *joins, int count);

/* Reads the counters. */
int vt_cgroup_read(const struct vt_cgroup *cgroup, struct vt_cgroup_usage *ret_usage,
		   struct vt_err *err);

/*
 * Removes it; its processes must be gone or going. Waits up to a second for the kernel to let go,
 * and says -EBUSY after that: then it can be called again, or a later sweep does it. A half-made
 * cgroup or one from vt_cgroup_init() is fine. In any case the descriptors are closed.
 */
int vt_cgroup_remove(struct vt_cgroup *cgroup, struct vt_err *err);

/* The same without waiting: -EBUSY, and it can be called again. */
int vt_cgroup_try_remove(struct vt_cgroup *cgroup, struct vt_err *err);

/* An empty value that vt_cgroup_remove() accepts. */
void vt_cgroup_init(struct vt_cgroup *cgroup);

/*
 * Removes what killed vitro processes left at this site. Best effort; returns how many folders
 * went. Costs a few µs where there is nothing to look at.
 */
int vt_cgroup_sweep(const struct vt_cgroup_site *site);
