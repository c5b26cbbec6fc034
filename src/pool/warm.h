/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell of a pool, from the order to make it to its end, with the one call that it has. Its owner is the
 * pool, which frees it when it is told that it is gone.
 *
 *	MAKING ──► BUILT ──► ENTERING ──► PARKED ──► RUNNING ──► OVER ──► ENDING ──► gone
 *	   │         │          │           │           │                   ▲
 *	   └─────────┴──────────┴───────────┴───────────┴───────────────────┘
 *
 * OVER is a cell whose call has its result, and which nobody has killed yet: that can wait until nobody
 * is waiting for anything else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launch/spawn.h"
#include "launch/talk.h"
#include "plan/plan.h"
#include "pool/call.h"
#include "watch/broker.h"
#include "watch/look.h"
#include "watch/loop.h"

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

/* What its owner is told. */
struct vt_warm_owner {
	void *user;
	void (*moved)(struct vt_warm *warm, enum vt_warm_state from);
	void (*failed)(struct vt_warm *warm, const struct vt_err *err); /* it was never parked */
	void (*gone)(struct vt_warm *warm); /* nothing of it is left */
};

enum { VT_WARM_STREAMS = 2 };

struct vt_warm {
	struct vt_warm             *next, **link; /* the owner's */
	const struct vt_warm_owner *owner;
	struct vt_loop             *loop;
	const struct vt_plan       *plan;
	enum vt_warm_state          state;
	uint64_t                    number;
	uint32_t                    slot; /* which of the pool's ids it has */
	struct vt_cell              cell; /* its init is the spawner's child, and has no pid here */
	struct vt_watch             init, occupant, talk, pipes[VT_WARM_STREAMS];
	int                         root_fd, proc_fd;
	int                         scratch_fd; /* on the tmpfs that it writes to; -1: none */
	pid_t                       pid; /* the occupant's; 0: there is none, or it was reaped */

	/* of its call */
	struct vt_pool_call    *call;
	struct vt_talk_in  in;
	struct vt_str      going; /* messages to the occupant that its socket did not take yet */
	size_t             going_at;
	bool               held; /* nobody reads what it says, until vt_warm_resume() */
	struct vt_capture  captures[VT_WARM_STREAMS];
	struct vt_look     look;
	struct vt_broker   broker;
	struct vt_findings findings;
	int                broken;  /* what was wrong with what it said; 0: nothing */
	int64_t            started, deadline, given_up;
	int64_t            over; /* since when it has been */
};

/* Orders it from the spawner at the other end of spawner_fd. */
int vt_warm_new(const struct vt_warm_owner *owner, struct vt_loop *loop, const struct vt_plan *plan,
		uint64_t number, uint32_t slot, int spawner_fd, struct vt_warm **ret_warm, struct vt_err *err);

/* What the spawner says about it, init, and the zygote. Descriptors are taken over. */
void vt_warm_note(struct vt_warm *warm, const struct vt_note *note, int fds[VT_NOTE_FDS]);

/* Orders an occupant for one that is built. null_fd is what it reads. */
void vt_warm_enter(struct vt_warm *warm, int zygote_fd, int null_fd);

/* Hands a call to one that is parked. */
void vt_warm_run(struct vt_warm *warm, struct vt_pool_call *call);

/* To one that runs. */
void vt_warm_answer(struct vt_warm *warm, uint64_t id, bool ok, const char *body, size_t len);

/* Hears one again that was kept waiting. */
void vt_warm_resume(struct vt_warm *warm);

/* Ends its call for this reason, and it. */
void vt_warm_stop(struct vt_warm *warm, enum vt_stop why);

/* When something is due that only the clock tells; INT64_MAX: never. */
int64_t vt_warm_due(const struct vt_warm *warm);
void    vt_warm_tick(struct vt_warm *warm, int64_t now);

/* Ends one whose call, if it had any, is over. */
void vt_warm_kill(struct vt_warm *warm);

/* Waits for the end of one whose init is dead. */
void vt_warm_await(struct vt_warm *warm);

/* NULL is fine. It must be gone. */
void vt_warm_free(struct vt_warm *warm);
