/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seccomp profiles in the format of the OCI runtime specification, as Docker and Podman use it: the
 * rules as data, read elsewhere, and their compilation into a filter for this machine. Compiling is
 * libseccomp's work, so that several rules about one call combine as they do under runc: a rule
 * without conditions stands above all with conditions, wherever it is written.
 *
 * A cell has no capabilities: what a profile gives to a capability alone is never given.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum vt_oci_action {
	VT_OCI_ALLOW,
	VT_OCI_LOG,
	VT_OCI_ERRNO,
	VT_OCI_TRAP,
	VT_OCI_KILL_THREAD,
	VT_OCI_KILL_PROCESS
};

struct vt_oci_verdict {
	enum vt_oci_action action;
	unsigned           num; /* the errno of VT_OCI_ERRNO, 0 to 4095 */
};

enum vt_oci_op {
	VT_OCI_NE,
	VT_OCI_LT,
	VT_OCI_LE,
	VT_OCI_EQ,
	VT_OCI_GE,
	VT_OCI_GT,
	VT_OCI_MASKED_EQ /* (argument & value) == value_two */
};

struct vt_oci_arg {
	unsigned       index; /* 0 to 5 */
	enum vt_oci_op op;
	uint64_t       value, value_two;
};

/* What "includes" and "excludes" ask about the machine. */
struct vt_oci_when {
	bool               caps; /* some capability */
	const char *const *arches;
	size_t             arch_count;
	bool               kernel; /* this version or a later one */
	unsigned           major, minor;
};

enum { VT_OCI_ARGS = 16 };

struct vt_oci_rule {
	const char *const       *names;
	size_t                   name_count;
	struct vt_oci_verdict    verdict;
	const struct vt_oci_arg *args; /* all must match; but of two about one argument either */
	size_t                   arg_count; /* VT_OCI_ARGS at most */
	struct vt_oci_when       includes, excludes;
};

struct vt_oci_profile {
	const char               *path; /* for messages */
	struct vt_oci_verdict     fallback;
	const struct vt_oci_rule *rules;
	size_t                    rule_count;
};

/*
 * Compiles a profile for the kernel that vitro runs on, which has the given version. *ret_filter
 * and its code are in the arena. Names that neither libseccomp nor vitro knows are passed over, as
 * runc does: such a call gets the fallback. Where that is an errno, calls newer than any that the
 * profile names get ENOSYS instead, again as under runc, so that libc can fall back.
 *
 * Fails, with step VT_STEP_PLAN and a text that begins with "refused:", on a profile that
 * contradicts itself, is too long for the kernel or does not let a command be executed.
 */
int vt_oci_compile(const struct vt_oci_profile *profile, unsigned major, unsigned minor,
		   struct vt_arena *arena, struct sock_fprog *ret_filter, struct vt_err *err);
