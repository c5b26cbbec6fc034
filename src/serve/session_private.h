/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a session share. session.c speaks with the client, calls.c makes its calls,
 * tools.c those of the server's own tools, pools.c its pools, and withheld.c keeps results back
 * until they are recorded.
 */
#pragma once

#include "base/frame.h"
#include "base/head.h"
#include "serve/session.h"

enum { VT_SESSION_BUCKETS = 1024 };

struct serve_pool {
	struct serve_pool *next;
	int64_t            number;
	struct vt_cells   *cells; /* which others may share; NULL: it takes no calls */
	char              *path;  /* of a command's program; else NULL */
	unsigned           ready; /* cells that wait at the least */
};

struct serve_call {
	struct vt_pool_call call; /* first: it is found by it */
	struct vt_turn      turn;
	struct vt_commons  *commons;
	struct vt_session  *session; /* NULL: it is gone */
	struct vt_client   *client;  /* held */
	struct serve_call  *next, **link;
	struct vt_cells    *cells;   /* held */
	int64_t             number, pool;
	int64_t             begun;
	uid_t               uid;
	pid_t               pid;
	bool                stream;
	/* the server's tool that it is, in bytes; NULL: as its name says */
	const char         *offered;
	size_t              len; /* of its name and arguments */
	size_t              unheard; /* of answers that it has not heard */
	/* the frame that the arguments are in, where they are not in bytes */
	struct vt_frames_given given;
	char                bytes[]; /* its name, and its arguments if they are small */
};

/* A frame of the client's. */
struct vt_request_frame {
	struct vt_head head;
	const char    *body;
	size_t         len;
};

struct vt_session {
	struct vt_commons   *commons;
	struct vt_session_peer peer;
	struct vt_client    *client; /* held: the peer's process */
	uint64_t             number; /* that no other session has */
	struct vt_watch      socket;
	struct vt_timer      timer; /* goes on with frames; is over */
	struct vt_timer      deadline; /* of its hello, and of a frame that has begun to come */
	struct vt_frames_in  in;
	size_t               held; /* of commons->held, and the client's */
	struct vt_frames_out out;
	size_t               unread; /* of client->unread: what is queued, and withheld */
	struct vt_str        head;
	struct vt_str        environment; /* as it came; and where each of its variables is */
	char               **environ;
	char                *cwd;
	size_t               kept; /* bytes of these, of client->kept */
	struct serve_pool   *pools;
	/* looks at what the next pool is made of; nothing else is heard meanwhile */
	struct vt_scout     *scout;
	struct vt_request_frame asked; /* that pool's, which is still in `in` */
	struct serve_call   *calls[VT_SESSION_BUCKETS];
	unsigned             call_count;
	struct vt_withheld  *withheld; /* results that are not told yet, the oldest first */
	unsigned             withheld_count;
	size_t               withheld_bytes;
	uint32_t             events;  /* that are waited for */
	bool                 greeted, over;
	bool                 full;    /* somebody waits for the client to read */
	bool                 stalled; /* frames that came wait for their turn */
	/* a whole frame came, the last time that some were looked for */
	bool                 took;
	bool                 watches; /* it is told of the supervisor's own tools */
	bool                 turn_over; /* what was asked for took long: others are next */
	void                *user;
};

typedef int vt_session_take(struct vt_session *session, const struct vt_request_frame *frame,
			    struct vt_err *err);

/* ---- to the client: session.c ---------------------------------------------------------------- */

void vt_session_begin(struct vt_session *session, const char *what);
void vt_session_add_text(struct vt_session *session, const char *name, const char *text);
void vt_session_add_int(struct vt_session *session, const char *name, int64_t value);
/*
 * Sends the head that was begun, with a body in parts. given, which may be NULL: the first one's
 * memory.
 */
void vt_session_put(struct vt_session *session, const struct iovec *body, size_t count,
		    struct vt_frames_given *given);
void vt_session_put_bytes(struct vt_session *session, const char *bytes, size_t len);
/* The same of a head that is whole. */
void vt_session_put_made(struct vt_session *session, const char *head, size_t head_len,
			 const struct iovec *body);
/*
 * Whether too much waits to be read, for so many bytes more. Cells wait long before that; but who
 * ends is heard at once, and there may be many.
 */
bool vt_session_is_overfull(const struct vt_session *session, size_t more);
/*
 * Whether its client keeps too much, with so many bytes more: more than one may, or than half of
 * what the others leave.
 */
bool vt_session_keeps_too_much(const struct vt_session *session, size_t more);
/* What it keeps is so many bytes more, or (is_less) less. */
void vt_session_count_kept(struct vt_session *session, size_t bytes, bool is_less);
/* What waits to be read, or to be told, is more or less than it was. */
void vt_session_count_unread(struct vt_session *session);

/*
 * What was asked for took until now: its client is not listened to for a while, so that it has a
 * share of the loop.
 */
void vt_session_pause(struct vt_session *session, int64_t begun);

/* ---- calls: calls.c -------------------------------------------------------------------------- */

vt_session_take vt_session_do_call, vt_session_do_cancel, vt_session_do_answer;

/*
 * Of a call: its name, which is the tool, NUL and the id; its arguments; and what it reads. A
 * command's words come with their NULs, before its input, and its program's path goes in front of
 * them. argv[0] of a program that was named by its path is that path: Python, for one, finds its
 * venv by it.
 */
struct vt_call_parts {
	const char *tool, *id, *path, *words;
	const char *offered; /* what the client calls it, where that is not what its zygote does */
	size_t tool_len, id_len, path_len, words_len, input_len, offered_len;
};

/* The tool and the id. */
bool vt_call_read_name(const struct vt_request_frame *frame, struct vt_call_parts *parts);
/* One that has a copy of them all. NULL: no memory. */
struct serve_call *vt_call_make(const struct vt_call_parts *parts,
				const struct vt_request_frame *frame);

/* NULL: it is over, or never was. */
struct serve_call *vt_session_find_call(struct vt_session *session, int64_t number);
/*
 * Begins it, or refuses it, with its done as any other's. call may be NULL: there was no memory for
 * it.
 */
int vt_session_begin_call(struct vt_session *session, const struct serve_pool *pool, int64_t number,
			  struct serve_call *call, const struct vt_head *head, struct vt_err *err);
/* Tells what became of one. */
void vt_session_tell_done(struct vt_session *session, int64_t number,
			  const struct vt_outcome *outcome,
			  enum vt_telling telling);

/* Of all pools, or of this one: they are cancelled. */
void vt_session_cancel_of(struct vt_session *session, const struct serve_pool *pool);
/* They go on without a session, to their end. */
void vt_session_disown_calls(struct vt_session *session);

/* ---- calls of the server's own tools: tools.c ------------------------------------------------ */

vt_session_take vt_session_do_tool;

/* ---- results whose lines are not written yet: withheld.c ------------------------------------- */

/* Keeps a "done", whose head was begun, until vt_session_settle(). */
void vt_session_withhold(struct vt_session *session, int64_t number, const struct iovec *body,
			 size_t count);
/* Tells a "done" of a call whose result nobody will have. */
void vt_session_tell_lost(struct vt_session *session, int64_t number, const char *why);
void vt_session_drop_withheld(struct vt_session *session);

/* ---- pools: pools.c -------------------------------------------------------------------------- */

vt_session_take vt_session_do_pool, vt_session_do_drop, vt_session_do_learn, vt_session_do_count;

/* Whether one of its pools stands on these. */
bool vt_session_has_cells(const struct vt_session *session, const struct vt_cells *cells);
struct serve_pool *vt_session_find_pool(const struct vt_session *session, int64_t number);
void vt_session_drop_pools(struct vt_session *session);
/* Cells that waited for the client go on. */
void vt_session_resume(struct vt_session *session);
