/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/queue.h"

#include <stddef.h>

void vt_queue_init(struct vt_queue *queue)
{
	*queue = (struct vt_queue){ .last = &queue->first };
}

void vt_queue_add(struct vt_queue *queue, struct vt_pool_call *call, int64_t due)
{
	call->due = due;
	call->next = NULL;
	call->link = queue->last;
	*queue->last = call;
	queue->last = &call->next;
	queue->count++;
}

void vt_queue_remove(struct vt_queue *queue, struct vt_pool_call *call)
{
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	else
		queue->last = call->link;
	call->link = NULL;
	queue->count--;
}

struct vt_pool_call *vt_queue_next(const struct vt_queue *queue)
{
	struct vt_pool_call *call = queue->first;

	while (call && call->within && queue->after_within)
		call = call->next;
	return call ? call : queue->first;
}

/* Tells its maker, who may free it. */
static void end_unrun(struct vt_queue *queue, struct vt_pool_call *call, struct vt_outcome *outcome)
{
	vt_queue_remove(queue, call);
	call->events->done(call, outcome);
}

void vt_queue_refuse(struct vt_queue *queue, const struct vt_err *why)
{
	struct vt_outcome outcome;

	while (queue->first) {
		vt_outcome_init(&outcome);
		vt_verdict_fail(&outcome.result.verdict, why);
		end_unrun(queue, queue->first, &outcome);
	}
}

void vt_queue_expire(struct vt_queue *queue, int64_t now)
{
	struct vt_outcome outcome;

	for (struct vt_pool_call *call = queue->first, *next; call; call = next) {
		next = call->next;
		if (call->due > now)
			continue;
		vt_outcome_init(&outcome);
		vt_verdict_no_cell(&outcome.result.verdict);
		end_unrun(queue, call, &outcome);
	}
}

void vt_queue_cancel(struct vt_queue *queue, struct vt_pool_call *call)
{
	struct vt_outcome outcome;

	vt_outcome_init(&outcome);
	vt_verdict_set(&outcome.result.verdict, VT_STATUS_CANCELLED, "the call was cancelled");
	end_unrun(queue, call, &outcome);
}
