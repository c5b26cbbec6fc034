/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The acts that the self-test tries: which of vitro-escape's, with what, under which limits, and
 * what it says of which property if one is reached. Data only. All of them are harmless outside,
 * where the control runs as the caller, who may be root: an act that touches what is not the
 * self-test's own has no place here.
 */
#pragma once

#include <stddef.h>


/* Properties of a plan by their names, and limits that every cell has and no plan grades. */
enum vt_tested {
	VT_TESTED_PROCESSES,
	VT_TESTED_FILES,
	VT_TESTED_NETWORK,
	VT_TESTED_SYSCALLS,
	VT_TESTED_MEMORY,
	VT_TESTED_TMP,
	VT_TESTED_FILE_SIZE,
	VT_TESTED_OPEN_FILES,
	VT_TESTED_PIDS,
	VT_TESTED_CPU_TIME,
	VT_TESTED_CPUS,
	VT_TESTED_COUNT
};

enum {
	/* Grants that the cell gets. */
	VT_TRY_READ = 1 << 0,
	VT_TRY_WRITE = 1 << 1,
	/*
	 * The control runs as root of namespaces of its own; or as the child of a process it may
	 * kill.
	 */
	VT_TRY_NAMESPACES = 1 << 2,
	VT_TRY_CHILD = 1 << 3,
	/* Reached is judged by who holds the lock after the call, not by what the act said. */
	VT_TRY_AFTER = 1 << 4,
	/* A busy machine denies it too: after a denial the control must succeed again. */
	VT_TRY_AGAIN = 1 << 5,
	/* It is about the private /tmp's being a tmpfs, which no bare cell has. */
	VT_TRY_TMPFS = 1 << 6,
	/* Only vitro's own profile denies it: a profile of the user's may allow it. */
	VT_TRY_PROFILE = 1 << 7,
	/* It hides in a way that the plan owns up to where proc hides processes. */
	VT_TRY_SHOWN = 1 << 8,
};

/* What in a policy allows an act. */
enum {
	VT_BY_READ = 1 << 0,    /* a grant around the self-test's folder */
	VT_BY_WRITE = 1 << 1,   /* the same for writing */
	VT_BY_WRITES = 1 << 2,  /* any grant for writing */
	VT_BY_HOST = 1 << 3,    /* the host's network */
	VT_BY_NETWORK = 1 << 4, /* any network */
};

struct vt_try {
	enum vt_tested property;
	const char    *act;
	const char    *args;    /* words; {name} stands for what the world has by that name */
	unsigned       flags;   /* VT_TRY_* */
	unsigned       allowed; /* VT_BY_* */
	const char    *outside; /* the control's words, where they differ */
	const char    *set;     /* KEY=VALUE for the cell, in words */
	const char    *ends;    /* statuses of the call that are a denial as well, in words */
	const char    *weaker;  /* reached means weaker, and this says how; NULL: it means absent */
	const char    *label;   /* tells it from others of the same act */
};

extern const struct vt_try vt_tries[];
extern const size_t        vt_try_count;

/* "open_files" */
const char *vt_tested_name(enum vt_tested property);
/* What holds a limit that no plan grades: "rlimit". NULL: plans grade it. */
const char *vt_tested_mechanism(enum vt_tested property);
