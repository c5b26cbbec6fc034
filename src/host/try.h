/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trying a mechanism for real, in a short-lived child that takes all traces of the try with it when
 * it ends. Used by report.c and layer.c alone.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/host.h"

/*
 * Runs act in a child in these new namespaces (CLONE_NEW*, 0: none). Where a user namespace is
 * among them, the child is root in it, with one id of the host's as a cell would have. Returns what
 * act returned, with err as act filled it; -EAGAIN where that took more than five seconds, or the
 * child was killed: that passes, and says nothing about what was tried.
 */
int vt_try(const struct vt_host *host, uint64_t namespaces, int (*act)(struct vt_err *err),
	   struct vt_err *err);

/* The same for an act that needs to be told something. */
int vt_try_with(const struct vt_host *host, uint64_t namespaces,
		int (*act)(const void *arg, struct vt_err *err), const void *arg,
		struct vt_err *err);
