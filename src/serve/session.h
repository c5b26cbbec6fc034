/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client: what it asks for in frames, and what it is told. It makes pools, and calls in them.
 * Runs in the supervisor, on its loop; the client is the caller himself, so that it may ask for
 * whatever he may.
 *
 * A head has "do" from the client, "is" from the supervisor. What is not understood ends the
 * session. docs/wire.md has every message and every field.
 *
 * A server (serve/server.h) has many clients, which are not its children. What they say at first
 * counts for them there: the folder where relative names of programs begin, and their environment.
 * A private supervisor has these from its client already, and takes neither.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "serve/commons.h"

/* A client that is there. */
struct vt_session_peer {
	int   fd;         /* taken over */
	bool  wary;       /* base/stranger.h */
	int   program_fd; /* the file of its own program; taken over; -1: not known */
	uid_t uid;
	pid_t pid;
	int64_t since;    /* vt_client_since() */
};

/* Closes what is the peer's, of one that never came to a session. */
void vt_session_turn_away(struct vt_commons *commons, const struct vt_session_peer *peer);

/* On failure the peer is turned away. */
int vt_session_new(struct vt_commons *commons, const struct vt_session_peer *peer,
		   struct vt_session **ret_session, struct vt_err *err);
/* Calls that run are cancelled, and end by themselves. */
void vt_session_free(struct vt_session *session);

/* Tells a line to the client, if it has these cells; NULL: in any case. */
void vt_session_log(struct vt_session *session, const struct vt_cells *cells, int level,
		    const char *text);

/* The supervisor's own tools were changed: tells the client, if it has asked for them. */
void vt_session_tell_tools(struct vt_session *session);

/*
 * Tells results that were kept back, where their lines were written by now; else those that were so
 * for too long by that time are told to be lost.
 */
void vt_session_settle(struct vt_session *session, bool written, int64_t now);

/*
 * How many calls are not over, or not told to be; and whether something waits for the client to
 * read it.
 */
unsigned vt_session_calls(const struct vt_session *session);
bool     vt_session_is_unread(const struct vt_session *session);
/* Ends all calls. */
void vt_session_cancel(struct vt_session *session);
/* The last word. */
void vt_session_bye(struct vt_session *session);

/* The owner's. */
void *vt_session_user(const struct vt_session *session);
void  vt_session_set_user(struct vt_session *session, void *user);
