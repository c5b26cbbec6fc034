/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the tool host share. host.c has the tools, remote.c those of a server, pool.c
 * what their calls are held by, call.c begins and ends calls, dispatch.c hears what comes of them,
 * ask.c answers what they ask for.
 *
 * Call-backs may use the tool host again. So whoever makes one does it last: when it returns, the
 * call may be over and the message gone.
 */
#pragma once

#include "client/calls.h"
#include "client/peer.h"
#include "client/result.h"
#include "tool/command.h"
#include "tool/set.h"
#include <vitro.h>

enum {
	VT_CALL_LOGS = 256 << 10, /* bytes of a call's log lines that are kept */
	VT_CALL_ASKS = 1024,      /* what one call may ask for at once */
	VT_CALL_DEPTH = 16,       /* of calls that call */
};

/* ---- pools: pool.c -------------------------------------------------------------------------- */

enum vt_host_pool_kind {
	VT_HOST_POOL_PROGRAM,
	VT_HOST_POOL_OBJECT,
	VT_HOST_POOL_COMMAND,
	VT_HOST_POOL_PYTHON,
	VT_HOST_POOL_NODE,
	VT_HOST_POOL_NONE, /* of no calls: to learn what the policy comes to */
};

/*
 * One program, or object, or command, or setup of an interpreter, under one policy. The tools that
 * have it share it.
 */
struct vt_host_pool {
	/* before is NULL once it is out of the list: it was refused */
	struct vt_host_pool     *next, **before;
	vitro_toolhost     *host;
	unsigned            users;        /* tools, their running calls among them */
	int64_t             number;
	enum vt_host_pool_kind   kind;
	/* of the program or object, or a command's program or an interpreter as it is typed */
	char               *path;
	char               *setup;        /* of an interpreter, else NULL */
	char               *policy;       /* its sources, as JSON */
	char               *capabilities; /* JSON; NULL until the supervisor has agreed */
	bool                asked;        /* the supervisor was asked for it */
};

/* What makes a pool that one and no other. */
struct vt_host_pool_key {
	enum vt_host_pool_kind kind;
	const char            *path;  /* NULL: none */
	char                  *setup; /* NULL: none */
	char                  *policy;
};

/*
 * The pool of that kind, or a new one, with one user more. setup and policy were allocated, and are
 * taken over, also where it fails. NULL: no memory.
 */
struct vt_host_pool *vt_host_pool_get(vitro_toolhost *host, const struct vt_host_pool_key *key);
/*
 * Asks for all that are new, and waits. Those that are refused are gone; the error is the first
 * one's.
 */
int vt_host_pools_open(vitro_toolhost *host, struct vitro_error *error);
/* Asks for the sums, and waits. */
void vt_host_pools_count(vitro_toolhost *host, struct vitro_counts *ret_counts);
/* One user less: without any, the supervisor is told to drop it. NULL is fine. */
void vt_host_pool_release(struct vt_host_pool *pool);

/* ---- the tool host: host.c ------------------------------------------------------------------ */

/* What a tool does: the owner of a struct vt_tool. */
struct vt_target {
	struct vt_host_pool    *pool;
	char              *symbol;   /* of an object, or a function of an interpreter; else NULL */
	struct vt_template *command;  /* else NULL */
	struct vt_template *input;    /* of a command; NULL: the arguments */
	char             **may_call; /* ending with NULL; NULL: none */
	bool               remote;   /* it is the server's own; then all else is NULL */
};

struct vitro_toolhost {
	struct vt_peer       peer;
	struct vt_toolset   *tools;
	bool                 watched; /* changes are told */
	uint64_t             lists;   /* of a server's tools, that came */
	struct vitro_options options; /* without what it points to */
	vitro_policy        *policy;  /* the tool host's own */
	struct vt_host_pool      *pools;
	/* of no calls, under its own policy; NULL until it is asked for */
	struct vt_host_pool      *own_pool;
	int64_t              last_pool;

	struct vt_calls calls; /* that are not over */
	uint64_t        last_call;
	struct vt_call *ready, **ready_end; /* over, and not told yet */
	size_t          ready_count;
	unsigned        busy; /* how many dispatches are under way, one within the other */
};

static inline void vt_host_log(const vitro_toolhost *host, int level, const char *text)
{
	if (host->options.log)
		host->options.log(host->options.user, level, text);
}

/* Reserved members are 0, so that they can mean something later. */
static inline bool vt_are_clear(void *const *reserved, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (reserved[i])
			return false;
	return true;
}
#define VT_IS_CLEAR(reserved) vt_are_clear(reserved, sizeof(reserved) / sizeof((reserved)[0]))

/* ---- tools of a server's own: remote.c ------------------------------------------------------ */

/* Asks for them, and waits. */
int vt_remote_open(vitro_toolhost *host, struct vt_err *err);
/* They were changed: who watches is told. */
int vt_remote_take(vitro_toolhost *host, const struct vt_message *message, struct vt_err *err);

/* ---- calls: call.c -------------------------------------------------------------------------- */

/*
 * Begins a call. It is in the table, or over already. Whose result is `waited` for, it is in there
 * once it is over, and the call is the caller's to free; else done is told by vt_call_tell(). NULL:
 * no memory.
 */
struct vt_call *vt_call_begin(vitro_toolhost *host, const struct vitro_request *request,
			      vitro_done *done, bool waited, vitro_question *question);

/* Ends a call: its result is made of parts, but for its id and its logs. */
void vt_call_end(vitro_toolhost *host, struct vt_call *call, struct vitro_result *parts);
/* Ends all, since the supervisor is lost. */
void vt_call_end_all(vitro_toolhost *host);
/* Asks the supervisor to end a call. */
void vt_call_cancel(vitro_toolhost *host, struct vt_call *call);
/* Calls done for those that are over by now. How many. */
int vt_call_tell(vitro_toolhost *host);
/* Without a result. */
void vt_call_free(struct vt_call *call);

/* ---- what calls ask for: ask.c -------------------------------------------------------------- */

/*
 * A running tool waits for an answer: from a call that the client made for it, or from the program.
 */
struct vitro_question {
	vitro_toolhost *host;
	struct vt_call *asker; /* NULL: it is over, and so may the tool host be */
	int64_t         number;
	struct vt_call *call;  /* that the client made for it; NULL: the program answers */
	vitro_question *next, **before;
};

/* An "ask" of a call. It may make a call-back. */
int vt_ask_take(vitro_toolhost *host, struct vt_call *call, const struct vt_message *message,
		struct vt_err *err);
/* The call that was made for it is over. */
void vt_ask_answer(vitro_question *question, const vitro_result *result);
/* Nobody waits for answers to that call any more. */
void vt_ask_drop_all(vitro_toolhost *host, struct vt_call *call);

/* ---- what comes: dispatch.c ----------------------------------------------------------------- */

/*
 * After a change outside of a dispatch: the descriptor is readable if there is something to tell.
 */
void vt_dispatch_later(vitro_toolhost *host);
