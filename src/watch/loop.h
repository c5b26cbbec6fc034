/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's event loop: epoll over descriptors, and timers on the monotonic clock.
 * Everything that happens is a call-back of a source or a timer, which their owners embed; the loop
 * owns nothing but its own two descriptors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/err.h"

struct vt_watch {
	int    fd; /* the owner's */
	void (*ready)(struct vt_watch *source, uint32_t events);
	void  *owner;
	bool   added;
};

struct vt_timer {
	void           (*fire)(struct vt_timer *timer);
	void            *owner;

	/* the loop's */
	int64_t          when; /* on vt_clock_now(); INT64_MAX: not set */
	struct vt_loop  *loop; /* NULL: none knows it */
	struct vt_timer *child, *next, **link; /* among those that are set, which are a heap */
};

struct vt_loop {
	int              epoll_fd;
	/* a timerfd; -1: there is none, and each wait has a time of its own */
	int              clock_fd;
	int64_t          armed;    /* when it goes off; INT64_MAX: it does not */
	struct vt_timer *timers;   /* that are set, the first to come on top */
	struct vt_timer *turns;    /* that are due, and have not fired yet */
	struct vt_watch *likely;   /* what is tried before the next wait; NULL: nothing */
	int64_t          looks;    /* how many calls are looked at from it: watch/look.h */
	bool             over;     /* set by a call-back: vt_loop_run() returns */
};

int  vt_loop_init(struct vt_loop *loop, struct vt_err *err);
void vt_loop_done(struct vt_loop *loop);

/* Watches source->fd for events (EPOLLIN, EPOLLOUT). */
int  vt_loop_add(struct vt_loop *loop, struct vt_watch *source, uint32_t events,
		 struct vt_err *err);
/* Stops watching. Fine if it is not watched. */
void vt_loop_remove(struct vt_loop *loop, struct vt_watch *source);

/*
 * One that is watched for EPOLLIN may be ready by now: whoever was spoken to may have had the CPU
 * already, and answered. It is told so, once, before anything is waited for; it has to bear that it
 * is not.
 */
void vt_loop_try(struct vt_loop *loop, struct vt_watch *source);

/* Makes a timer known to the loop, not set. */
void vt_loop_add_timer(struct vt_loop *loop, struct vt_timer *timer);

/* Forgets one; a call-back may forget any. Fine if it is not known. */
void vt_loop_remove_timer(struct vt_loop *loop, struct vt_timer *timer);

/* It fires once, when that time has come; what was set before does not count. INT64_MAX: never. */
void vt_timer_set(struct vt_timer *timer, int64_t when);
/* The same, unless it is set to fire before that. */
void vt_timer_hasten(struct vt_timer *timer, int64_t when);

/* Runs until a call-back sets `over`. Timers that are due get their turn after each source. */
int vt_loop_run(struct vt_loop *loop, struct vt_err *err);
