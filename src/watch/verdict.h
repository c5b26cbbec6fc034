/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a call ended: a pure function of what the supervisor found. One cause, one status.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/status.h"
#include "watch/folder.h"

/* Which of the supervisor's own reasons ended the cell, if one did: the first that was seen. */
enum vt_stop {
	VT_STOP_NONE,     /* the occupant ended by itself */
	VT_STOP_DEADLINE,
	VT_STOP_CPU,
	VT_STOP_MEMORY,
	VT_STOP_TMP,
	VT_STOP_CANCEL,
};

struct vt_plan;

/* All that was found out about a call. */
struct vt_findings {
	bool          failed;      /* the cell could not be made, or the program not executed */
	/* then: what happened; step VT_STEP_EXEC is the program's own fault */
	struct vt_err failure;
	bool          ended;       /* the occupant's wait status is known */
	int           wait_status;
	enum vt_stop  stop;
	int           stop_signal; /* a cancel by a signal to vitro: which; 0: none */
	bool          unmeasured;  /* of a limit's stop: not passed; a look took too long */
	enum vt_folder_odd tmp_odd; /* of VT_STOP_TMP: why, where it is not the size */
	int64_t       oom_kills;   /* by the cell's cgroup */
	int64_t       cpu_ns;      /* that the cell used in all */
	/* the limits, for the message; 0 or less: not known */
	int64_t wall_ms, cpu_ms, memory_bytes, file_mb, tmp_bytes;
	/* wall_ms is shorter than the policy's: who made the call asked for it */
	bool    own_deadline;
	/* the caller's own limit of a file's size, below file_mb; 0: it is not */
	int64_t lower_file_kb;
};

/*
 * exit_code and signal say how the occupant ended; where it was killed with its cell before it
 * could end, signal is SIGKILL. Where it could not be executed, exit_code is 126 or 127.
 */
struct vt_verdict {
	enum vt_status status;
	int  exit_code;      /* -1: none */
	int  signal;         /* 0: none */
	int  cancel_signal;  /* the signal to vitro that cancelled the call; 0: none */
	char type[24];       /* "Timeout"; "" where the status is ok */
	char message[640];   /* "the call ran past its 0.5 s deadline (limits.wall_ms)" */
};

/* The limits of a plan. A call's own deadline, and what it used, are for its owner to add. */
void vt_findings_take_limits(struct vt_findings *findings, const struct vt_plan *plan);

/*
 * The first of these that was found decides: a failure before the program ran, or to watch it where
 * no kill for memory explains that; the supervisor's own stop; an OOM kill in the cell; the
 * occupant's wait status. None of them: the call is lost.
 */
void vt_verdict_reach(const struct vt_findings *findings, struct vt_verdict *ret_verdict);

/* Of a call that could not be made, or whose cell could not be: for this reason. */
void vt_verdict_fail(struct vt_verdict *ret_verdict, const struct vt_err *why);

/* Another status, and what is said for it; how the occupant ended stays. */
void vt_verdict_set(struct vt_verdict *verdict, enum vt_status status, const char *message);

/* The same of one that has waited for a cell for too long. */
void vt_verdict_no_cell(struct vt_verdict *verdict);

/* Of a call of which nothing is known. */
void vt_verdict_lose(struct vt_verdict *ret_verdict);

/* Of a tool that said by itself what went wrong. What it says is cut where it is too long. */
void vt_verdict_tool_failed(struct vt_verdict *ret_verdict, const char *type, const char *message);

/* Of a tool that would be ok, had it given a result. */
void vt_verdict_no_result(struct vt_verdict *ret_verdict);

/*
 * Of one that broke the rules of its socket: EMSGSIZE: with a message longer than limit_bytes;
 * ENOBUFS: it does not read; else with a message that is malformed.
 */
void vt_verdict_bad_talk(struct vt_verdict *ret_verdict, int num, int64_t limit_bytes);

/* Of an evaluation whose value is larger than limit_bytes, if it ended well. */
void vt_verdict_report_cut(struct vt_verdict *verdict, int64_t limit_bytes);

/* What `vitro run` exits with: the design's table. */
int vt_verdict_exit_code(const struct vt_verdict *verdict);
