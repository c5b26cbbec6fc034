/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call, from its plan to its result: a state machine on an epoll loop that owns the cell and
 * its pipes. Runs in the supervisor; it never runs untrusted code, and never waits for anything
 * that a cell could withhold.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "plan/plan.h"
#include "watch/result.h"
#include "watch/stream.h"

struct vt_run_io {
	int            in_fd;    /* the occupant's standard input; -1: nothing */
	bool           in_relay; /* only its text is handed on, through a pipe */
	struct vt_sink out, err;
	bool           reports;  /* it tells of itself on VT_REPORT_FD: watch/report.h */
	/*
	 * A signalfd whose signals cancel the call; -1: none. Those that come too late for that
	 * stay in it.
	 */
	int            signal_fd;
};

/*
 * Runs the call. Returns 0 with a result for everything that happened to the call, refusals of the
 * kernel included; an error only where there is no result to speak of.
 */
int vt_run(const struct vt_plan *plan, const struct vt_run_io *io, struct vt_result *ret_result,
	   struct vt_err *err);
