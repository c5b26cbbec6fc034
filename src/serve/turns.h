/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may run a call now, where many clients share one supervisor. So many run at once, and no
 * client has more of them than its share, nor more than three times what it leaves to others;
 * whoever wants more waits. When one is over, the clients that wait take turns, and of each its
 * oldest call is next. So a client with a thousand calls keeps one with a single call waiting for
 * no more than one of them.
 *
 * What waits begins from the loop, never from within a function of this file. Runs in the
 * supervisor.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "watch/loop.h"

struct vt_turner;

/* One call's. Its owner embeds it, with the two call-backs set. */
struct vt_turn {
	/* It is its turn. */
	void (*begin)(struct vt_turn *turn);
	/* It has waited for too long, and waits no more. */
	void (*expire)(struct vt_turn *turn);

	struct vt_turns  *turns;  /* NULL: it neither runs nor waits */
	struct vt_turner *turner;
	/* among those of its client that wait; link is NULL otherwise */
	struct vt_turn   *next, **link;
	int64_t           due;
};

/* One client's. */
struct vt_turner {
	struct vt_turns  *turns;
	unsigned          live, live_max;
	struct vt_turn   *first, **last; /* that wait */
	/* among the clients that have some; link is NULL otherwise */
	struct vt_turner *next, **link;
};

struct vt_turns {
	struct vt_timer   timer;
	unsigned          live, live_max;
	unsigned          waiting;
	struct vt_turner *first, **last; /* who is next is first */
};

/* It stays where it is. */
void vt_turns_init(struct vt_turns *turns, struct vt_loop *loop, unsigned live_max);
void vt_turns_done(struct vt_turns *turns, struct vt_loop *loop);

/* It stays where it is, until none of its calls is left. */
void vt_turner_init(struct vt_turner *turner, struct vt_turns *turns, unsigned live_max);

/* Whether it may run now. If not it waits, until `due` on vt_clock_now(). */
bool vt_turn_ask(struct vt_turner *turner, struct vt_turn *turn, int64_t due);

/* It is over, or waits no more. Fine if it did neither. */
void vt_turn_end(struct vt_turn *turn);
