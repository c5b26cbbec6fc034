/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what a call names under a policy: a program as its caller's shell would, by the environment
 * and the working directory of this process; or a shared object. A plan is then made with what it
 * needs.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "host/command.h"
#include "policy/policy.h"

/* Who names it, where that is another process. */
struct vt_caller {
	char *const *environ; /* ends with NULL */
	const char  *cwd;     /* absolute; NULL: not known, and nothing is relative to it */
};

/* As vt_command_find(). caller: NULL where it is this process. */
int vt_lookup_command_for(const struct vt_caller *caller, struct vt_arena *arena, const char *name,
			  const struct vt_policy *policy, struct vt_command *ret_command,
			  struct vt_err *err);
/* The same for this process. */
int vt_lookup_command(struct vt_arena *arena, const char *name, const struct vt_policy *policy,
		      struct vt_command *ret_command, struct vt_err *err);

/*
 * The same of an interpreter, which is to be started outside of any cell: -EPERM, of VT_STEP_PLAN,
 * where the policy lets calls write to it, to a link on the way to it, or to its library.
 */
int vt_lookup_interpreter_for(const struct vt_caller *caller, struct vt_arena *arena,
			      const char *name, const struct vt_policy *policy,
			      struct vt_command *ret_command, struct vt_err *err);

/*
 * The same of a shared object, an absolute path, with no PATH and nothing that comes along but the
 * file: the path is that of the file itself, free of links. -ENOENT and others: it cannot be had.
 */
int vt_lookup_object(struct vt_arena *arena, const char *path, const struct vt_policy *policy,
		     struct vt_command *ret_command, struct vt_err *err);
