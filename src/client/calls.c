/* SPDX-License-Identifier: Apache-2.0 */
#include "client/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 64 };

/* FNV-1a. Ids are the program's own: nobody chooses them so that they collide. */
static size_t hash(const char *id)
{
	uint32_t sum = 2166136261;

	for (; *id; id++)
		sum = (sum ^ (unsigned char)*id) * 16777619;
	return sum;
}

static struct vt_call **bucket_of(const struct vt_calls *calls, uint64_t number)
{
	return &calls->by_number[number & (calls->buckets - 1)];
}

static struct vt_call **id_bucket_of(const struct vt_calls *calls, const char *id)
{
	return &calls->by_id[hash(id) & (calls->buckets - 1)];
}

static void chain(struct vt_calls *calls, struct vt_call *call)
{
	struct vt_call **bucket = bucket_of(calls, call->number);

	call->next_by_number = *bucket;
	*bucket = call;
	bucket = id_bucket_of(calls, call->id);
	call->next_by_id = *bucket;
	*bucket = call;
}

/* As many buckets as there are calls, and more. */
static int grow(struct vt_calls *calls)
{
	size_t buckets = calls->buckets ? calls->buckets * 2 : FIRST_BUCKETS;
	struct vt_call **by_number = calloc(buckets, sizeof(struct vt_call *));
	struct vt_call **by_id = calloc(buckets, sizeof(struct vt_call *));

	if (!by_number || !by_id) {
		free(by_number);
		free(by_id);
		return -ENOMEM;
	}
	free(calls->by_number);
	free(calls->by_id);
	calls->by_number = by_number;
	calls->by_id = by_id;
	calls->buckets = buckets;
	for (struct vt_call *call = calls->first; call; call = call->next)
		chain(calls, call);
	return 0;
}

void vt_calls_done(struct vt_calls *calls)
{
	free(calls->by_number);
	free(calls->by_id);
	*calls = (struct vt_calls){ 0 };
}

int vt_calls_add(struct vt_calls *calls, struct vt_call *call)
{
	/* A full table is slower, and no worse. */
	if (calls->count >= calls->buckets && grow(calls) < 0 && calls->buckets == 0)
		return -ENOMEM;
	chain(calls, call);
	call->next = calls->first;
	call->before = &calls->first;
	if (call->next)
		call->next->before = &call->next;
	calls->first = call;
	calls->count++;
	call->listed = true;
	return 0;
}

void vt_calls_remove(struct vt_calls *calls, struct vt_call *call)
{
	struct vt_call **at = bucket_of(calls, call->number);

	while (*at != call)
		at = &(*at)->next_by_number;
	*at = call->next_by_number;
	at = id_bucket_of(calls, call->id);
	while (*at != call)
		at = &(*at)->next_by_id;
	*at = call->next_by_id;
	*call->before = call->next;
	if (call->next)
		call->next->before = call->before;
	calls->count--;
	call->listed = false;
}

struct vt_call *vt_calls_find(const struct vt_calls *calls, uint64_t number)
{
	struct vt_call *call = calls->buckets ? *bucket_of(calls, number) : NULL;

	while (call && call->number != number)
		call = call->next_by_number;
	return call;
}

struct vt_call *vt_calls_find_id(const struct vt_calls *calls, const char *id)
{
	struct vt_call *call = calls->buckets ? *id_bucket_of(calls, id) : NULL;

	while (call && strcmp(call->id, id) != 0)
		call = call->next_by_id;
	return call;
}
