/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that vitro uses or could use on this machine, each tried for real, with the reason
 * where it does not work and what an administrator can do about it. For `vitro doctor`: it takes
 * tens of milliseconds and makes namespaces, mounts and cgroups, all of which are gone when it
 * returns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/host.h"

enum vt_state { VT_STATE_WORKS, VT_STATE_PARTLY, VT_STATE_NOT, VT_STATES };

struct vt_finding {
	const char   *name;        /* "user namespaces", static text */
	enum vt_state state;
	bool          needed;      /* without it vitro makes no cell here, whatever the policy */
	bool          follows; /* not tried, since something above that it needs does not work */
	char          why[320];    /* the detail or the reason; "" where there is nothing to say */
	char          advice[768]; /* "" where there is nothing to do */
};

enum { VT_REPORT_MAX = 32 };

struct vt_report {
	struct vt_finding findings[VT_REPORT_MAX];
	size_t            count;
	const char       *container; /* "Docker", ... that vitro runs in; NULL: in none that
					shows */
};

/* Tries all. Never fails: what cannot be tried is a finding. */
void vt_report_make(const struct vt_host *host, struct vt_report *ret_report);

/* Whether everything that is needed works. */
bool vt_report_ok(const struct vt_report *report);

/* "works", "partly", "not" */
const char *vt_state_name(enum vt_state state);
