/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result as a client has it: made once, from what the supervisor said or by the client itself,
 * and not changed after that. It belongs to nobody but the caller.
 */
#pragma once

#include "client/peer.h"
#include <vitro.h>

/* Bytes that are counted. */
struct vt_bytes {
	const char *at;
	size_t      len;
};

struct vitro_result {
	enum vitro_status  status;
	const char        *call_id;
	struct vt_bytes    value;      /* at is NULL unless the status is ok */
	struct vt_bytes    out, err;
	int64_t            dropped_out, dropped_err;
	int                exit_code, signal;
	struct vitro_usage usage;
	const char        *type, *message; /* NULL where the status is ok */
	bool               is_printed; /* the value is what a command printed */
	bool               came_to_cell;
	bool               unreaped;   /* the cell did not go in time */
	const char        *guarded;    /* JSON of what became of protected names; NULL: nothing */
	const char        *isolation;  /* JSON; NULL: it came to no cell */
	struct vt_bytes    logs;       /* JSON objects with commas between them */
	const char        *traceback;  /* of the error; or NULL */
	/* of what was taken as it came; NULL: all is in the result itself */
	void              *memory;
	char              *json;       /* once it was asked for */
};

/*
 * A copy of what parts has, in memory of its own, but for value where parts->memory is set: that is
 * taken over. It is never NULL: where there is no memory, it is one result that says so, and is not
 * freed.
 */
vitro_result *vt_result_new(const struct vitro_result *parts);

/* That one. */
vitro_result *vt_result_no_memory(void);

/* The parts of a result that says why there was no call, or no end of it that is known. */
struct vitro_result vt_result_failed(enum vitro_status status, const char *message);

/*
 * Reads a "done" into *ret_parts, which points into the message. Its value is not looked at.
 * -EBADMSG: it breaks the protocol.
 */
int vt_result_read(const struct vt_message *message, struct vitro_result *ret_parts,
		   struct vt_err *err);
