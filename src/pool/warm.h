/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell of a pool, from the order to make it to its end, with the one call that it has. Its owner
 * is the pool, which frees it when it is told that it is gone.
 *
 *	MAKING ──► BUILT ──► ENTERING ──► PARKED ──► RUNNING ──► OVER ──► ENDING ──► gone
 *	   │         │          │           │           │                   ▲
 *	   └─────────┴──────────┴───────────┴───────────┴───────────────────┘
 *
 * PARKED is a cell of which both have told: the zygote who its occupant is, and that one that it is
 * ready. OVER is a cell whose call has its result, and which nobody has killed yet: that can wait
 * until nobody is waiting for anything else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launch/spawn.h"
#include "launch/talk.h"
#include "plan/plan.h"
#include "pool/call.h"
#include "pool/children.h"
#include "watch/broker.h"
#include "watch/look.h"
#include "watch/loop.h"
#include "watch/modes.h"

enum vt_warm_state {
	VT_WARM_MAKING,   /* the spawner has the order */
	VT_WARM_BUILT,    /* init waits in it */
	VT_WARM_ENTERING, /* the zygote has the order */
	VT_WARM_PARKED,
	VT_WARM_RUNNING,
	VT_WARM_OVER,
	VT_WARM_ENDING, /* killed, and not gone yet */
	VT_WARM_STATES
};

struct vt_warm;
struct vt_pool_zygote;

/* What its owner is told. */
struct vt_warm_owner {
	void *user;
	void (*moved)(struct vt_warm *warm, enum vt_warm_state from);
	bool (*is_dying)(void *user); /* what it lives in is on its way to its end */
	void (*failed)(struct vt_warm *warm, const struct vt_err *err); /* it was never parked */
	/* Whether what a call may have made is judged before the call is told to be over. */
	bool (*is_judged)(struct vt_warm *warm);
	/* Has it judged: a note tells of the end. False: nobody does, or not now. */
	bool (*judge)(struct vt_warm *warm);
	/* Nothing of it runs any more. It is freed later, when nobody is at work on it. */
	void (*gone)(struct vt_warm *warm);
};

enum { VT_WARM_STREAMS = 2 };

/* Of one without namespaces: bare.h. */
struct vt_warm_bare {
	struct vt_watch status;   /* what init says; its descriptor is the cell's */
	struct vt_modes modes;
	pid_t           occupant; /* init's child; 0: there is none */
	bool            unborn;   /* init was ordered, and nobody has heard of it */
	bool            empty;    /* no process is left but init */
	bool            burying;  /* init was killed; our child now ends what is left */
	bool            unburied; /* and nobody could */
};

struct vt_warm {
	struct vt_warm             *next, *before; /* the owner's */
	const struct vt_warm_owner *owner;
	struct vt_loop             *loop;
	struct vt_children         *children;
	const struct vt_plan       *plan;
	enum vt_warm_state          state;
	uint64_t                    number;
	uint32_t                    slot; /* which of the pool's ids it has */
	/* which no other has, until it is gone; VT_PLACES: there was none */
	uint32_t                    place;
	struct vt_cell              cell; /* its init is the spawner's child, and has no pid here,
					     unless it is bare */
	struct vt_watch             init, occupant, talk, pipes[VT_WARM_STREAMS];
	int                         root_fd, proc_fd;
	/* on the tmpfs that it writes to; -1: none, or it is bare */
	int                         scratch_fd;
	uint64_t                    learned; /* the owner's: what its zygote knew */
	/* the owner's: who was told to fork its occupant; NULL: nobody */
	struct vt_pool_zygote      *zygote;
	/*
	 * which `occupant` watches: the occupant, of a bare one its init; pid 0: there is none, or
	 * it was reaped
	 */
	struct vt_child             child;
	struct vt_warm_bare         bare;
	bool                        parked; /* it said so */
	bool                        gone;   /* its owner was told */
	int64_t                     since;  /* when it came into its state */

	/* of its call */
	struct vt_pool_call    *call;
	struct vt_talk          result; /* while what it made is judged; kind 0: none */
	bool                    judging, judged;
	bool                    unjudged; /* of its cell, there may be what it made since, too */
	json_t                 *guarded; /* what came of that; NULL: nothing */
	struct vt_talk_in  in;
	/*
	 * What the occupant's socket did not take yet: of the call's arguments, and messages behind
	 * them.
	 */
	const char        *rest;
	size_t             rest_len;
	struct vt_str      going;
	size_t             going_at;
	bool               held; /* nobody reads what it says, until vt_warm_resume() */
	struct vt_capture  captures[VT_WARM_STREAMS];
	struct vt_look     look;
	struct vt_broker   broker;
	struct vt_findings findings;
	int                broken;  /* what was wrong with what it said; 0: nothing */
	int64_t            started, deadline, given_up;
	int64_t            warned; /* it was told to end: until when it may; 0: it was not */
	int64_t            entered; /* when its occupant was ordered */
	/* what it used before there was a call: to seal itself, to rehearse */
	int64_t            parked_cpu;
	int64_t            ended_cpu; /* of an occupant that has ended, with those it waited for */
};

/* Orders it from the spawner at the other end of spawner_fd. A bare one is BUILT already. */
int vt_warm_new(const struct vt_warm_owner *owner, struct vt_loop *loop,
		struct vt_children *children,
		const struct vt_plan *plan, uint64_t number, uint32_t slot, uint32_t place,
		int spawner_fd, struct vt_warm **ret_warm, struct vt_err *err);

/* What the spawner says about it, init, and the zygote. Descriptors are taken over. */
void vt_warm_note(struct vt_warm *warm, const struct vt_note *note, int fds[VT_NOTE_FDS]);

/* Orders an occupant for one that is built. awaited: a call waits for it. */
void vt_warm_enter(struct vt_warm *warm, int zygote_fd, bool awaited);

/*
 * Hands a call to one that is parked. False: its occupant is dead already, and has not heard of the
 * call, which can be given to another.
 */
bool vt_warm_run(struct vt_warm *warm, struct vt_pool_call *call);

/* To one that runs. */
void vt_warm_answer(struct vt_warm *warm, uint64_t id, bool ok, const char *body, size_t len);

/* Hears one again that was kept waiting. */
void vt_warm_resume(struct vt_warm *warm);

/* Takes what an occupant that ends has said by now, in its turn or not. */
void vt_warm_hear_last(struct vt_warm *warm);

/*
 * Ends its call for this reason, and it; after the plan's grace, unless it is asked for once more.
 */
void vt_warm_stop(struct vt_warm *warm, enum vt_stop why);

/*
 * The same for a failure that is not the call's own; where its result is there already, that
 * counts.
 */
void vt_warm_lose(struct vt_warm *warm, const struct vt_err *why);

/* Its init has ended: so does all of it. */
void vt_warm_lose_init(struct vt_warm *warm);

/* One that was never parked is given up for this reason. */
void vt_warm_fail(struct vt_warm *warm, const struct vt_err *why);

/* The same of one whose occupant ended, with this status, before it was ready. */
void vt_warm_lose_entering(struct vt_warm *warm, int status);

/* When something is due that only the clock tells; INT64_MAX: never. */
int64_t vt_warm_due(const struct vt_warm *warm);
void    vt_warm_tick(struct vt_warm *warm, int64_t now);

/* What came of a look, as JSON of a result: watch/guarded.h. NULL: nothing. */
json_t *vt_warm_read_judged(const struct vt_plan *plan, int fd);

/* What a call may have made was judged; fd has what came of it, -1: nothing. Borrowed. */
void vt_warm_judged(struct vt_warm *warm, int fd);

/* Kills it, without grace. A call that it still has is concluded when all of it is gone. */
void vt_warm_kill(struct vt_warm *warm);

/* Looks again for the end of an occupant that somebody else was to be told of first. */
void vt_warm_reap(struct vt_warm *warm);

/*
 * Nobody waits longer for the end of one that was killed: what is known of it by now is all there
 * is.
 */
void vt_warm_leave(struct vt_warm *warm);

/* Releases what a gone one has on the host: -EBUSY if the kernel is not done with it. */
int vt_warm_release(struct vt_warm *warm);

/* NULL is fine. It must be gone. Waits for nothing where it was released. */
void vt_warm_free(struct vt_warm *warm);
