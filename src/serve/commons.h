/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is there once in a supervisor, for all its sessions: the loop, its children, the cells,
 * whose turn it is, and how much of everything one client may have, and all of them together. A
 * private supervisor has one session, which may have all that there is; a server has many, of
 * clients that are strangers to each other. Runs in the supervisor.
 */
#pragma once

#include <sys/types.h>

#include "host/host.h"
#include "serve/cells.h"
#include "serve/client.h"
#include "serve/metrics.h"
#include "serve/offer.h"
#include "serve/room.h"
#include "serve/scout.h"
#include "serve/turns.h"
#include "watch/loop.h"

struct vt_session;

/* What one client may have at once, over all its connections where nothing else is said. */
struct vt_session_limits {
	size_t   frame_max;   /* bytes of a frame */
	int64_t  frame_ns;    /* within which it has come whole; INT64_MAX: it may take its time */
	int64_t  hello_ns;    /* and the first of all */
	size_t   bytes_max;   /* of all calls that are under way */
	size_t   sources_max; /* of one policy */
	/*
	 * Bytes that wait on one connection to be read: from here on it is not listened to; and
	 * from here on what calls give is dropped.
	 */
	size_t   queued_slow, queued_max;
	size_t   unread_max;  /* the same of all its connections */
	size_t   kept_max;    /* bytes of environments, and of what pools stand on */
	unsigned calls_max;   /* under way */
	unsigned live_max;    /* of these, that run */
	unsigned pools_max;
	/*
	 * That stand on cells which no other pool of the same connection does; and when most that
	 * there can be of these are taken, by whomever.
	 */
	unsigned cells_max, cells_few;
	unsigned ready_max;   /* of one pool */
};

/* A call that is over, whoever made it. What is pointed to is there until the call-back returns. */
struct vt_call_over {
	uid_t                    uid;
	pid_t                    pid;    /* the client's; 0: not known */
	const char              *tool, *id;
	const char              *words;  /* of a command: each with its NUL */
	size_t                   words_len;
	const struct vt_cells   *cells;  /* NULL: it was refused before */
	const struct vt_outcome *outcome;
	int64_t                  ns;     /* from when it was asked for */
};

/* What a client may be told of a call that is over. */
enum vt_telling {
	VT_TELL_NOW,
	VT_TELL_LATER, /* after vt_session_settle() */
	VT_TELL_LOST,  /* never: what it gave could not be recorded */
};

/* What all sessions of a supervisor share, and whom they tell. */
struct vt_commons {
	struct vt_loop          *loop;
	struct vt_children       children;
	struct vt_bulk_spare     spare;       /* of large calls and results, for those to come */
	struct vt_timer          spare_timer; /* none came */
	struct vt_cells_maker    cells;
	struct vt_pool_room      room;  /* for cells, where clients share it */
	struct vt_scouts         scouts;
	struct vt_turns          turns;
	struct vt_session_limits limits;
	bool   shared;         /* by clients that are strangers to each other */
	bool   ending;         /* no further call is taken */
	struct vt_offer *offer; /* tools of the supervisor's own; NULL: none */
	/* points to true: nor is one that could not be recorded; NULL: never */
	const bool *unrecorded;
	struct vt_client *clients; /* all of them */
	uint64_t sessions;     /* that there were */
	unsigned ready;        /* cells that wait at the least, of all clients' pools */
	/*
	 * Bytes of all clients: frames that have not come whole; calls that are under way; what
	 * waits to be read; what is kept as long as connections and pools are there.
	 */
	size_t held, held_max;
	size_t kept, kept_max;
	size_t call_bytes, call_bytes_max;
	size_t unread, unread_max;
	void  *user;
	/* It is over, and is to be freed. From the loop, where nobody is at work on it. */
	void (*ended)(void *user, struct vt_session *session);
	/*
	 * Before its client is told, if there is one, and whether that may be now. NULL: nobody
	 * wants to know.
	 */
	enum vt_telling (*call_over)(void *user, const struct vt_call_over *over);
	/* Something was refused. NULL: nobody wants to know. */
	void (*denied)(void *user, enum vt_denial_kind what);
};

/*
 * For one client, who may have all that there is. host is borrowed. The call-backs are the owner's
 * to set.
 */
void vt_commons_init(struct vt_commons *commons, struct vt_loop *loop, struct vt_host *host);
/* For many, who share what there is room for. */
void vt_commons_share(struct vt_commons *commons, const struct vt_room *room);
/* After all sessions: ends all cells, and waits for that. */
void vt_commons_done(struct vt_commons *commons);
/* Memory was used that may not be needed soon: it goes back in a while. */
void vt_commons_trim_later(struct vt_commons *commons);
