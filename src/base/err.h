/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What failed, where and why, as one plain value. It is small enough to cross the status socket
 * from a half-built cell in one message, so the child side fills it too: vt_fail_at() needs neither
 * malloc nor stdio nor locks.
 */
#pragma once

#include <stdbool.h>

#include <stddef.h>

/* The part of a call's life that failed. vt_step_name() gives the word that users see. */
enum vt_step {
	VT_STEP_NONE,
	VT_STEP_POLICY,   /* reading or checking what the user wrote */
	VT_STEP_COMMAND,  /* finding the program to run */
	VT_STEP_PLAN,     /* policy and host do not fit */
	VT_STEP_CLONE,    /* making the cell's namespaces */
	VT_STEP_CGROUP,
	VT_STEP_IDS,
	VT_STEP_MOUNTS,
	VT_STEP_NETWORK,
	VT_STEP_SESSION,
	VT_STEP_LIMITS,
	VT_STEP_CAPS,
	VT_STEP_LANDLOCK,
	VT_STEP_DESCRIPTORS,
	VT_STEP_SECCOMP,
	VT_STEP_EXEC,
	VT_STEP_WATCH,    /* the supervisor's own work while the call runs */
	VT_STEP_OUTPUT,   /* writing a result, a report or an audit line */
	VT_STEP_WIRE,     /* talking with a client, or with a supervisor */
	VT_STEP_COUNT
};

struct vt_err {
	enum vt_step step;
	int          num;       /* an errno value; never 0 once filled */
	char         what[512]; /* "allow '/srv/data'" */
};

/*
 * Fills *err and returns -num, so that callers write `return vt_fail(...)`. A num of 0 or less is
 * taken as EIO: an error is never mistaken for success. A text that does not fit ends in "...".
 */
int vt_fail(struct vt_err *err, enum vt_step step, int num, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * The same for the child between clone and exec: `what`, then a quoted `subject` if it is not NULL.
 * Async-signal-safe.
 */
int vt_fail_at(struct vt_err *err, enum vt_step step, int num, const char *what,
	       const char *subject);

/*
 * An analyzer that sees one file at a time cannot know that vt_fail() is negative, and would follow
 * the success path.
 */
#ifdef VITRO_ANALYZED
static inline int vt_negative(int r)
{
	(void)r;
	return -1;
}
#define vt_fail(...)	vt_negative(vt_fail(__VA_ARGS__))
#define vt_fail_at(...) vt_negative(vt_fail_at(__VA_ARGS__))
#endif

/* Whether an errno is of a shortage that passes, and so says nothing about what there is. */
bool vt_err_passes(int num);

/* The word for a step: "mounts". Never NULL. */
const char *vt_step_name(enum vt_step step);
