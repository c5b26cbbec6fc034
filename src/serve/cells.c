/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/cells.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launch/cell.h"
#include "plan/sources.h"
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

static int start(struct vt_cells_maker *maker, struct vt_cells *cells, unsigned ready,
		 struct vt_err *err)
{
	const struct vt_pool_options options = {
		.plan = cells->plan,
		.program = cells->program,
		.program_fd = cells->program_fd,
		.has_main = cells->has_main,
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
		.ready_min = ready,
		.ready_max = cells->ready_max,
		.live_max = cells->live_max,
		.queue_ms = cells->plan->queue_ms,
		.log = log_line,
		.user = cells,
	};

	return vt_pool_new(maker->loop, &options, &cells->pool, err);
}

/* ---- who shares them ----------------------------------------------------------------------- */

/* Bare ones have folders of their own on the host, and are one client's. */
static struct vt_cells *find_same(const struct vt_cells_maker *maker, const struct vt_str *key,
				  bool bare, uint64_t client)
{
	struct vt_cells *cells = key->len ? maker->first : NULL;

	while (cells && (cells->quitting || cells->key.len != key->len ||
			 memcmp(cells->key.text, key->text, key->len) != 0 ||
			 (bare && cells->client != client)))
		cells = cells->next;
	return cells;
}

/* ---- their end ------------------------------------------------------------------------------ */

static void add_counts(struct vt_pool_counts *sum, const struct vt_cells *cells, bool is_past)
{
	struct vt_pool_counts one = { 0 };

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
	if (!cells->plan_users || --*cells->plan_users == 0) {
		if (cells->image)
			vt_image_close(cells->image, cells->image_len);
		else
			vt_plan_free(cells->plan);
		vt_policy_free(cells->policy);
		free(cells->plan_users);
	}
	cells->maker->bytes -= cells->bytes;
	vt_fd_close(&cells->program_fd);
	free(cells->path);
	free(cells->policy_name);
	free(cells->program);
	free(cells->object);
	free(cells->script);
	free(cells->setup);
	free(cells->preload);
	vt_str_done(&cells->key);
	free(cells);
}

static void quit(struct vt_cells *cells)
{
	if (!cells->quitting) {
		cells->maker->count--;
		cells->maker->quitting++;
	}
	cells->quitting = true;
	cells->due = vt_clock_now() + PATIENCE;
	vt_pool_quit(cells->pool);
}

static void end(struct vt_cells *cells)
{
	struct vt_cells_maker *maker = cells->maker;

	add_counts(&maker->past, cells, true);
	if (cells->quitting)
		maker->quitting--;
	else
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
		if (cells->due <= now || (cells->quitting && vt_pool_is_over(cells->pool))) {
			end(cells);
			continue;
		}
		int64_t look = cells->quitting ? now + LOOK : cells->due;

		due = look < due ? look : due;
	}
	vt_timer_set(&maker->timer, due);
}

static struct vt_cells *find_unused(const struct vt_cells_maker *maker)
{
	struct vt_cells *oldest = NULL;

	for (struct vt_cells *cells = maker->first; cells; cells = cells->next)
		if (cells->users == 0 && !cells->quitting && (!oldest || cells->due < oldest->due))
			oldest = cells;
	return oldest;
}

/*
 * Those that nobody has had for longest make room. One client waits for their end itself; of others
 * what they keep is there until then.
 */
static void make_room(struct vt_cells_maker *maker, size_t bytes)
{
	struct vt_cells *oldest;
	size_t going = 0;

	while ((maker->count >= maker->count_max ||
		maker->bytes - going + bytes > maker->bytes_max) &&
	       (oldest = find_unused(maker))) {
		if (!maker->shared) {
			end(oldest);
			continue;
		}
		going += oldest->bytes;
		quit(oldest);
		vt_timer_hasten(&maker->timer, vt_clock_now() + LOOK);
	}
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
	if (maker->bytes / 2 > maker->bytes_max)
		return vt_fail(err, VT_STEP_PLAN, EBUSY,
			       "refused: what cells on their way to their end keep comes to more "
			       "than %zu MB; ask again in a moment",
			       maker->bytes_max >> 20);
	if (count_burst(plan) > maker->burst_max)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: what the policy grants takes %zu descriptors, and there "
			       "is room for %u: grant folders in place of files, or raise the "
			       "server's RLIMIT_NOFILE",
			       count_burst(plan), maker->burst_max);
	return 0;
}

/* Cells of its own, with processes and all. */
static int make(struct vt_cells *own, unsigned ready, struct vt_err *err)
{
	struct vt_cells_maker *maker = own->maker;
	size_t bytes = own->image_len + own->key.len + (own->setup ? strlen(own->setup) : 0);

	make_room(maker, bytes);
	int r = check_room(maker, own->plan, err);

	if (r == 0)
		r = start(maker, own, ready, err);
	if (r < 0)
		return r;
	own->bytes = bytes;
	own->next = maker->first;
	maker->first = own;
	maker->count++;
	maker->bytes += bytes;
	return 0;
}

/* What was found when less was kept is judged by all of that. */
static int check_kept(const struct vt_cells_maker *maker, const struct vt_cells *own,
		      struct vt_err *err)
{
	for (unsigned i = 0; own->generation != maker->generation && i < maker->kept_count; i++)
		if (vt_sources_reach(own->plan, maker->host, maker->kept[i]))
			return vt_fail(err, VT_STEP_PLAN, EPERM,
				       "refused: files.write: a call could change '%s', which is "
				       "the server's own by now: deny it (files.deny), and ask "
				       "again",
				       maker->kept[i]);
	return 0;
}

/* Takes others' of the same kind, or makes them. own is all that was found. */
static int provide(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		   struct vt_cells *own, struct vt_cells **ret_cells, struct vt_err *err)
{
	int r = check_kept(maker, own, err);

	if (r < 0)
		return r;
	own->generation = maker->generation;
	own->client = wish->client;
	own->ready_min = wish->ready_min;
	own->ready_max = wish->ready_max;
	own->live_max = wish->live_max;
	own->has_main = wish->program;
	struct vt_cells *same = find_same(maker, &own->key, own->plan->bare, wish->client);

	if (same) {
		same->client = wish->client;
		same->generation = maker->generation; /* as it would be planned now */
		*ret_cells = same;
		return 0;
	}
	if (vt_cells_are_used(wish))
		r = make(own, vt_cells_ready(wish), err);
	if (r == 0)
		*ret_cells = own;
	return r;
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
	int r = found ? vt_cells_believe(own, wish, found, err) : vt_cells_find(own, wish, err);

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
		count += cells->users > 0;
	return count;
}

void vt_cells_release(struct vt_cells *cells)
{
	if (!cells || --cells->users > 0)
		return;
	struct vt_cells_maker *maker = cells->maker;

	/* Those that were only to be looked at are in no list. */
	if (!cells->pool) {
		cells_free(cells);
		return;
	}
	if (!cells->quitting)
		cells->due = vt_clock_now() + maker->keep_ns;
	vt_timer_hasten(&maker->timer, cells->quitting ? vt_clock_now() + LOOK : cells->due);
}

void vt_cells_let_go(struct vt_cells *cells)
{
	if (cells)
		cells->calls--;
	vt_cells_release(cells);
}

/* ---- what they learn ------------------------------------------------------------------------ */

/* Such cells as others, under the same plan; nothing of them is started. NULL: no memory. */
static struct vt_cells *copy_cells(struct vt_cells *from)
{
	struct vt_cells_wish wish = { .setup = from->setup };
	struct vt_cells *copy = calloc(1, sizeof(*copy));
	struct vt_err err;

	if (!from->plan_users && (from->plan_users = malloc(sizeof(*from->plan_users))))
		*from->plan_users = 1;
	if (!copy || !from->plan_users) {
		free(copy);
		return NULL;
	}
	*copy = (struct vt_cells){
		.maker = from->maker,
		.client = from->client,
		.generation = from->generation,
		.policy = from->policy,
		.plan = from->plan,
		.image = from->image,
		.image_len = from->image_len,
		.plan_users = from->plan_users,
		.ready_min = from->ready_min,
		.ready_max = from->ready_max,
		.live_max = from->live_max,
		.policy_name = strdup(from->policy_name),
		.program = strdup(from->program),
		.script = strdup(from->script),
		.program_fd = from->program_fd < 0 ? -1
						   : fcntl(from->program_fd, F_DUPFD_CLOEXEC, 3),
	};
	++*copy->plan_users;
	vt_str_init(&copy->key);
	wish.interpreters[from->interpreter - vt_interpreters] = from->program;
	if (!copy->policy_name || !copy->program || !copy->script ||
	    (from->program_fd >= 0 && copy->program_fd < 0) ||
	    vt_cells_arrange(copy, &wish, &err) < 0) {
		cells_free(copy);
		return NULL;
	}
	return copy;
}

/* Cells that know all that these do, and are somebody's who asked for that. */
static int learn_apart(struct vt_cells *from, struct vt_str *key, const char *module,
		       struct vt_cells **ret_cells, struct vt_err *err)
{
	struct vt_cells *copy = copy_cells(from);

	if (!copy)
		return vt_cells_no_memory(err);
	copy->key = *key;
	vt_str_init(key);
	int r = make(copy, 1, err);

	if (r < 0) {
		cells_free(copy);
		return r;
	}
	vt_pool_learn_same(copy->pool, from->pool);
	vt_pool_learn(copy->pool, module);
	*ret_cells = copy;
	return 0;
}

int vt_cells_learn(struct vt_cells **cells, const char *module, int may_make, struct vt_err *err)
{
	struct vt_cells *from = *cells, *other = NULL;
	struct vt_cells_maker *maker = from->maker;
	char lesson[VT_MODULE_MAX + 16];
	struct vt_str key;
	int r = 0;

	(void)snprintf(lesson, sizeof(lesson), "\n\1learned %s\n", module); /* fits */
	/* A module that the pool does not take must not make the key longer either: a client can
	 * name as many as it wants. */
	if (!maker->shared || from->plan->bare || !from->interpreter ||
	    !from->interpreter->learns || !from->key.len || from->quitting ||
	    !vt_pool_can_learn(from->pool, module) ||
	    memmem(from->key.text, from->key.len, lesson, strlen(lesson))) {
		vt_pool_learn(from->pool, module);
		return 0;
	}
	vt_str_init(&key);
	vt_str_addn(&key, from->key.text, from->key.len);
	vt_str_add(&key, lesson);
	if (!vt_str_ok(&key))
		r = vt_cells_no_memory(err);
	else if (!(other = find_same(maker, &key, false, from->client)) &&
		 from->users - from->calls > 1)
		r = may_make < 0 ? may_make : learn_apart(from, &key, module, &other, err);
	if (r == 0 && other) {
		other->users++;
		vt_cells_release(from);
		*cells = other;
		r = 1;
	} else if (r == 0) {
		struct vt_str before = from->key;

		from->key = key;
		key = before;
		vt_pool_learn(from->pool, module);
	}
	vt_str_done(&key);
	return r;
}

/* ---- what no call may change ---------------------------------------------------------------- */

/* Where it is among those that are kept; or how many there are. */
static unsigned find_kept(const struct vt_cells_maker *maker, const char *path)
{
	unsigned i = 0;

	while (i < maker->kept_count && strcmp(maker->kept[i], path) != 0)
		i++;
	return i;
}

/* By its name: whoever can change a link on that way puts another file there. */
static char *name_kept(const char *path)
{
	char cwd[PATH_MAX], *name = NULL;

	if (access(path, F_OK) < 0)
		return NULL;
	if (*path == '/')
		return strdup(path);
	if (getcwd(cwd, sizeof(cwd)) && asprintf(&name, "%s/%s", cwd, path) < 0)
		name = NULL;
	return name;
}

static int keep(struct vt_cells_maker *maker, const char *path, const char **ret_kept,
		struct vt_err *err)
{
	char *name = name_kept(path);
	int num = errno;
	unsigned at = name ? find_kept(maker, name) : 0;

	if (!name || at == VT_CELLS_KEPT) {
		free(name);
		num = name ? E2BIG : num;
		return vt_fail(err, VT_STEP_POLICY, num, "keep '%s' from calls: %s", path,
			       strerror(num));
	}
	if (at < maker->kept_count) {
		free(name);
	} else {
		maker->kept[maker->kept_count++] = name;
		maker->kept_users[at] = 0;
		maker->generation++;
	}
	maker->kept_users[at]++;
	*ret_kept = maker->kept[at];
	return 0;
}

int vt_cells_keep(struct vt_cells_maker *maker, const char *path, struct vt_err *err)
{
	const char *kept;

	return keep(maker, path, &kept, err);
}

void vt_cells_unkeep(struct vt_cells_maker *maker, const char *path)
{
	unsigned at = find_kept(maker, path);

	if (at == maker->kept_count || --maker->kept_users[at] > 0)
		return;
	free((char *)maker->kept[at]);
	maker->kept[at] = maker->kept[--maker->kept_count];
	maker->kept_users[at] = maker->kept_users[maker->kept_count];
}

void vt_cells_end_writers(struct vt_cells_maker *maker)
{
	char text[PATH_MAX + 128];

	vt_host_look_anew(maker->host);
	for (struct vt_cells *cells = maker->first; cells; cells = cells->next) {
		unsigned i = 0;

		if (cells->quitting || cells->generation == maker->generation)
			continue;
		while (i < maker->kept_count &&
		       !vt_sources_reach(cells->plan, maker->host, maker->kept[i]))
			i++;
		cells->generation = maker->generation;
		if (i == maker->kept_count)
			continue;
		(void)snprintf(text, sizeof(text),
			       "cells are ended, whose calls could change '%s', which is the "
			       "server's own by now",
			       maker->kept[i]); /* fits */
		maker->log(maker->user, cells, LOG_WARNING, text);
		quit(cells);
		vt_timer_hasten(&maker->timer, vt_clock_now() + LOOK);
	}
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
