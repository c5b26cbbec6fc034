/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's event loop: epoll over descriptors, and timers on the monotonic clock. Everything
 * that happens is a call-back of a source or a timer, which their owners embed; the loop owns nothing
 * but its own descriptor.
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
	int64_t          due; /* on vt_clock_now(); INT64_MAX: not set */
	void           (*fire)(struct vt_timer *timer);
	void            *owner;
	struct vt_timer *next;
};

struct vt_loop {
	int              epoll_fd;
	struct vt_timer *timers;
	struct vt_timer *turn; /* whose turn is next, while they are fired */
	bool             over; /* set by a call-back: vt_loop_run() returns */
};

int  vt_loop_init(struct vt_loop *loop, struct vt_err *err);
void vt_loop_done(struct vt_loop *loop);

/* Watches source->fd for events (EPOLLIN, EPOLLOUT). */
int  vt_loop_add(struct vt_loop *loop, struct vt_watch *source, uint32_t events,
		 struct vt_err *err);
/* Stops watching. Fine if it is not watched. */
void vt_loop_remove(struct vt_loop *loop, struct vt_watch *source);

/* Makes a timer known to the loop; it fires once each time `due` is set to a time that comes. */
void vt_loop_add_timer(struct vt_loop *loop, struct vt_timer *timer);

/* Forgets one; a call-back may forget any. Fine if it is not known. */
void vt_loop_remove_timer(struct vt_loop *loop, struct vt_timer *timer);

/* Runs until a call-back sets `over`. Timers that are due get their turn after each source. */
int vt_loop_run(struct vt_loop *loop, struct vt_err *err);
