/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/turns.h"

#include <stddef.h>

#include "base/clock.h"

enum { SHARE = 3 }; /* of one client, to what it leaves to others */

/* ---- the clients that wait ------------------------------------------------------------------ */

static void join(struct vt_turns *turns, struct vt_turner *turner)
{
	turner->next = NULL;
	turner->link = turns->last;
	*turns->last = turner;
	turns->last = &turner->next;
}

static void leave(struct vt_turns *turns, struct vt_turner *turner)
{
	*turner->link = turner->next;
	if (turner->next)
		turner->next->link = turner->link;
	else
		turns->last = turner->link;
	turner->link = NULL;
}

static void stop_waiting(struct vt_turn *turn)
{
	struct vt_turner *turner = turn->turner;

	*turn->link = turn->next;
	if (turn->next)
		turn->next->link = turn->link;
	else
		turner->last = turn->link;
	turn->link = NULL;
	turn->turns->waiting--;
	if (!turner->first)
		leave(turn->turns, turner);
}

/* ---- turns ---------------------------------------------------------------------------------- */

/* However many clients take what they can, each leaves a part of it for the next. */
static bool may_run(const struct vt_turner *turner)
{
	const struct vt_turns *turns = turner->turns;

	return turns->live < turns->live_max && turner->live < turner->live_max &&
	       turner->live < SHARE * (uint64_t)(turns->live_max - turns->live);
}

static void run(struct vt_turn *turn)
{
	turn->turns->live++;
	turn->turner->live++;
}

/* The first in the row that has not its share already. */
static struct vt_turner *choose(const struct vt_turns *turns)
{
	struct vt_turner *turner = turns->first;

	while (turner && !may_run(turner))
		turner = turner->next;
	return turner;
}

/* Of each client the oldest are looked at: who came later and waits for less has his word behind
 * them. */
static void expire(struct vt_turns *turns, int64_t now)
{
	for (struct vt_turner *turner = turns->first, *next; turner; turner = next) {
		next = turner->next;
		for (struct vt_turn *turn = turner->first, *later; turn && turn->due <= now;
		     turn = later) {
			later = turn->next;
			stop_waiting(turn);
			turn->turns = NULL;
			turn->expire(turn);
		}
	}
}

/* Where it is not only the next that is waited for, somebody may have waited for too long. */
static void set_timer(struct vt_turns *turns)
{
	int64_t due = choose(turns) ? 0 : INT64_MAX;

	for (const struct vt_turner *turner = turns->first; turner; turner = turner->next)
		due = turner->first->due < due ? turner->first->due : due;
	vt_timer_set(&turns->timer, due);
}

static void fires(struct vt_timer *timer)
{
	struct vt_turns *turns = timer->owner;
	struct vt_turner *turner;

	expire(turns, vt_clock_now());
	while ((turner = choose(turns))) {
		struct vt_turn *turn = turner->first;

		stop_waiting(turn);
		if (turner->link) {
			leave(turns, turner);
			join(turns, turner);
		}
		run(turn);
		turn->begin(turn);
	}
	set_timer(turns);
}

void vt_turns_init(struct vt_turns *turns, struct vt_loop *loop, unsigned live_max)
{
	*turns = (struct vt_turns){ .timer = { .fire = fires, .owner = turns },
				    .live_max = live_max,
				    .last = &turns->first };
	vt_loop_add_timer(loop, &turns->timer);
}

void vt_turns_done(struct vt_turns *turns, struct vt_loop *loop)
{
	vt_loop_remove_timer(loop, &turns->timer);
}

void vt_turner_init(struct vt_turner *turner, struct vt_turns *turns, unsigned live_max)
{
	*turner = (struct vt_turner){ .turns = turns,
				      .live_max = live_max,
				      .last = &turner->first };
}

bool vt_turn_ask(struct vt_turner *turner, struct vt_turn *turn, int64_t due)
{
	turn->turns = turner->turns;
	turn->turner = turner;
	turn->link = NULL;
	/* Nobody passes those that wait already. */
	if (!turner->first && may_run(turner) && !choose(turner->turns)) {
		run(turn);
		return true;
	}
	turn->due = due;
	turn->next = NULL;
	turn->link = turner->last;
	*turner->last = turn;
	turner->last = &turn->next;
	if (!turner->link)
		join(turn->turns, turner);
	turn->turns->waiting++;
	vt_timer_hasten(&turn->turns->timer, choose(turn->turns) ? 0 : due);
	return false;
}

void vt_turn_end(struct vt_turn *turn)
{
	struct vt_turns *turns = turn->turns;

	if (!turns)
		return;
	if (turn->link) {
		stop_waiting(turn);
	} else {
		turns->live--;
		turn->turner->live--;
		if (turns->first)
			vt_timer_hasten(&turns->timer, 0);
	}
	turn->turns = NULL;
	turn->turner = NULL;
}
