/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the built-in filters say, as tables: which system calls pass, which are refused and with
 * what errno, and which pass depending on their arguments. A call that no table names gets ENOSYS
 * from a profile, and passes an add-on.
 *
 * The tables are read by tools, on the machine that builds: genfilter makes filters of them, and
 * syscalls a list for the manual. The library carries what genfilter made, and the numbers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/seccomp.h"

/*
 * A verdict is 0, for a call that passes, or the errno that it gets; or this, for a call that waits
 * for whoever holds the filter's listener.
 */
enum { VT_SECCOMP_NOTIFY = 1 << 16 };

/* Calls that need no look at their arguments. The lists end with a row without calls. */
struct vt_seccomp_group {
	int         verdict[VT_SECCOMP_PROFILES]; /* default, strict */
	const char *calls;                        /* names, separated by blanks */
	bool        promised;                     /* VT_SECCOMP_ALWAYS says so too */
};

/* The machines that filters are made for. */
enum vt_seccomp_machine { VT_SECCOMP_X86_64, VT_SECCOMP_AARCH64 };

/*
 * One look at an argument: it matches where (low 32 bits & mask) == value, or != for `differs`. The
 * upper 32 bits are never looked at: every argument that is tested is an int or smaller to the
 * kernel, which drops what lies above, so a test that saw it could be led astray. (The request of
 * ptrace is a long, but one with bits above is none that the kernel knows.)
 */
struct vt_seccomp_test {
	int      verdict; /* of a call that matches */
	unsigned arg;     /* 0 is the first */
	bool     differs;
	uint32_t mask, value;
	unsigned profiles; /* bits 1 << profile that have this test; 0: all */
	unsigned sockets;  /* socket families, one of which must be allowed for it; 0: always
			      there */
	unsigned machines; /* bits 1 << machine that have this test; 0: all */
};

enum { VT_SECCOMP_TESTS = 12 };

/* Calls whose arguments decide: the first test that matches gives the verdict. */
struct vt_seccomp_condition {
	const char            *calls;
	int                    otherwise; /* the verdict where no test matches */
	struct vt_seccomp_test tests[VT_SECCOMP_TESTS];
	unsigned               count;
	bool                   promised; /* VT_SECCOMP_ALWAYS says so too */
};

#define IS(n, v)       .arg = (n), .mask = UINT32_MAX, .value = (v)
#define IS_NOT(n, v)   .arg = (n), .mask = UINT32_MAX, .value = (v), .differs = true
#define HAS(n, bits)   .arg = (n), .mask = (bits), .value = 0, .differs = true
#define LACKS(n, bits) .arg = (n), .mask = (bits), .value = 0
#define FIELD(n, m, v) .arg = (n), .mask = (m), .value = (v)
#define ALWAYS         .mask = 0, .value = 0

#define TESTS(...)                                                                                 \
	.tests = { __VA_ARGS__ },                                                                  \
	.count = sizeof((struct vt_seccomp_test[]){ __VA_ARGS__ }) / sizeof(struct vt_seccomp_test)

/* Calls that libseccomp may be too old to know. */
struct vt_seccomp_number {
	const char *call;
	int         nr;
	bool        x86_only;
};

/* All that the profiles say; rows that are promised are VT_SECCOMP_ALWAYS. */
extern const struct vt_seccomp_group     vt_seccomp_groups[];
extern const struct vt_seccomp_condition vt_seccomp_conditions[];

/* The other add-ons, whose verdicts are the same for every profile. */
extern const struct vt_seccomp_group     vt_seccomp_owner_groups[];
extern const struct vt_seccomp_condition vt_seccomp_owner_conditions[];
extern const struct vt_seccomp_group     vt_seccomp_bare_groups[];
extern const struct vt_seccomp_condition vt_seccomp_bare_conditions[];
extern const struct vt_seccomp_group     vt_seccomp_mute_groups[];
extern const struct vt_seccomp_condition vt_seccomp_mute_conditions[];
extern const struct vt_seccomp_group     vt_seccomp_called_groups[];
extern const struct vt_seccomp_condition vt_seccomp_called_conditions[];

extern const struct vt_seccomp_number vt_seccomp_numbers[];

/* The last call that the tables were written with in mind. An add-on passes none beyond it. */
enum { VT_SECCOMP_NEWEST = 469 };

/* The filters, made by genfilter for the machine that vitro is built for. */
extern const struct sock_fprog vt_seccomp_filters[VT_SECCOMP_PROFILES][VT_SOCKETS_SETS];
extern const struct sock_fprog vt_seccomp_addons[VT_SECCOMP_ADDONS][VT_SOCKETS_SETS];
