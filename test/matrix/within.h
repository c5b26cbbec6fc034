/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitro-within: starts a command in a poorer environment than this one, to see what vitro makes of it. System calls
 * can be denied, Docker's profile installed, capabilities taken away, and Landlock made to look older. A tool of
 * the tests; it exits with 125 and a message where it cannot do what it was asked.
 */
#pragma once

#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MAX_DENIED = 32, MAX_MOMENTS = 8 };

struct denial {
	int call;
	int error;
};

/* A command that is run each time before a call happens: so that a test is there at the right moment. */
struct moment {
	int call;
	const char *command;
};

struct environment {
	struct denial denied[MAX_DENIED];
	size_t denied_count;
	struct moment moments[MAX_MOMENTS];
	size_t moment_count;
	bool no_userns;
	bool no_passrights;
	int landlock_abi;	 /* 0: as it is */
	const char *oci_profile; /* NULL: none */
	uint64_t caps;		 /* that stay, by number; ~0: all */
	uid_t uid;		 /* (uid_t)-1: as it is; also the group */
};

/* Says what went wrong, with errno's text where error is not 0, and exits. */
_Noreturn void die(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Installs a container profile as Docker writes them, for the capabilities that stay. Returns the highest number of
 * a call that it names.
 */
int install_profile(const struct environment *environment);

/* Adds the rules that make Landlock look like an older one; some ask the notifier, and answer_landlock() answers. */
void add_landlock_rules(scmp_filter_ctx filter, int abi);

/* Answers landlock_create_ruleset() for the kernel, as the given ABI would. */
void answer_landlock(const struct seccomp_notif *question, struct seccomp_notif_resp *reply, int abi);
