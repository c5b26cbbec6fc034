/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of a session. Several may stand on the same cells. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/json.h"
#include "launch/cell.h"
#include "serve/request.h"
#include "serve/session_private.h"

enum {
	LIVE_MAX = 4096, /* of one pool */
	READY_SHARE = 4, /* of cells that wait: one client's, to those that are nobody's */
};

struct serve_pool *vt_session_find_pool(const struct vt_session *session, int64_t number)
{
	struct serve_pool *pool = session->pools;

	while (pool && pool->number != number)
		pool = pool->next;
	return pool;
}

bool vt_session_has_cells(const struct vt_session *session, const struct vt_cells *cells)
{
	const struct serve_pool *pool = session->pools;

	while (pool && pool->cells != cells)
		pool = pool->next;
	return pool;
}

/* Of cells that another pool of the connection has, nothing is counted again. */
static void count_in(struct vt_session *session, const struct serve_pool *pool)
{
	session->client->ready += pool->ready;
	session->commons->ready += pool->ready;
	if (!pool->cells || vt_session_has_cells(session, pool->cells))
		return;
	session->client->cells++;
	vt_session_count_kept(session, pool->cells->bytes, false);
}

/* The same of one that is not among them any more. */
static void count_out(struct vt_session *session, const struct serve_pool *pool)
{
	session->client->ready -= pool->ready;
	session->commons->ready -= pool->ready;
	if (!pool->cells || vt_session_has_cells(session, pool->cells))
		return;
	session->client->cells--;
	vt_session_count_kept(session, pool->cells->bytes, true);
}

static void take_out(struct vt_session *session, struct serve_pool **at)
{
	const struct serve_pool *pool = *at;

	*at = pool->next;
	session->client->pools--;
	count_out(session, pool);
}

static void free_pool(struct serve_pool *pool)
{
	vt_cells_release(pool->cells);
	free(pool->path);
	free(pool);
}

static unsigned bounded(const struct vt_request_frame *frame, const char *name, unsigned fallback,
			unsigned most)
{
	int64_t value = vt_head_int(&frame->head, name, 0);
	unsigned wanted = value <= 0 ? fallback : value < most ? (unsigned)value : most;

	return wanted < most ? wanted : most;
}

/* Whoever has many cells waiting leaves some for the next; one there is in any case. */
static unsigned share_ready(const struct vt_session *session)
{
	const struct vt_commons *commons = session->commons;
	unsigned most = commons->room.spare_max, own = session->client->ready;

	if (!commons->shared)
		return UINT_MAX;
	unsigned share = most > commons->ready ? (most - commons->ready) / READY_SHARE : 0;

	return share > own ? share - own : 1;
}

static struct vt_cells_wish read_wish(const struct vt_session *session,
				      const struct vt_request_frame *frame,
				      const struct vt_caller *caller)
{
	const struct vt_session_limits *limits = &session->commons->limits;

	struct vt_cells_wish wish = {
		.program = vt_head_text(&frame->head, "program", NULL),
		.object = vt_head_text(&frame->head, "object", NULL),
		.command = vt_head_text(&frame->head, "command", NULL),
		.setup = vt_head_text(&frame->head, "setup", NULL),
		.sources = frame->body,
		.sources_len = frame->len,
		.ready_min = bounded(frame, "ready_min", 2, limits->ready_max),
		.ready_share = share_ready(session),
		.ready_max = bounded(frame, "ready_max", 64, limits->ready_max),
		.live_max = bounded(frame, "live_max", 1024, LIVE_MAX),
		.caller = session->commons->shared ? caller : NULL,
		.program_fd = session->peer.program_fd,
		.client = session->number,
	};

	for (size_t i = 0; i < VT_LANGUAGES; i++)
		wish.interpreters[i] = vt_head_text(&frame->head, vt_interpreters[i].name, NULL);
	return wish;
}

/* The last quarter of what there can be is for those who have next to nothing: however much some
 * clients take, the next one is served. */
static int check_cells(const struct vt_session *session, struct vt_err *err)
{
	const struct vt_session_limits *limits = &session->commons->limits;
	const struct vt_cells_maker *maker = &session->commons->cells;
	unsigned own = session->client->cells;

	if (own >= limits->cells_max)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: this client has cells of %u policies and programs, which "
			       "is the most; let tools share theirs",
			       limits->cells_max);
	if (own >= limits->cells_few && vt_cells_taken(maker) >= maker->count_max / 4 * 3)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: most of the server's cells are taken, and this client has "
			       "those of %u policies and programs; drop pools, let tools share "
			       "theirs, or ask again when others have gone",
			       own);
	return 0;
}

/* Whether it may have another. */
static int check_pool(const struct vt_session *session, const struct vt_cells_wish *wish,
		      struct vt_err *err)
{
	const struct vt_session_limits *limits = &session->commons->limits;

	if (session->commons->ending)
		return vt_fail(err, VT_STEP_PLAN, ESHUTDOWN, "refused: the server is ending");
	if (session->client->pools >= limits->pools_max)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: this client has %u pools, which is the most",
			       limits->pools_max);
	if (vt_cells_are_used(wish)) {
		int r = check_cells(session, err);

		if (r < 0)
			return r;
	}
	if (vt_session_keeps_too_much(session, 0))
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: what this client's pools stand on, and the environments "
			       "of its connections, come to too much; drop pools, let tools share "
			       "a policy, or pass on fewer variables");
	if (wish->sources_len > limits->sources_max)
		return vt_fail(err, VT_STEP_PLAN, E2BIG, "refused: a policy of more than %zu KB",
			       limits->sources_max >> 10);
	return 0;
}

static void tell_pool(struct vt_session *session, const struct serve_pool *pool)
{
	AUTO_JSON json_t *all = vt_result_isolation(pool->cells->plan);
	char *text = all ? json_dumps(all, 0) : NULL;

	vt_session_begin(session, "pool");
	vt_session_add_int(session, "pool", pool->number);
	vt_head_add_flag(&session->head, "ok", true);
	vt_session_put_bytes(session, text ? text : "{}", text ? strlen(text) : 2);
	free(text);
}

/* As a call would be told. */
static void refuse_pool(struct vt_session *session, const struct vt_request_frame *frame,
			const struct vt_err *why)
{
	const struct vt_commons *commons = session->commons;
	struct vt_verdict verdict;

	if (commons->denied)
		commons->denied(commons->user, VT_DENIED_POLICY);
	vt_verdict_fail(&verdict, why);
	vt_session_begin(session, "pool");
	vt_session_add_int(session, "pool", vt_head_int(&frame->head, "pool", -1));
	vt_head_add_flag(&session->head, "ok", false);
	vt_session_add_int(session, "num", why->num);
	vt_session_add_text(session, "error", verdict.message);
	vt_session_put(session, NULL, 0, NULL);
}

/* found: NULL where it is for this process to ask the paths. */
static int take_pool(struct vt_session *session, const struct vt_request_frame *frame,
		     const struct vt_cells_wish *wish, struct vt_cells_found *found,
		     struct vt_err *err)
{
	struct serve_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return vt_cells_no_memory(err);
	pool->number = vt_head_int(&frame->head, "pool", -1);
	struct vt_cells_maker *maker = &session->commons->cells;
	int r = found ? vt_cells_take(maker, wish, found, &pool->cells, &pool->path, err)
		      : vt_cells_get(maker, wish, &pool->cells, &pool->path, err);

	if (r < 0) {
		free_pool(pool);
		return r;
	}
	tell_pool(session, pool);
	/* Of one without a program nobody asks again, and nothing of it is kept. */
	if (!pool->cells->pool) {
		vt_cells_release(pool->cells);
		pool->cells = NULL;
	}
	/* Who shares cells has them from somebody else's share. */
	if (pool->cells && pool->cells->users == 1)
		pool->ready = vt_cells_ready(wish);
	count_in(session, pool);
	pool->next = session->pools;
	session->pools = pool;
	session->client->pools++;
	return 0;
}

static void scout_is_back(void *user, struct vt_cells_found *found, const struct vt_err *why)
{
	struct vt_session *session = user;
	const struct vt_caller caller = { session->environ, session->cwd };
	const struct vt_cells_wish wish = read_wish(session, &session->asked, &caller);
	int64_t begun = vt_clock_now();
	struct vt_err err;

	session->scout = NULL;
	if (!found)
		refuse_pool(session, &session->asked, why);
	else if (check_pool(session, &wish, &err) < 0 ||
		 take_pool(session, &session->asked, &wish, found, &err) < 0)
		refuse_pool(session, &session->asked, &err);
	vt_session_pause(session, begun);
	if (!session->over)
		vt_timer_set(&session->timer, 0); /* to go on with its frames */
}

/* What one client names must not keep the others waiting: in a server another process looks at it.
 */
int vt_session_do_pool(struct vt_session *session, const struct vt_request_frame *frame,
		       struct vt_err *err)
{
	int64_t number = vt_head_int(&frame->head, "pool", -1);
	const struct vt_caller caller = { session->environ, session->cwd };
	struct vt_commons *commons = session->commons;

	if (number < 0 || vt_session_find_pool(session, number))
		return vt_request_misunderstand("a pool", err);
	const struct vt_cells_wish wish = read_wish(session, frame, &caller);
	struct vt_err why;
	int r = check_pool(session, &wish, &why);

	session->turn_over = commons->shared;
	if (r == 0 && commons->shared) {
		session->asked = *frame;
		r = vt_scout_send(&commons->scouts, session->client, &wish, scout_is_back, session,
				  &session->scout, &why);
	} else if (r == 0) {
		r = take_pool(session, frame, &wish, NULL, &why);
	}
	if (r < 0)
		refuse_pool(session, frame, &why);
	return 0;
}

/* The client has no call in it any more; if it has, they are cancelled. */
int vt_session_do_drop(struct vt_session *session, const struct vt_request_frame *frame,
		       struct vt_err *err)
{
	int64_t number = vt_head_int(&frame->head, "pool", -1);
	struct serve_pool **at = &session->pools;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	struct serve_pool *pool = *at;

	if (!pool)
		return vt_request_misunderstand("a pool that is dropped", err);
	take_out(session, at);
	vt_session_cancel_of(session, pool);
	free_pool(pool);
	return 0;
}

/* Where somebody else has its cells, it has others from now on. */
static void learn(struct vt_session *session, struct serve_pool *pool, const char *module,
		  struct vt_err *why)
{
	struct serve_pool before = *pool, **at = &session->pools;
	char text[VT_MODULE_MAX + sizeof(why->what) + 64];
	int r = vt_cells_learn(&pool->cells, module, check_cells(session, why), why);

	if (r < 0) {
		(void)snprintf(text, sizeof(text), "'%s' is not imported ahead of calls: %s",
			       module, why->what); /* fits */
		vt_session_log(session, pool->cells, LOG_INFO, text);
	}
	if (r <= 0)
		return;
	while (*at != pool)
		at = &(*at)->next;
	*at = pool->next; /* as it is counted */
	count_out(session, &before);
	pool->ready = pool->cells->users == 1 ? 1 : 0;
	count_in(session, pool);
	*at = pool;
}

/* Of a module that cannot be imported, the log tells. */
int vt_session_do_learn(struct vt_session *session, const struct vt_request_frame *frame,
			struct vt_err *err)
{
	struct serve_pool *pool = vt_session_find_pool(session,
						       vt_head_int(&frame->head, "pool", -1));
	int64_t begun = vt_clock_now();
	size_t len = 0;
	const char *module = vt_head_text(&frame->head, "module", &len);
	struct vt_err why;

	if (!pool || !pool->cells || !pool->cells->setup || !module || !len || len > VT_MODULE_MAX)
		return vt_request_misunderstand("a module to learn", err);
	learn(session, pool, module, &why);
	vt_session_pause(session, begun);
	return 0;
}

int vt_session_do_count(struct vt_session *session, const struct vt_request_frame *frame,
			struct vt_err *err)
{
	struct vt_pool_counts counts;

	(void)frame;
	(void)err;
	vt_cells_count(&session->commons->cells, &counts);
	vt_session_begin(session, "count");
	vt_session_add_int(session, "ready", counts.ready);
	vt_session_add_int(session, "refilling", counts.refilling);
	vt_session_add_int(session, "live", counts.live);
	vt_session_add_int(session, "waiting", counts.waiting);
	vt_session_add_int(session, "calls", (int64_t)counts.calls);
	vt_session_add_int(session, "cells_made", (int64_t)counts.cells_made);
	vt_session_add_int(session, "cold_calls", (int64_t)counts.cold_calls);
	vt_session_put(session, NULL, 0, NULL);
	return 0;
}

void vt_session_drop_pools(struct vt_session *session)
{
	while (session->pools) {
		struct serve_pool *pool = session->pools;

		take_out(session, &session->pools);
		free_pool(pool);
	}
}

void vt_session_resume(struct vt_session *session)
{
	for (struct serve_pool *pool = session->pools; pool; pool = pool->next)
		if (pool->cells)
			vt_pool_resume(pool->cells->pool);
}
