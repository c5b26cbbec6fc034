/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of the supervisor's that looks at what a cell uses, and reports. It is one of its own
 * since a look waits for locks of the processes that it looks at, and those can be made to wait for
 * long; the supervisor, which holds the deadline, waits for nobody.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "launch/spawn.h"
#include "watch/usage.h"

struct vt_looker {
	pid_t pid;       /* 0: none */
	int   report_fd; /* reports come here; owned */
};

/* One look: what vt_usage_look() said. */
struct vt_look_report {
	int             result; /* 0 or a negative errno */
	struct vt_usage usage;
};

/*
 * Starts it. It looks at once, then as often as the limits call for. proc_fd may be -1 where
 * neither memory nor CPU time is looked at; then nameless files are not seen. `as`, if it is not
 * NULL, is as whom it looks: a root without CAP_SYS_PTRACE sees less of a cell than the cell's own
 * user.
 */
int vt_looker_start(struct vt_looker *looker, int proc_fd, int root_fd,
		    const struct vt_usage_limits *limits, const struct vt_outer *as,
		    struct vt_err *err);

/* The next report, without waiting: 1 if there was one, 0 if not, -EPIPE when it is gone. */
int vt_looker_read(const struct vt_looker *looker, struct vt_look_report *ret_report);

/* Tells it to end, without waiting: it may be in the middle of a look. A zeroed looker is fine. */
void vt_looker_stop(const struct vt_looker *looker);

/* Ends it. A zeroed looker is fine. */
void vt_looker_done(struct vt_looker *looker);
