/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait for a cell, the oldest first, and how those of them end that never have one. Part
 * of a pool.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "pool/call.h"

struct vt_queue {
	struct vt_pool_call *first, **last;
	unsigned             count;
	/* the last one whose turn it was is one that a call made */
	bool                 after_within;
};

/* It stays where it is. */
void vt_queue_init(struct vt_queue *queue);

/* Until it is due. */
void vt_queue_add(struct vt_queue *queue, struct vt_pool_call *call, int64_t due);
void vt_queue_remove(struct vt_queue *queue, struct vt_pool_call *call);

/*
 * Whose turn it is: the oldest's, but that those which calls made and those of the program take
 * turns. So a call that makes many others does not keep the program waiting. NULL: nobody waits.
 */
struct vt_pool_call *vt_queue_next(const struct vt_queue *queue);

/* Nothing can be made: whoever waits is told why, and need not wait until his time is over. */
void vt_queue_refuse(struct vt_queue *queue, const struct vt_err *why);

/* Ends those that have waited for too long. */
void vt_queue_expire(struct vt_queue *queue, int64_t now);
void vt_queue_cancel(struct vt_queue *queue, struct vt_pool_call *call);
