/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trying a mechanism for real, in a short-lived child that takes all traces of the try with it when it
 * ends. Used by report.c alone.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/host.h"

/*
 * Runs act in a child in these new namespaces (CLONE_NEW*, 0: none). Where a user namespace is among
 * them, the child is root in it, with one id of the host's as a cell would have. Returns what act
 * returned, with err as act filled it; -ETIMEDOUT where that took more than five seconds.
 */
int vt_try(const struct vt_host *host, uint64_t namespaces, int (*act)(struct vt_err *err),
	   struct vt_err *err);
