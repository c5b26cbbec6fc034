/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a process that an occupant must not inherit: session, signals, umask, keyring,
 * descriptors, limits. Child side: no malloc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

struct vt_rlimit {
	int           resource;
	struct rlimit limit;
};

/* Becomes this user and group, alone; drop_groups where setgroups is not denied. */
int vt_process_become(uid_t uid, gid_t gid, bool drop_groups, struct vt_err *err);

/*
 * A session without a terminal, default signals, none blocked, umask 022, no real-time priority, of
 * CPUs or disks, and no personality but the plain one.
 */
int vt_process_detach(struct vt_err *err);

/*
 * An empty session keyring. A user has some 200 keys, and those that were let go of count for a
 * while: who makes many processes makes it once for all of them, which cannot speak of keys.
 */
int vt_process_leave_keys(struct vt_err *err);

/* Sets these limits, each at most what the caller's own hard limit is: nobody can go above that. */
int vt_process_limit(const struct vt_rlimit *limits, size_t count, struct vt_err *err);

/*
 * Puts in, out and err at 0, 1 and 2, keep at 3 with close-on-exec, and closes all others, whoever
 * leaked them.
 */
int vt_process_descriptors(int in, int out, int err_out, int keep, struct vt_err *err);

/* The same, with one more at 4, which stays open across exec; -1: none. */
int vt_process_descriptors_with(int in, int out, int err_out, int keep, int more,
				struct vt_err *err);

/*
 * Kills a child that nobody has reaped, and reaps it. One that cannot be killed is not waited for:
 * it ends with this process at the latest.
 */
void vt_process_end(pid_t pid);
