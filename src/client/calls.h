/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a tool host that are not over, by number and by id. They are whoever's made them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "tool/set.h"
#include <vitro.h>

/* The longest id, with its NUL. */
enum { VT_CALL_ID = 64 };

struct vt_call {
	struct vt_call *next, **before;             /* all of them, or those that are over */
	struct vt_call *next_by_number, *next_by_id;

	uint64_t        number;
	char            id[VT_CALL_ID];
	bool            listed;    /* it is in the table */
	bool            cancelled; /* the supervisor was asked to */
	struct vt_tool *tool;      /* a reference; NULL where there is none of that name */

	void       *user;
	void      (*on_output)(void *user, int stream, const char *bytes, size_t len);
	void      (*on_log)(void *user, const char *level, const char *text);
	void      (*on_call)(void *user, vitro_question *question, const char *tool,
			     const char *arguments);
	vitro_done *done;

	struct vt_str   logs;      /* of its result */
	char           *traceback; /* of its error; NULL: none was told */
	bool            waited;    /* somebody waits for the result */
	vitro_result   *result;    /* once it is over */
	vitro_question *asks;      /* what it waits for */
	size_t          ask_count;
	vitro_question *question;  /* that it was made for; NULL: none */
	unsigned        depth;     /* of questions that led to it */
};

struct vt_calls {
	struct vt_call  *first;
	struct vt_call **by_number, **by_id;
	size_t           buckets, count; /* buckets: 0 or a power of two */
};

void vt_calls_done(struct vt_calls *calls);
/* -ENOMEM: it is not in there. */
int vt_calls_add(struct vt_calls *calls, struct vt_call *call);
void vt_calls_remove(struct vt_calls *calls, struct vt_call *call);
struct vt_call *vt_calls_find(const struct vt_calls *calls, uint64_t number);
struct vt_call *vt_calls_find_id(const struct vt_calls *calls, const char *id);
