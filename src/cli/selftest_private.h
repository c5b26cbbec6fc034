/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the self-test share. selftest.c prepares, has all acts tried and rules on each
 * property; selftest_try.c tries one.
 */
#pragma once

#include <limits.h>
#include <linux/filter.h>

#include "cli/selftest.h"
#include "cli/world.h"
#include "host/host.h"

/* What a run needs and a report does not. */
struct vt_selftest_session {
	struct vt_selftest *test;
	struct vt_policy *policy;
	struct vt_host host;
	struct vt_world world;
	char program[PATH_MAX];
	int signal_fd;
	int progress;
	unsigned allowed;          /* VT_BY_* that the policy has */
	bool writes;               /* a cell can write the folder that is granted for writing */
	bool bare;                 /* cells have no namespaces */
	bool others;               /* and are of another user than the caller */
	struct sock_fprog profile; /* the user's own, in the report's arena; len 0: none */
};

/*
 * Tries one act, unless the policy allows it: outside, where it must be reached, and then inside a
 * cell. tried->outcome says what came of it.
 */
void vt_selftest_try(struct vt_selftest_session *s, struct vt_tried *tried);

/* Whether grants for writing work at all: else an act that needs one is denied for nothing. */
bool vt_selftest_can_write(struct vt_selftest_session *s);
