/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "client/error.h"
#include "client/host_private.h"
#include "client/policy.h"

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void pool_free(struct vt_host_pool *pool)
{
	free(pool->path);
	free(pool->setup);
	free(pool->policy);
	free(pool->capabilities);
	free(pool);
}

/* What the key has is the pool's then. NULL: no memory. */
static struct vt_host_pool *pool_new(vitro_toolhost *host, const struct vt_host_pool_key *key)
{
	struct vt_host_pool *pool = calloc(1, sizeof(*pool));
	char *path = key->path ? strdup(key->path) : NULL;

	if (!pool || (key->path && !path)) {
		free(path);
		free(pool);
		return NULL;
	}
	*pool = (struct vt_host_pool){
		.next = host->pools,
		.before = &host->pools,
		.host = host,
		.number = ++host->last_pool,
		.kind = key->kind,
		.path = path,
		.setup = key->setup,
		.policy = key->policy,
	};
	if (pool->next)
		pool->next->before = &pool->next;
	host->pools = pool;
	return pool;
}

struct vt_host_pool *vt_host_pool_get(vitro_toolhost *host, const struct vt_host_pool_key *key)
{
	struct vt_host_pool *pool = key->policy ? host->pools : NULL;

	while (pool && (pool->kind != key->kind || !is_same(pool->path, key->path) ||
			!is_same(pool->setup, key->setup) || !is_same(pool->policy, key->policy)))
		pool = pool->next;
	struct vt_host_pool *made = !pool && key->policy ? pool_new(host, key) : NULL;

	if (!made) {
		free(key->setup);
		free(key->policy);
	}
	pool = pool ? pool : made;
	if (pool)
		pool->users++;
	return pool;
}

/* Its tools still have it, and must not be called. */
static void unlist(struct vt_host_pool *pool)
{
	if (!pool->before)
		return;
	*pool->before = pool->next;
	if (pool->next)
		pool->next->before = pool->before;
	pool->before = NULL;
}

void vt_host_pool_release(struct vt_host_pool *pool)
{
	if (!pool || --pool->users > 0)
		return;
	struct vt_peer *peer = &pool->host->peer;
	struct vt_err err;

	unlist(pool);
	if (pool->capabilities && !peer->lost && peer->socket >= 0) {
		struct vt_str *head = vt_peer_begin(peer, "drop");

		vt_head_add_int(head, "pool", pool->number);
		(void)vt_peer_send(peer, NULL, 0, &err); /* who is lost has no pools */
	}
	pool_free(pool);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* What is waited for, of all pools that were asked. */
struct waiting {
	vitro_toolhost *host;
	struct vitro_error *error;
	int status; /* of the first that was refused */
};

static const char *const kinds[] = {
	[VT_HOST_POOL_PROGRAM] = "program", [VT_HOST_POOL_OBJECT] = "object",
	[VT_HOST_POOL_COMMAND] = "command", [VT_HOST_POOL_PYTHON] = "python",
	[VT_HOST_POOL_NODE] = "node",
};

static int ask_for(vitro_toolhost *host, struct vt_host_pool *pool, struct vt_err *err)
{
	const struct vitro_options *options = &host->options;
	bool used = pool->kind != VT_HOST_POOL_NONE;
	struct vt_str *head = vt_peer_begin(&host->peer, "pool");

	vt_head_add_int(head, "pool", pool->number);
	if (pool->path)
		vt_head_add(head, kinds[pool->kind], pool->path);
	if (pool->setup)
		vt_head_add(head, "setup", pool->setup);
	vt_head_add_int(head, "ready_min", used ? options->ready_min : 0);
	vt_head_add_int(head, "ready_max", used ? options->ready_max : 0);
	vt_head_add_int(head, "live_max", used ? options->live_max : 0);
	pool->asked = true;
	return vt_peer_send(&host->peer, pool->policy, strlen(pool->policy), err);
}

static void take_refusal(struct waiting *waiting, struct vt_host_pool *pool,
			 const struct vt_message *message)
{
	const char *text = vt_head_text(&message->head, "error", NULL);
	int64_t num = vt_head_int(&message->head, "num", EPERM);

	if (waiting->status == 0)
		waiting->status = vt_error_give(waiting->error,
						num > 0 && num < 4096 ? (int)num : EPERM,
						text ? text : "the supervisor refuses the policy");
	unlist(pool);
}

static int take_capabilities(struct vt_host_pool *pool, const struct vt_message *message,
			     struct vt_err *err)
{
	size_t len = message->body_len;

	if (!vt_json_is_valid(message->body, len))
		return vt_fail(err, VT_STEP_WIRE, EBADMSG, "the capabilities are not JSON");
	while (len && strchr(" \t\r\n", message->body[len - 1]))
		len--;
	pool->capabilities = strndup(message->body, len);
	return pool->capabilities ? 0 : vt_error_no_memory(err);
}

static bool any_asked(const vitro_toolhost *host)
{
	for (struct vt_host_pool *pool = host->pools; pool; pool = pool->next)
		if (pool->asked)
			return true;
	return false;
}

static enum vt_peer_taken take_answer(void *user, const struct vt_message *message,
				      struct vt_err *err)
{
	struct waiting *waiting = user;
	int64_t number = vt_head_int(&message->head, "pool", -1);
	struct vt_host_pool *pool = waiting->host->pools;

	if (strcmp(message->is, "pool") != 0)
		return VT_PEER_OTHER;
	while (pool && (pool->number != number || !pool->asked))
		pool = pool->next;
	if (!pool) {
		vt_fail(err, VT_STEP_WIRE, EBADMSG, "an answer of a pool that was not asked");
		return VT_PEER_WRONG;
	}
	pool->asked = false;
	if (!vt_head_flag(&message->head, "ok", false))
		take_refusal(waiting, pool, message);
	else if (take_capabilities(pool, message, err) < 0)
		return VT_PEER_WRONG;
	return any_asked(waiting->host) ? VT_PEER_TAKEN : VT_PEER_LAST;
}

int vt_host_pools_open(vitro_toolhost *host, struct vitro_error *error)
{
	struct waiting waiting = { .host = host, .error = error };
	struct vt_err err = { 0 };
	int status = 0;

	for (struct vt_host_pool *pool = host->pools; pool && status == 0; pool = pool->next)
		if (!pool->capabilities)
			status = ask_for(host, pool, &err);
	if (status == 0 && any_asked(host))
		status = vt_peer_await(&host->peer, -1, take_answer, &waiting, &err);
	if (status == 0)
		return waiting.status;
	for (struct vt_host_pool *pool = host->pools, *next; pool; pool = next) {
		next = pool->next;
		if (!pool->capabilities)
			unlist(pool);
	}
	return vt_error_pass(error, &err);
}

/* ---- counting ------------------------------------------------------------------------------- */

static int64_t count_at(const struct vt_head *head, const char *name, int64_t most)
{
	int64_t count = vt_head_int(head, name, 0);

	return count < 0 ? 0 : count > most ? most : count;
}

static enum vt_peer_taken take_counts(void *user, const struct vt_message *message,
				      struct vt_err *err)
{
	const struct vt_head *head = &message->head;
	struct vitro_counts *counts = user;

	(void)err;
	if (strcmp(message->is, "count") != 0)
		return VT_PEER_OTHER;
	*counts = (struct vitro_counts){
		.ready = (uint32_t)count_at(head, "ready", UINT32_MAX),
		.refilling = (uint32_t)count_at(head, "refilling", UINT32_MAX),
		.live = (uint32_t)count_at(head, "live", UINT32_MAX),
		.waiting = (uint32_t)count_at(head, "waiting", UINT32_MAX),
		.calls = (uint64_t)count_at(head, "calls", INT64_MAX),
		.cells_made = (uint64_t)count_at(head, "cells_made", INT64_MAX),
		.cold_calls = (uint64_t)count_at(head, "cold_calls", INT64_MAX),
	};
	return VT_PEER_LAST;
}

void vt_host_pools_count(vitro_toolhost *host, struct vitro_counts *ret_counts)
{
	struct vitro_counts counts = { 0 };
	struct vt_err err;

	vt_peer_begin(&host->peer, "count");
	/* What is not answered is 0. */
	if (vt_peer_send(&host->peer, NULL, 0, &err) == 0)
		(void)vt_peer_await(&host->peer, -1, take_counts, &counts, &err);
	*ret_counts = counts;
}
