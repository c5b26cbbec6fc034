/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of a call in the audit log: who asked for what, under which policy, what held it, how it
 * ended and what it used. watch/audit.h appends it.
 */
#pragma once

#include <sys/types.h>

#include "watch/result.h"

/* What the result does not say. */
struct vt_audit {
	const char  *policy; /* the policy's name as given, or "default" */
	char *const *argv;   /* the words, at least as many as have room in the line */
	size_t       argv_bytes;  /* of all words, each with its NUL; 0: argv has all */
	const char  *argv_sha256; /* of these bytes, in hex; NULL: not known */
	/* Of a call that another process asked for; tool NULL: it was this one. */
	const char  *tool;
	const char  *program; /* that runs it */
	uid_t        uid;
	pid_t        pid;
};

/*
 * So many bytes of a command's words are in its line, each word with its NUL; of more, how many
 * there were, and their hash.
 */
enum { VT_AUDIT_ARGV = 32 << 10 };

/* The time in it is that of the line, which is the call's end. plan may be NULL. */
int vt_audit_line(const struct vt_result *result, const struct vt_plan *plan,
		  const struct vt_audit *audit, struct vt_str *out, struct vt_err *err);
