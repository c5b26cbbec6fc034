/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/queue.h"

#include <stddef.h>
#include <stdio.h>

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
static void end_unrun(struct vt_queue *queue, struct vt_pool_call *call, enum vt_status status,
		      const char *type, const char *message)
{
	struct vt_outcome outcome;
	struct vt_verdict *verdict = &outcome.result.verdict;

	vt_queue_remove(queue, call);
	vt_outcome_init(&outcome);
	verdict->status = status;
	(void)snprintf(verdict->type, sizeof(verdict->type), "%s", type);
	(void)snprintf(verdict->message, sizeof(verdict->message), "%s", message); /* or cut */
	call->events->done(call, &outcome);
}

void vt_queue_refuse(struct vt_queue *queue, const struct vt_err *why)
{
	struct vt_findings findings = { .failed = true, .failure = *why };
	struct vt_verdict verdict;

	vt_verdict_reach(&findings, &verdict);
	while (queue->first)
		end_unrun(queue, queue->first, verdict.status, verdict.type, verdict.message);
}

void vt_queue_expire(struct vt_queue *queue, int64_t now)
{
	for (struct vt_pool_call *call = queue->first, *next; call; call = next) {
		next = call->next;
		if (call->due <= now)
			end_unrun(queue, call, VT_STATUS_TIMEOUT, "Timeout",
				  "no cell was free within limits.queue_ms");
	}
}

void vt_queue_cancel(struct vt_queue *queue, struct vt_pool_call *call)
{
	end_unrun(queue, call, VT_STATUS_CANCELLED, "Cancelled", "the call was cancelled");
}
