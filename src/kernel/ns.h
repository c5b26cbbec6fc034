/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces: making a process in new ones, and saying which host ids its user is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * clone3 without a shared address space: the child gets 0 and goes on here, as after fork, but
 * without the caller's signal handlers. cgroup_fd is a cgroup v2 folder to be born in, or -1.
 * *ret_pidfd is the child's, close-on-exec. Until it execs only waiting with __WALL finds it, and
 * nobody reaps it unasked; unless flags have SIGCHLD among them, as those of clone() may. Returns
 * the child's pid, 0 in the child, or -errno.
 *
 * Where clone3 is denied, as in Docker, clone serves. It cannot reset handlers, of which the
 * supervisor has none, and a child that was to be born in a cgroup moves there as its first act.
 */
pid_t vt_ns_clone(uint64_t flags, int cgroup_fd, int *ret_pidfd, struct vt_err *err);

/*
 * Writes the id maps of a new user namespace: one id inside, one outside. keep_setgroups leaves
 * setgroups() usable, so that the child can drop root's groups; without privilege the kernel
 * insists on denying it first.
 */
int vt_ns_map_ids(pid_t pid, uid_t inner_uid, uid_t outer_uid, gid_t inner_gid, gid_t outer_gid,
		  bool keep_setgroups, struct vt_err *err);

/*
 * The same of a user namespace that makes others: 0 inside is outer_uid and outer_gid, and from 1
 * on there are count more, of users and of groups, from first on outside. setgroups() stays usable.
 */
int vt_ns_map_range(pid_t pid, uid_t outer_uid, gid_t outer_gid, uint32_t first, uint32_t count,
		    struct vt_err *err);

/* Writes a whole file of /proc/PID in one write; the child side uses none of this. */
int vt_ns_write_proc(pid_t pid, const char *name, const char *text, struct vt_err *err);
