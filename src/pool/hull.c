/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/hull.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/pass.h"

/* How often it is looked for strays that keep it from ending, while nothing else is done. */
enum { SWEEP_MS = 2 };

bool vt_pool_hull_lives(const struct vt_pool_hull *hull)
{
	return hull->child.pid || hull->maker.pid;
}

/* Its last descriptors go when nothing is left of it that runs. */
static void clear(struct vt_pool_hull *hull)
{
	struct vt_err err;

	vt_loop_remove(hull->loop, &hull->notes);
	vt_loop_remove(hull->loop, &hull->end);
	vt_loop_remove(hull->loop, &hull->made);
	for (size_t i = 0; i < VT_HULL_FDS; i++)
		vt_fd_close(&hull->fds[i]);
	/* Folders that will not go hold nothing that runs; the next vitro sweeps them. */
	(void)vt_cell_done(&hull->cell, &err);
	vt_cell_init(&hull->cell);
	hull->ready = hull->ending = hull->doomed = hull->unguarded = false;
	hull->failure.num = 0;
	hull->looks = 0;
}

/* Or, where it is not born, who was to make it. Whoever made folders removes them. */
static void doom(struct vt_pool_hull *hull)
{
	int fd = hull->cell.init_fd >= 0 ? hull->cell.init_fd : hull->cell.maker_fd;

	hull->doomed = true;
	/* Not by its number, which is another's once it was swept. ESRCH: it has ended. */
	if (fd >= 0)
		(void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

void vt_pool_hull_kill(struct vt_pool_hull *hull, const struct vt_err *why)
{
	if (hull->ending || !vt_pool_hull_lives(hull))
		return;
	hull->ending = true;
	hull->ready = false;
	vt_loop_remove(hull->loop, &hull->notes);
	doom(hull);
	hull->is_ending(hull->user, hull->failure.num ? &hull->failure : why);
}

void vt_pool_hull_quit(struct vt_pool_hull *hull)
{
	hull->ready = false;
	if (vt_pool_hull_lives(hull))
		doom(hull);
}

/* Its namespaces are there: the spawner gets the plan, and a zygote can join. */
static void take_namespaces(struct vt_pool_hull *hull, int fds[VT_NOTE_FDS])
{
	const struct vt_note plan = { .kind = VT_NOTE_PLAN };
	struct vt_err err;

	for (size_t i = 0; i < VT_HULL_FDS; i++)
		hull->fds[i] = vt_fd_take(&fds[i]);
	if (vt_pass_send(hull->cell.status_fd, &plan, sizeof(plan), &hull->image_fd, 1, &err) < 0)
		vt_pool_hull_kill(hull, &err);
	else
		hull->is_built(hull->user);
}

/*
 * One at a time: what was asked for while the spawner looks is one more look, after it. Orders
 * without a bound would fill its socket, and so would its answers ours, each waiting for the other.
 */
static void order_refresh(struct vt_pool_hull *hull)
{
	const struct vt_note order = { .kind = VT_NOTE_REFRESH, .cell = hull->refreshes };
	struct vt_err err;

	if (hull->ordered != hull->refreshed || hull->refreshes == hull->ordered)
		return;
	hull->ordered = hull->refreshes;
	if (vt_pass_send(hull->cell.status_fd, &order, sizeof(order), NULL, 0, &err) < 0)
		vt_pool_hull_kill(hull, &err);
}

/* Before anything else that is said of it. */
static void take_birth(struct vt_pool_hull *hull, const struct vt_note *note, int fds[VT_NOTE_FDS])
{
	struct vt_err err;

	if (hull->child.pid || note->pid <= 0 || !vt_child_is_ours(fds[0]))
		return;
	vt_child_know(hull->children, &hull->child, note->pid);
	hull->cell.init = note->pid;
	hull->cell.init_fd = hull->end.fd = vt_fd_take(&fds[0]);
	if (hull->doomed)
		doom(hull);
	if (vt_loop_add(hull->loop, &hull->end, EPOLLIN, &err) < 0)
		vt_pool_hull_kill(hull, &err);
}

static void take_note(struct vt_pool_hull *hull, const struct vt_note *note, int fds[VT_NOTE_FDS])
{
	if (note->kind == VT_NOTE_BORN) {
		take_birth(hull, note, fds);
	} else if (hull->ending) {
		return; /* nobody waits for it any more */
	} else if (note->kind == VT_NOTE_HULL) {
		take_namespaces(hull, fds);
	} else if (note->kind == VT_NOTE_READY) {
		hull->ready = true;
		/* It has not looked for anything yet. */
		hull->ordered = hull->refreshed = hull->refreshes;
		hull->is_ready(hull->user);
	} else if (note->kind == VT_NOTE_REFRESHED) {
		hull->refreshed = note->cell;
		order_refresh(hull);
		hull->is_refreshed(hull->user);
	} else if (note->kind == VT_NOTE_LOOKED) {
		hull->looks -= hull->looks > 0;
		if (note->cell)
			hull->note(hull->user, note, fds);
		else
			hull->is_judged(hull->user, fds[0]);
	} else if (note->kind == VT_NOTE_UNGUARDED) {
		hull->unguarded = true;
		hull->ready = false;
		hull->is_unguarded(hull->user);
	} else if (note->cell) {
		hull->note(hull->user, note, fds);
	} else if (note->kind == VT_NOTE_FAILED && !hull->failure.num) {
		hull->failure = note->err; /* what fails then fails by that */
	}
}

/* Whether there is nobody who could say more. */
static bool hear(struct vt_pool_hull *hull)
{
	struct vt_note note;
	struct vt_err err;
	int fds[VT_NOTE_FDS];
	int r;

	while ((r = vt_cell_note(&hull->cell, &note, fds, &err)) > 0) {
		take_note(hull, &note, fds);
		for (size_t i = 0; i < VT_NOTE_FDS; i++)
			vt_fd_close(&fds[i]);
	}
	return r < 0;
}

static void lose_spawner(struct vt_pool_hull *hull)
{
	struct vt_err err;

	(void)vt_fail(&err, VT_STEP_WATCH, ECHILD, "keep the spawner of the cells");
	vt_pool_hull_kill(hull, &err);
}

static void notes_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_pool_hull *hull = source->owner;

	(void)events; /* a hang-up shows as the end of the notes */
	/* The kernel closes its files first, and then kills what is in it. */
	if (!hull->ending && hear(hull) && !hull->ending)
		lose_spawner(hull);
}

/* Whoever made it removes its folders, if there are any: that is no concern of the next one's. */
static void conclude(struct vt_pool_hull *hull)
{
	vt_loop_remove(hull->loop, &hull->made);
	vt_children_leave(hull->children, &hull->maker, &hull->cell.maker_fd);
	clear(hull);
	hull->ended(hull->user);
}

static void end_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_pool_hull *hull = source->owner;

	(void)events;
	(void)hear(hull); /* its last words */
	lose_spawner(hull);
	(void)vt_child_reap(&hull->child);
	conclude(hull);
}

void vt_pool_hull_look(struct vt_pool_hull *hull)
{
	struct pollfd end = { .fd = hull->cell.init_fd, .events = POLLIN };

	if (hull->ending && end.fd >= 0 && poll(&end, 1, 0) == 1)
		end_ready(&hull->end, EPOLLIN);
}

/* It has told of whom it made. */
static void made_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_pool_hull *hull = source->owner;

	(void)events;
	(void)hear(hull);
	(void)vt_child_reap(&hull->maker);
	vt_loop_remove(hull->loop, &hull->made);
	if (hull->child.pid)
		return;
	lose_spawner(hull);
	conclude(hull);
}

void vt_pool_hull_init(struct vt_pool_hull *hull)
{
	hull->notes = (struct vt_watch){ .fd = -1, .ready = notes_ready, .owner = hull };
	hull->end = (struct vt_watch){ .fd = -1, .ready = end_ready, .owner = hull };
	hull->made = (struct vt_watch){ .fd = -1, .ready = made_ready, .owner = hull };
	memset(hull->fds, -1, sizeof(hull->fds)); /* all bits set is -1 */
	vt_cell_init(&hull->cell);
}

int vt_pool_hull_start(struct vt_pool_hull *hull, struct vt_err *err)
{
	int r = vt_spawn_hull(hull->plan, hull->spawner_fd, &hull->cell, err);

	if (r < 0)
		return r;
	vt_child_know(hull->children, &hull->maker, hull->cell.maker);
	hull->started = vt_clock_now();
	hull->notes.fd = hull->cell.status_fd;
	hull->made.fd = hull->cell.maker_fd;
	r = vt_loop_add(hull->loop, &hull->notes, EPOLLIN, err);
	if (r == 0)
		r = vt_loop_add(hull->loop, &hull->made, EPOLLIN, err);
	if (r < 0)
		vt_pool_hull_done(hull, VT_NS_PER_S);
	return r;
}

uint64_t vt_pool_hull_refresh(struct vt_pool_hull *hull)
{
	/* Not before the next one is there. */
	if (hull->unguarded || (hull->ending && hull->plan->guard_count))
		return hull->refreshes = hull->ordered + 1;
	if ((!hull->plan->veil_count && !hull->plan->guard_count) || !hull->ready)
		return 0;
	hull->refreshes = hull->ordered + 1;
	order_refresh(hull);
	return hull->refreshes;
}

bool vt_pool_hull_judge(struct vt_pool_hull *hull, uint64_t cell, const char *call, size_t len)
{
	struct vt_note order = { .kind = VT_NOTE_LOOK, .cell = cell };
	struct vt_err err;

	if (!hull->plan->guard_count || hull->plan->bare || hull->ending || !hull->child.pid ||
	    (!hull->ready && !hull->unguarded))
		return false;
	len = len < sizeof(order.err.what) - 1 ? len : sizeof(order.err.what) - 1;
	memcpy(order.err.what, call, len);
	order.err.what[len] = '\0';
	if (vt_pass_send(hull->cell.status_fd, &order, sizeof(order), NULL, 0, &err) < 0)
		return false;
	hull->looks++;
	return true;
}

/* Takes the ends of those that have ended. */
static void reap(struct vt_pool_hull *hull)
{
	int status;

	if (hull->maker.pid && vt_child_try_reap(&hull->maker, &status))
		(void)hear(hull); /* of whom it made */
	if (hull->child.pid)
		(void)vt_child_try_reap(&hull->child, &status);
}

void vt_pool_hull_done(struct vt_pool_hull *hull, int64_t patience_ns)
{
	int64_t until = vt_clock_now() + patience_ns;

	hull->ending = true; /* nobody is told any more */
	doom(hull);
	/* It goes when the last occupant in it was reaped, be it one that nobody knows. */
	for (reap(hull); vt_pool_hull_lives(hull) && vt_clock_now() < until; reap(hull)) {
		struct pollfd ends[] = {
			{ .fd = hull->child.pid ? hull->cell.init_fd : -1, .events = POLLIN },
			{ .fd = hull->maker.pid ? hull->cell.maker_fd : -1, .events = POLLIN },
		};

		vt_children_sweep(hull->children);
		(void)poll(ends, 2, SWEEP_MS); /* that it was interrupted makes no difference */
	}
	vt_loop_remove(hull->loop, &hull->end);
	vt_loop_remove(hull->loop, &hull->made);
	vt_children_leave(hull->children, &hull->child, &hull->cell.init_fd);
	vt_children_leave(hull->children, &hull->maker, &hull->cell.maker_fd);
	clear(hull);
}
