/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One act of vitro-escape, tried outside as the caller (the control), or inside a cell. Its program
 * is a separate one on purpose: what it tries does not come from what a plan believes.
 */
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "host/host.h"
#include "policy/policy.h"
#include "watch/result.h"

enum { VT_ATTEMPT_WORDS = 8, VT_SAID_SIZE = 320 };

enum vt_said_word { VT_SAID_NOTHING, VT_SAID_REACHED, VT_SAID_DENIED, VT_SAID_UNCLEAR };

/* The line in which an act says how it went. */
struct vt_said {
	enum vt_said_word word;
	char         line[VT_SAID_SIZE]; /* "" where it said nothing */
};

/* The last such line of what a program printed. Pure. */
void vt_said_parse(const char *text, struct vt_said *ret_said);

/* A session of its own, with default signals and none of them blocked. For a child of ours. */
int vt_control_detach(void);

/* How a control is started. */
enum vt_control_kind {
	VT_CONTROL_PLAIN,
	VT_CONTROL_NAMESPACES, /* as root of new user, mount, network, ipc and uts namespaces */
	VT_CONTROL_CHILD,      /* by a parent of its own, which may be killed */
};

/* An act that runs outside. */
struct vt_control {
	pid_t         keeper; /* waits for the act and for all that it leaves */
	struct vt_str out;    /* what it wrote to standard output */
};

/*
 * Runs argv outside, in a session of its own and without the caller's environment; under the
 * filter, if it is not NULL, and nothing else of a cell's. When this returns, all who could write
 * its output have closed it. vt_control_end() then waits until nothing of it lives.
 */
int  vt_control_start(char *const *argv, enum vt_control_kind kind, const struct sock_fprog *filter,
		      struct vt_control *ret_control, struct vt_err *err);
void vt_control_end(struct vt_control *control);

/*
 * Runs argv in a cell of the policy, with captured output. *ret_plan is what was claimed for that
 * very call, and *ret_result what became of it; both are the caller's to free. A refusal is -EPERM
 * with step VT_STEP_PLAN, and leaves both alone.
 */
int vt_attempt_inside(const struct vt_host *host, const struct vt_policy *policy, char *const *argv,
		      int signal_fd, struct vt_plan **ret_plan, struct vt_result *ret_result,
		      struct vt_err *err);
