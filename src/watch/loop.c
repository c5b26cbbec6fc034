/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/loop.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"

int vt_loop_init(struct vt_loop *loop, struct vt_err *err)
{
	*loop = (struct vt_loop){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
	if (loop->epoll_fd < 0)
		return vt_fail(err, VT_STEP_WATCH, errno, "make an event loop");
	return 0;
}

void vt_loop_done(struct vt_loop *loop)
{
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
}

void vt_loop_add_timer(struct vt_loop *loop, struct vt_timer *timer)
{
	timer->due = INT64_MAX;
	timer->next = loop->timers;
	loop->timers = timer;
}

void vt_loop_remove_timer(struct vt_loop *loop, struct vt_timer *timer)
{
	struct vt_timer **at = &loop->timers;

	while (*at && *at != timer)
		at = &(*at)->next;
	if (*at)
		*at = timer->next;
	if (loop->turn == timer)
		loop->turn = timer->next;
}

static int64_t next_due(const struct vt_loop *loop)
{
	int64_t due = INT64_MAX;

	for (const struct vt_timer *timer = loop->timers; timer; timer = timer->next)
		due = timer->due < due ? timer->due : due;
	return due;
}

static void fire_timers(struct vt_loop *loop)
{
	int64_t now = vt_clock_now();

	for (struct vt_timer *timer = loop->timers; timer; timer = loop->turn) {
		loop->turn = timer->next;
		if (timer->due > now)
			continue;
		timer->due = INT64_MAX;
		timer->fire(timer);
	}
}

/* Rounded up, or a timer would be waited for over and over before it is due. */
static int milliseconds(int64_t due, int64_t left)
{
	if (due == INT64_MAX)
		return -1;
	return left <= 0 ? 0 : (int)(left / VT_NS_PER_MS < 60000 ? left / VT_NS_PER_MS + 1 : 60000);
}

/* One descriptor at a time: a call-back may remove or close any other one. */
static int wait_once(struct vt_loop *loop, struct vt_err *err)
{
	struct epoll_event event;
	int64_t due = next_due(loop);
	int64_t left = due - vt_clock_now();
	struct timespec timeout = { 0 };

	if (left > 0)
		timeout = (struct timespec){ left / VT_NS_PER_S, left % VT_NS_PER_S };
	int count = epoll_pwait2(loop->epoll_fd, &event, 1, due == INT64_MAX ? NULL : &timeout,
				 NULL);

	/* A filter that is older than the call; milliseconds have to do. */
	if (count < 0 && (errno == ENOSYS || errno == EPERM))
		count = epoll_wait(loop->epoll_fd, &event, 1, milliseconds(due, left));
	if (count < 0 && errno != EINTR)
		return vt_fail(err, VT_STEP_WATCH, errno, "wait for events");
	if (count == 1) {
		struct vt_watch *source = event.data.ptr;

		source->ready(source, event.events);
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
