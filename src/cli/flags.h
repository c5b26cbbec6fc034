/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which flags there are, and which verb takes them: those of the policy's fields, from their table,
 * and a few of the command line's own. From here they are parsed, shown by --help and the manual,
 * and completed by shells. Data only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Flags that are not fields of a policy. */
enum vt_own_flag {
	VT_OWN_NONE, /* it is one */
	VT_OWN_SELF_TEST,
	VT_OWN_POLICY,
	VT_OWN_SET,
	VT_OWN_JSON,
	VT_OWN_REPORT,
	VT_OWN_AUDIT,
	VT_OWN_EXPECT,
	VT_OWN_RAW,
	VT_OWN_QUERY,
	VT_OWN_LANG,
	VT_OWN_TIMEOUT,
	VT_OWN_SOCKET,
	VT_OWN_FD,
	VT_OWN_CLIENTS,
	VT_OWN_CELLS,
	VT_OWN_DRAIN,
	VT_OWN_METRICS,
	VT_OWN_TOOLS,
	VT_OWN_HELP,
};

/* A flag of a verb. */
struct vt_flag {
	const char *name;     /* "--timeout"; NULL: a field of the policy that only --set reaches */
	const char *letter;   /* "-p", or NULL */
	const char *argument; /* "TIME", or NULL */
	const char *sentence;
	bool        optional; /* the argument is given as --name=ARG or not at all */
	int         field;    /* of the policy, or -1 */
	enum vt_own_flag own;
};

/* A verb's flags by their index, in the order of --help. false: there are no more. */
bool vt_flag_at(const char *verb, size_t index, struct vt_flag *ret_flag);

/* Whether a verb's flags may come after what else it takes. */
bool vt_flag_may_follow(const char *verb);
