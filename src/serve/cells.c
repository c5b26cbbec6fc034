/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/cells.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "policy/policy.h"

/* How long cells that were told to end are waited for without anybody noticing; and how often it is
 * looked. */
#define PATIENCE (2 * VT_NS_PER_S)
#define LOOK     (20 * VT_NS_PER_MS)

int vt_cells_no_memory(struct vt_err *err)
{
	return vt_fail(err, VT_STEP_WIRE, ENOMEM, "make a pool");
}

/* ---- the cells ----------------------------------------------------------------------------- */

static void log_line(void *user, int level, const char *text)
{
	const struct vt_cells *cells = user;

	cells->maker->log(cells->maker->user, cells, level, text);
}

static int start(struct vt_cells_maker *maker, struct vt_cells *cells,
		 const struct vt_cells_wish *wish, struct vt_err *err)
{
	const struct vt_pool_options options = {
		.plan = cells->plan,
		.program = cells->program,
		.program_fd = cells->program_fd,
		.has_main = wish->program,
		.preloads = cells->interpreter,
		.learns = cells->interpreter && cells->interpreter->learns,
		.advice = cells->interpreter ? cells->interpreter->advice : NULL,
		.preload = cells->preload,
		.object = cells->object,
		.argv = cells->argv,
		.spawner_fd = maker->spawner_fd,
		.children = maker->children,
		.spare = maker->spare,
		.room = maker->room,
		.ready_min = vt_cells_ready(wish),
		.ready_max = wish->ready_max,
		.live_max = wish->live_max,
		.queue_ms = cells->plan->queue_ms,
		.log = log_line,
		.user = cells,
	};

	return vt_pool_new(maker->loop, &options, &cells->pool, err);
}

/* ---- who shares them ----------------------------------------------------------------------- */

/* Commands of the client that had them planned, under the same sources: nothing is planned anew. */
static struct vt_cells *find_own(const struct vt_cells_maker *maker,
				 const struct vt_cells_wish *wish)
{
	struct vt_cells *cells = maker->first;

	while (cells && (!cells->sources || cells->quitting || cells->client != wish->client ||
			 cells->sources_len != wish->sources_len ||
			 memcmp(cells->sources, wish->sources, wish->sources_len) != 0))
		cells = cells->next;
	return cells;
}

static struct vt_cells *find_same(const struct vt_cells_maker *maker, const struct vt_cells *own)
{
	struct vt_cells *cells = maker->first;

	while (cells && (!cells->pool || cells->quitting || cells->key.len != own->key.len ||
			 memcmp(cells->key.text, own->key.text, own->key.len) != 0))
		cells = cells->next;
	return cells;
}

/* ---- their end ------------------------------------------------------------------------------ */

static void add_counts(struct vt_pool_counts *sum, const struct vt_cells *cells, bool is_past)
{
	struct vt_pool_counts one = { 0 };

	if (cells->pool)
		vt_pool_count(cells->pool, &one);
	if (!is_past) {
		sum->ready += one.ready;
		sum->refilling += one.refilling;
		sum->live += one.live;
		sum->waiting += one.waiting;
	}
	sum->calls += one.calls;
	sum->cells_made += one.cells_made;
	sum->cold_calls += one.cold_calls;
}

static void cells_free(struct vt_cells *cells)
{
	/* Others of a server wait for nothing that a client's cells take long for; nor does its
	 * end. */
	if (cells->maker->shared && vt_clock_now() >= cells->maker->waits_until)
		vt_pool_leave(cells->pool);
	else
		vt_pool_free(cells->pool);
	if (cells->image)
		vt_image_close(cells->image, cells->image_len);
	else
		vt_plan_free(cells->plan);
	vt_policy_free(cells->policy);
	vt_fd_close(&cells->program_fd);
	free(cells->path);
	free(cells->policy_name);
	free(cells->program);
	free(cells->object);
	free(cells->script);
	free(cells->setup);
	free(cells->preload);
	free(cells->sources);
	vt_str_done(&cells->key);
	free(cells);
}

static void quit(struct vt_cells *cells)
{
	if (!cells->quitting && cells->pool) {
		cells->maker->count--;
		cells->maker->quitting++;
	}
	cells->quitting = true;
	cells->due = vt_clock_now() + (cells->pool ? PATIENCE : 0);
	if (cells->pool)
		vt_pool_quit(cells->pool);
}

static void end(struct vt_cells *cells)
{
	struct vt_cells_maker *maker = cells->maker;

	add_counts(&maker->past, cells, true);
	if (cells->pool && cells->quitting)
		maker->quitting--;
	else if (cells->pool)
		maker->count--;
	for (struct vt_cells **at = &maker->first; *at; at = &(*at)->next) {
		if (*at == cells) {
			*at = cells->next;
			break;
		}
	}
	cells_free(cells);
}

/* One client has its own supervisor to itself, and waits there for whatever it drops. */
static void fires(struct vt_timer *timer)
{
	struct vt_cells_maker *maker = timer->owner;
	int64_t now = vt_clock_now(), due = INT64_MAX;

	for (struct vt_cells *cells = maker->first, *next; cells; cells = next) {
		next = cells->next;
		if (cells->users > 0)
			continue;
		if (cells->due <= now && !cells->quitting && maker->shared)
			quit(cells);
		if (cells->due <= now ||
		    (cells->quitting && cells->pool && vt_pool_is_over(cells->pool))) {
			end(cells);
			continue;
		}
		int64_t look = cells->quitting ? now + LOOK : cells->due;

		due = look < due ? look : due;
	}
	vt_timer_set(&maker->timer, due);
}

/* The one that nobody has had for longest makes room. One client waits for its end itself. */
static void make_room(struct vt_cells_maker *maker)
{
	struct vt_cells *oldest = NULL;

	for (struct vt_cells *cells = maker->first; cells; cells = cells->next)
		if (cells->users == 0 && cells->pool && !cells->quitting &&
		    (!oldest || cells->due < oldest->due))
			oldest = cells;
	if (maker->count < maker->count_max || !oldest)
		return;
	if (!maker->shared) {
		end(oldest);
		return;
	}
	quit(oldest);
	vt_timer_hasten(&maker->timer, vt_clock_now() + LOOK);
}

/* ---- the maker ----------------------------------------------------------------------------- */

/* Descriptors that its hull takes from the supervisor while it is made, and for its veils. */
static size_t count_burst(const struct vt_plan *plan)
{
	size_t count = plan->idmap_count + 2 * plan->veil_count + plan->work_count;

	for (size_t i = 0; i < plan->build_count; i++)
		count += plan->builds[i].idmap >= 0;
	return count;
}

/* Each has a hull, and processes of its own. */
static int check_room(const struct vt_cells_maker *maker, const struct vt_plan *plan,
		      struct vt_err *err)
{
	if (maker->count >= maker->count_max)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: the limit of %u different policies and programs is "
			       "reached; let tools share a policy",
			       maker->count_max);
	if (maker->quitting >= maker->count_max)
		return vt_fail(err, VT_STEP_PLAN, EBUSY,
			       "refused: cells of %u policies and programs are on their way to "
			       "their end; ask again in a moment",
			       maker->quitting);
	if (count_burst(plan) > maker->burst_max)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: what the policy grants takes %zu descriptors, and there "
			       "is room for %u: grant folders in place of files, or raise the "
			       "server's RLIMIT_NOFILE",
			       count_burst(plan), maker->burst_max);
	return 0;
}

/* Takes others' of the same kind, or makes them. own is all that was found. */
static int provide(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		   struct vt_cells *own, struct vt_cells **ret_cells, struct vt_err *err)
{
	bool used = vt_cells_are_used(wish);
	struct vt_cells *same = own->is_plain ? find_own(maker, wish) : NULL;
	int r = 0;

	if (!same && own->key.len) {
		same = find_same(maker, own);
		if (same)
			same->client = wish->client;
	}
	if (same) {
		*ret_cells = same;
		return 0;
	}
	if (used)
		make_room(maker);
	r = used ? check_room(maker, own->plan, err) : 0;
	if (r < 0)
		return r;
	if (own->is_plain) {
		own->sources = malloc(wish->sources_len + 1);
		if (!own->sources)
			return vt_cells_no_memory(err);
		memcpy(own->sources, wish->sources, wish->sources_len);
		own->sources_len = wish->sources_len;
	}
	if (used)
		r = start(maker, own, wish, err);
	if (r < 0)
		return r;
	own->client = wish->client;
	own->next = maker->first;
	maker->first = own;
	maker->count += used;
	*ret_cells = own;
	return 0;
}

/* found: NULL where the paths are to be asked now. */
static int get(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
	       struct vt_cells_found *found, struct vt_cells **ret_cells, char **ret_path,
	       struct vt_err *err)
{
	struct vt_cells *own = calloc(1, sizeof(*own)), *cells = NULL;
	char *path = NULL;

	if (!own)
		return vt_cells_no_memory(err);
	own->maker = maker;
	own->program_fd = -1;
	vt_str_init(&own->key);
	int r = found ? vt_cells_believe(own, wish, found, err)
		      : vt_cells_find(own, wish, find_own(maker, wish), err);

	if (r == 0) {
		path = own->path;
		own->path = NULL;
		r = provide(maker, wish, own, &cells, err);
	}
	if (cells != own)
		cells_free(own);
	if (!cells) {
		free(path);
		return r;
	}
	cells->users++;
	*ret_cells = cells;
	*ret_path = path;
	return 0;
}

int vt_cells_get(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		 struct vt_cells **ret_cells, char **ret_path, struct vt_err *err)
{
	return get(maker, wish, NULL, ret_cells, ret_path, err);
}

int vt_cells_take(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		  struct vt_cells_found *found, struct vt_cells **ret_cells, char **ret_path,
		  struct vt_err *err)
{
	return get(maker, wish, found, ret_cells, ret_path, err);
}

void vt_cells_count(const struct vt_cells_maker *maker, struct vt_pool_counts *ret_counts)
{
	struct vt_pool_counts sum = maker->past;

	/* What goes as soon as the loop comes to it is gone. */
	for (const struct vt_cells *cells = maker->first; cells; cells = cells->next)
		add_counts(&sum, cells, cells->quitting || (!cells->users && !maker->keep_ns));
	*ret_counts = sum;
}

unsigned vt_cells_taken(const struct vt_cells_maker *maker)
{
	unsigned count = 0;

	for (const struct vt_cells *cells = maker->first; cells; cells = cells->next)
		count += cells->pool && cells->users;
	return count;
}

void vt_cells_release(struct vt_cells *cells)
{
	if (!cells || --cells->users > 0)
		return;
	struct vt_cells_maker *maker = cells->maker;

	cells->due = cells->pool ? vt_clock_now() + maker->keep_ns : 0;
	vt_timer_hasten(&maker->timer, cells->due);
}

/* Where it is among those that are kept; or how many there are. */
static unsigned find_kept(const struct vt_cells_maker *maker, const char *real)
{
	unsigned i = 0;

	while (i < maker->kept_count && strcmp(maker->kept[i], real) != 0)
		i++;
	return i;
}

static int keep(struct vt_cells_maker *maker, const char *path, const char **ret_kept,
		struct vt_err *err)
{
	char *real = realpath(path, NULL);
	unsigned at = real ? find_kept(maker, real) : 0;

	if (real && at < maker->kept_count) {
		free(real);
		*ret_kept = maker->kept[at];
		return 0;
	}
	if (!real || maker->kept_count == VT_CELLS_KEPT) {
		int num = real ? E2BIG : errno;

		free(real);
		return vt_fail(err, VT_STEP_POLICY, num, "keep '%s' from calls: %s", path,
			       strerror(num));
	}
	*ret_kept = maker->kept[maker->kept_count++] = real;
	return 0;
}

int vt_cells_keep(struct vt_cells_maker *maker, const char *path, struct vt_err *err)
{
	const char *kept;

	return keep(maker, path, &kept, err);
}

int vt_cells_close(struct vt_cells_maker *maker, const char *path, struct vt_err *err)
{
	return keep(maker, path, &maker->closed, err);
}

void vt_cells_maker_init(struct vt_cells_maker *maker)
{
	maker->timer = (struct vt_timer){ .fire = fires, .owner = maker };
	vt_loop_add_timer(maker->loop, &maker->timer);
}

void vt_cells_maker_done(struct vt_cells_maker *maker)
{
	maker->waits_until = vt_clock_now() + PATIENCE;
	/* All at once, so that they end beside each other. */
	for (struct vt_cells *cells = maker->first; cells; cells = cells->next)
		quit(cells);
	while (maker->first)
		end(maker->first);
	vt_loop_remove_timer(maker->loop, &maker->timer);
	while (maker->kept_count)
		free((char *)maker->kept[--maker->kept_count]);
}
