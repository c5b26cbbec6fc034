/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a call ended, by the words that results, the wire and the metrics have for it. Pure. The
 * public enum vitro_status has the same numbers.
 */
#pragma once

enum vt_status {
	VT_STATUS_OK,
	VT_STATUS_ERROR,        /* exited non-zero, or could not be executed */
	VT_STATUS_TIMEOUT,
	VT_STATUS_CPU_LIMIT,
	VT_STATUS_MEMORY_LIMIT,
	VT_STATUS_CRASHED,      /* died of a signal */
	VT_STATUS_NO_RESULT,    /* a tool ended without giving one */
	VT_STATUS_RESULT_LIMIT, /* what it gave is too large */
	VT_STATUS_CANCELLED,
	VT_STATUS_REFUSED,      /* the policy cannot be enforced, or the request is not valid */
	VT_STATUS_LOST,         /* the supervisor or the cell's init failed */
	VT_STATUS_COUNT
};

/* "memory_limit"; "unknown" of what is none. */
const char *vt_status_name(enum vt_status status);

/* "MemoryLimit", what its error is called where nobody says more; "" of VT_STATUS_OK. */
const char *vt_status_type(enum vt_status status);

/* The one of that name; -1: there is none. */
int vt_status_find(const char *name);
