/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of a pool, seen by whoever made it: what to run, and what to tell about it. It belongs
 * to its maker, and is the pool's from vt_pool_submit() until done() is told, which happens once,
 * whatever goes wrong, and never from within vt_pool_submit().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/frame.h"
#include "watch/result.h"

struct vt_pool_call;
struct vt_pool;
struct vt_warm;

/* How a call ended. What is pointed to is there until done() returns. */
struct vt_outcome {
	struct vt_result result; /* its verdict, output and usage */
	const char      *value;  /* where the status is ok: bytes that nobody looked into */
	size_t           value_len;
	bool             came_to_cell; /* it was handed to one: what holds its cell held it */
	/*
	 * Where a tool said itself what went wrong, its own words, which may be anything; else
	 * NULL.
	 */
	const char      *error_type, *error;
	size_t           error_len;
	/* the memory that value is in, which may be taken; NULL: none */
	struct vt_frames_given *given;
};

/* That of a lost call, until more is known. */
static inline void vt_outcome_init(struct vt_outcome *outcome)
{
	vt_result_init(&outcome->result);
	outcome->value = outcome->error_type = outcome->error = NULL;
	outcome->value_len = outcome->error_len = 0;
	outcome->came_to_cell = false;
	outcome->given = NULL;
}

struct vt_pool_events {
	/* What it prints, as it comes: stream 1 or 2. NULL: only the result is of interest. */
	void (*output)(struct vt_pool_call *call, int stream, const char *bytes, size_t len);
	void (*log)(struct vt_pool_call *call, const char *level, const char *text, size_t len);
	/* It calls a tool. The answer is given by vt_pool_answer(), now or later. */
	void (*ask)(struct vt_pool_call *call, uint64_t id, const char *tool, const char *arguments,
		    size_t len);
	void (*done)(struct vt_pool_call *call, const struct vt_outcome *outcome);
	/*
	 * Whether so much waits to be told already that the cell had better wait: nothing more is
	 * read from it until vt_pool_resume(). NULL: never.
	 */
	bool (*full)(struct vt_pool_call *call);
	/* So many bytes of answers wait until it hears them. NULL: nobody counts them. */
	void (*unheard)(struct vt_pool_call *call, size_t bytes);
};

struct vt_pool_call {
	/* the maker's; name and arguments are borrowed until done() */
	const struct vt_pool_events *events;
	const char *name; /* the tool, NUL, the call's id */
	size_t      name_len;
	/* of a command: the program's path and the words, each with its NUL */
	const char *arguments;
	size_t      arguments_len;
	bool        command;   /* the pool is one of commands */
	const char *input;     /* then: what it reads */
	size_t      input_len;
	bool        within;  /* a call made it, and not the program */
	int64_t     wall_ms; /* a shorter deadline than the plan's; 0: the plan's */
	/* from when on it waits for a cell, on vt_clock_now(); 0: from now on */
	int64_t     since;

	/* the pool's */
	struct vt_pool *pool;
	struct vt_warm *warm;         /* where it runs */
	struct vt_pool_call *next, **link; /* among those that wait; link is NULL otherwise */
	uint64_t        refresh;      /* of the hull: with it, it may begin */
	int64_t         due;          /* until when it waits at the most */
};

/* Answers what a call asked. Where it is over, or the id is none, nothing happens. */
void vt_pool_answer(struct vt_pool_call *call, uint64_t id, bool ok, const char *body, size_t len);

/* Ends it: it is `cancelled`, unless it is over. */
void vt_pool_cancel(struct vt_pool_call *call);
