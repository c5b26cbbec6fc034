/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's own runtime: what every cell can read unless its policy says otherwise. One table,
 * used by the plan to build the root and by host/command.h to know what a program need not bring
 * along.
 *
 * Of /etc it names single entries, each because programs fail or misbehave without it, and none
 * that may hold secrets: not ssl/private, not what an administrator fills with tokens and proxy
 * passwords (gitconfig, npmrc, pip.conf, wgetrc, profile, environment), not machine-id. passwd,
 * group, hosts, nsswitch.conf and resolv.conf are not in it either: the plan writes small ones of
 * its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/host.h"

/* Where a shell looks for programs if nobody says where. */
#define VT_RUNTIME_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct vt_runtime_path {
	const char *path;
	bool        optional; /* most hosts have only some of them */
};

/*
 * The table, and after it what differs from host to host: the configuration of each Java that is
 * installed. Paths are given whether they exist or not; the caller looks.
 */
int vt_runtime_expand(struct vt_arena *arena, const struct vt_host *host,
		      struct vt_runtime_path **ret_paths, size_t *ret_count, struct vt_err *err);

/* Whether an absolute path without ".." is one of these or lies below one. By name alone. */
bool vt_runtime_covers(const char *path);
/* Whether it is one of these itself. */
bool vt_runtime_has(const char *path);
