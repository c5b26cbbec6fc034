/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/loop.h"

#include <errno.h>
#include <stddef.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

/*
 * Every wait that has an end of its own makes the kernel set a clock, which under a hypervisor
 * costs as much as a short call. A timerfd that goes off too early costs less: it is set anew only
 * where something is due before it, and else when it has gone off.
 */
static int watch_clock(struct vt_loop *loop)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };

	loop->clock_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (loop->clock_fd < 0)
		return -errno;
	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->clock_fd, &event) < 0 ? -errno : 0;
}

int vt_loop_init(struct vt_loop *loop, struct vt_err *err)
{
	*loop = (struct vt_loop){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
				  .clock_fd = -1,
				  .armed = INT64_MAX };
	if (loop->epoll_fd < 0)
		return vt_fail(err, VT_STEP_WATCH, errno, "make an event loop");
	/* A filter that denies it; waits have to have their own ends. */
	if (watch_clock(loop) < 0)
		vt_fd_close(&loop->clock_fd);
	return 0;
}

void vt_loop_done(struct vt_loop *loop)
{
	vt_fd_close(&loop->clock_fd);
	vt_fd_close(&loop->epoll_fd);
}

int vt_loop_add(struct vt_loop *loop, struct vt_watch *source, uint32_t events, struct vt_err *err)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (source->added)
		return 0;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0)
		return vt_fail(err, VT_STEP_WATCH, errno, "watch descriptor %d", source->fd);
	source->added = true;
	return 0;
}

void vt_loop_remove(struct vt_loop *loop, struct vt_watch *source)
{
	if (source->added)
		(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL); /* it was added */
	source->added = false;
	if (loop->likely == source)
		loop->likely = NULL;
}

void vt_loop_try(struct vt_loop *loop, struct vt_watch *source)
{
	if (source->added)
		loop->likely = source;
}

/* ---- timers: a pairing heap ----------------------------------------------------------------- */

static void hang(struct vt_timer **link, struct vt_timer *timer)
{
	*link = timer;
	if (timer)
		timer->link = link;
}

/* Neither has a next one, nor a link. */
static struct vt_timer *meld(struct vt_timer *a, struct vt_timer *b)
{
	if (!a || !b)
		return a ? a : b;
	struct vt_timer *top = b->when < a->when ? b : a, *other = top == a ? b : a;

	hang(&other->next, top->child);
	hang(&top->child, other);
	return top;
}

/* One of all that hang side by side: in pairs from left to right, and those from right to left. */
static struct vt_timer *gather(struct vt_timer *first)
{
	struct vt_timer *pairs = NULL, *all = NULL;

	while (first) {
		struct vt_timer *a = first, *b = a->next;

		first = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct vt_timer *next = pairs->next;

		pairs->next = NULL;
		all = meld(all, pairs);
		pairs = next;
	}
	return all;
}

/* Takes it from where it hangs: the heap, or those whose turn it is, who have no children. */
static void unset(struct vt_timer *timer)
{
	struct vt_loop *loop = timer->loop;
	struct vt_timer *children = gather(timer->child);

	timer->when = INT64_MAX;
	timer->child = NULL;
	if (!timer->link)
		return;
	hang(timer->link, timer->next);
	timer->next = NULL;
	timer->link = NULL;
	hang(&loop->timers, meld(loop->timers, children));
}

void vt_timer_set(struct vt_timer *timer, int64_t when)
{
	struct vt_loop *loop = timer->loop;

	unset(timer);
	timer->when = when;
	if (when != INT64_MAX)
		hang(&loop->timers, meld(loop->timers, timer));
}

void vt_timer_hasten(struct vt_timer *timer, int64_t when)
{
	if (when < timer->when)
		vt_timer_set(timer, when);
}

void vt_loop_add_timer(struct vt_loop *loop, struct vt_timer *timer)
{
	timer->loop = loop;
	timer->when = INT64_MAX;
	timer->child = timer->next = NULL;
	timer->link = NULL;
}

void vt_loop_remove_timer(struct vt_loop *loop, struct vt_timer *timer)
{
	if (timer->loop == loop)
		unset(timer);
	timer->loop = NULL;
}

/* Each has one turn: one that sets itself again at once does not keep others from theirs. */
static void fire_timers(struct vt_loop *loop)
{
	int64_t now = vt_clock_now();
	struct vt_timer **last = &loop->turns;

	while (loop->timers && loop->timers->when <= now) {
		struct vt_timer *timer = loop->timers;

		unset(timer);
		hang(last, timer);
		last = &timer->next;
	}
	while (loop->turns) {
		struct vt_timer *timer = loop->turns;

		unset(timer);
		timer->fire(timer);
	}
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Rounded up, or a timer would be waited for over and over before it is due. */
static int milliseconds(int64_t left)
{
	return (int)(left / VT_NS_PER_MS < 60000 ? left / VT_NS_PER_MS + 1 : 60000);
}

/* Until when to wait, for epoll_wait(). */
static int set_clock(struct vt_loop *loop)
{
	int64_t due = loop->timers ? loop->timers->when : INT64_MAX;

	if (due == INT64_MAX)
		return -1;
	int64_t left = due - vt_clock_now();

	if (left <= 0)
		return 0;
	if (loop->clock_fd < 0)
		return milliseconds(left);
	const struct itimerspec time = { .it_value = { due / VT_NS_PER_S, due % VT_NS_PER_S } };

	if (due < loop->armed &&
	    timerfd_settime(loop->clock_fd, TFD_TIMER_ABSTIME, &time, NULL) < 0)
		return milliseconds(left);
	if (due < loop->armed)
		loop->armed = due;
	return -1;
}

static void clock_went_off(struct vt_loop *loop)
{
	uint64_t times;

	/* EAGAIN: it was set anew meanwhile. */
	if (read(loop->clock_fd, &times, sizeof(times)) > 0)
		loop->armed = INT64_MAX;
}

/* One descriptor at a time: a call-back may remove or close any other one. */
static int wait_once(struct vt_loop *loop, struct vt_err *err)
{
	struct vt_watch *likely = loop->likely;
	struct epoll_event event;

	if (likely) {
		loop->likely = NULL;
		likely->ready(likely, EPOLLIN);
		return 0;
	}
	int count = epoll_wait(loop->epoll_fd, &event, 1, set_clock(loop));

	if (count < 0 && errno != EINTR)
		return vt_fail(err, VT_STEP_WATCH, errno, "wait for events");
	if (count == 1) {
		struct vt_watch *source = event.data.ptr;

		if (source)
			source->ready(source, event.events);
		else
			clock_went_off(loop);
	}
	return 0;
}

int vt_loop_run(struct vt_loop *loop, struct vt_err *err)
{
	while (!loop->over) {
		int r = wait_once(loop, err);

		if (r < 0)
			return r;
		if (!loop->over)
			fire_timers(loop);
	}
	return 0;
}
