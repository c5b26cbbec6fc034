/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flags of `run` and `explain`: those of the policy's fields, from their table, and a few of the
 * command line's own. One table parses them and prints them for --help.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "host/command.h"
#include "policy/policy.h"

struct vt_options {
	struct vt_policy *policy;      /* owned */
	const char       *policy_name; /* of the last -p, or "default" */
	bool              json;
	const char       *json_file;   /* NULL: standard output */
	const char       *audit_file;
	bool              raw;         /* escape sequences may reach the terminal */
	bool              help;
	char            **command;     /* what follows the flags; may be empty */
};

/* argv[0] is the verb. On failure what was parsed so far is valid, so that --json is known. */
int  vt_options_parse(struct vt_options *options, int argc, char **argv, struct vt_err *err);
void vt_options_done(struct vt_options *options);

/* Finds the command that the options name, as the caller's shell would. */
int vt_options_find_command(const struct vt_options *options, struct vt_arena *arena,
			    struct vt_command *ret_command, struct vt_err *err);

/* The flags with their sentences, as --help shows them. */
void vt_options_help(struct vt_str *out);
