/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what a call names under a policy: a program as its caller's shell would, by the environment and the
 * working directory of this process; or a shared object. A plan is then made with what it needs.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "host/command.h"
#include "policy/policy.h"

/* As vt_command_find(). */
int vt_lookup_command(struct vt_arena *arena, const char *name, const struct vt_policy *policy,
		      struct vt_command *ret_command, struct vt_err *err);

/*
 * The same of a shared object, an absolute path, with no PATH and nothing that comes along but the file:
 * the path is that of the file itself, free of links. -ENOENT and others: it cannot be had.
 */
int vt_lookup_object(struct vt_arena *arena, const char *path, const struct vt_policy *policy,
		     struct vt_command *ret_command, struct vt_err *err);
