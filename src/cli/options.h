/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the flags of a verb come to, as they stand on a command line, and what follows them; and how
 * --help shows them. Which there are is in cli/flags.h.
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
	const char       *expect;      /* a hash, or NULL */
	bool              raw;         /* escape sequences may reach the terminal */
	bool              self_test;
	bool              help;
	/* --json without a file is the last flag, and no -- follows it */
	bool              json_last;
	const char       *lang;        /* of `vitro eval`; NULL: the default */
	const char       *query;       /* of `vitro tools`; NULL: none */
	struct {
		const char *socket;  /* a path; NULL: none was given */
		int         fd;      /* an inherited descriptor; -1: none */
		const char *metrics; /* a path, or an address and port; NULL: none */
		const char *tools;   /* a manifest; NULL: none */
		int64_t     clients, cells, drain_ms;
	} serve;
	char            **command;     /* what follows the flags; may be empty */
	/* the same for an audit log, where vitro's own text stands in it; or NULL */
	char            **told;
	const char       *code;        /* of `vitro eval`; else NULL */
	/* owned: the arguments, with the flags first; NULL: they are as given */
	char            **arranged;
};

/*
 * argv[0] is the verb. Notes about what is probably not meant go to standard error. On failure what
 * was parsed so far is valid, so that --json is known.
 */
int  vt_options_parse(struct vt_options *options, int argc, char **argv, struct vt_err *err);
void vt_options_done(struct vt_options *options);

/* Finds the command that the options name, as the caller's shell would. */
int vt_options_find_command(const struct vt_options *options, struct vt_arena *arena,
			    struct vt_command *ret_command, struct vt_err *err);

/* A verb's flags with their sentences, as --help shows them. */
void vt_options_help(const char *verb, struct vt_str *out);

/* Writes that to standard output, with what is said before and after it. */
void vt_options_show(const char *verb, const char *before, const char *after);
