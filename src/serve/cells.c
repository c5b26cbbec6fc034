/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/cells.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "plan/lookup.h"
#include "policy/builtin.h"
#include "policy/policy.h"
#include "serve/key.h"
#include "serve/settle.h"

enum { SETUP_MAX = 48 << 10 };

/* How long cells that were told to end are waited for without anybody noticing; and how often it is
 * looked. */
#define PATIENCE (2 * VT_NS_PER_S)
#define LOOK     (20 * VT_NS_PER_MS)

static int misunderstand(const char *what, struct vt_err *err)
{
	return vt_fail(err, VT_STEP_WIRE, EBADMSG, "understand the client: %s", what);
}

static int no_memory(struct vt_err *err)
{
	return vt_fail(err, VT_STEP_WIRE, ENOMEM, "make a pool");
}

/* ---- the policy ---------------------------------------------------------------------------- */

static int apply_source(struct vt_policy *policy, const json_t *source, struct vt_err *err)
{
	const char *load = json_string_value(json_object_get(source, "load"));
	const json_t *text = json_object_get(source, "json");
	const char *key = json_string_value(json_object_get(source, "key"));
	const char *value = json_string_value(json_object_get(source, "value"));
	const char *from = json_string_value(json_object_get(source, "from"));

	/* A server has another working directory. */
	if (policy->plain_files &&
	    ((load && *load != '/' && !vt_builtin_find(load)) || (from && *from != '/')))
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "a policy's file goes by its absolute path to a server");
	if (load)
		return vt_policy_load(policy, load, err);
	if (json_is_string(text) && from)
		return vt_policy_load_part(policy, json_string_value(text),
					   json_string_length(text), from, from, err);
	if (json_is_string(text))
		return vt_policy_load_text(policy, json_string_value(text),
					   json_string_length(text), NULL, "policy", err);
	if (key && value)
		return vt_policy_set(policy, key, value, NULL, key, err);
	return misunderstand("a source of a policy", err);
}

static int read_policy(struct vt_cells *cells, const struct vt_cells_wish *wish, struct vt_err *err)
{
	int r = vt_policy_new(&cells->policy, err);

	/* What one client names keeps the others waiting. */
	if (r == 0) {
		cells->policy->plain_files = cells->maker->shared;
		cells->policy->kept = (struct vt_strings){ cells->maker->kept,
							   cells->maker->kept_count };
		cells->policy->closed = (struct vt_strings){ &cells->maker->closed,
							     cells->maker->closed != NULL };
	}
	AUTO_JSON json_t *sources = NULL;
	const json_t *source;
	size_t i;

	if (r == 0 && wish->sources_len)
		r = vt_json_load_text(wish->sources, wish->sources_len, "sources", &sources, err);
	if (r == 0 && sources && !json_is_array(sources))
		return misunderstand("the sources of a policy", err);
	json_array_foreach(sources, i, source) if (r == 0)
		r = apply_source(cells->policy, source, err);
	return r;
}

/* ---- what it runs -------------------------------------------------------------------------- */

const struct vt_interpreter *vt_cells_interpreter(const struct vt_cells_wish *wish)
{
	for (size_t i = 0; i < VT_LANGUAGES; i++)
		if (wish->interpreters[i])
			return &vt_interpreters[i];
	return NULL;
}

bool vt_cells_are_used(const struct vt_cells_wish *wish)
{
	return wish->program || wish->object || wish->command || vt_cells_interpreter(wish);
}

/* Whether what it is of is said once, and as it is to be. */
static int check_kinds(const struct vt_cells_wish *wish, struct vt_err *err)
{
	struct {
		const char *key, *value;
		bool is_path;
	} kinds[3 + VT_LANGUAGES] = {
		{ "command", wish->command, false },
		{ "object", wish->object, true },
		{ "program", wish->program, true },
	};
	const char *first = NULL;

	for (size_t i = 0; i < VT_LANGUAGES; i++) {
		kinds[3 + i].key = vt_interpreters[i].name;
		kinds[3 + i].value = wish->interpreters[i];
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!kinds[i].value)
			continue;
		if (first)
			return vt_fail(err, VT_STEP_POLICY, EINVAL,
				       "a pool has '%s' and '%s': it is of one of them; make two "
				       "pools",
				       first, kinds[i].key);
		first = kinds[i].key;
		if (kinds[i].is_path && *kinds[i].value != '/')
			return vt_fail(err, VT_STEP_POLICY, EINVAL,
				       "'%s' of a pool is '%s', and goes by its absolute path",
				       first, kinds[i].value);
	}
	return 0;
}

static int check_setup(const struct vt_cells_wish *wish, struct vt_err *err)
{
	const struct vt_interpreter *interpreter = vt_cells_interpreter(wish);

	if (interpreter && !wish->setup)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "'%s' of a pool comes with 'setup'",
			       interpreter->name);
	if (!interpreter && wish->setup)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "'setup' of a pool comes with 'python' or 'node'");
	if (wish->setup && strlen(wish->setup) > SETUP_MAX)
		return vt_fail(err, VT_STEP_POLICY, E2BIG, "'setup' of a pool is more than %d KiB",
			       SETUP_MAX >> 10);
	return 0;
}

/* One that is gone or another meanwhile stays what it was, where that is known. What is no file
 * never was one. */
static int check_program(const struct vt_cells_wish *wish, struct vt_err *err)
{
	struct stat st;

	if (stat(wish->program, &st) < 0)
		return wish->program_fd >= 0
			       ? 0
			       : vt_fail(err, VT_STEP_COMMAND, errno, "'%s' cannot be executed: %s",
					 wish->program, strerror(errno));
	return S_ISREG(st.st_mode)
		       ? 0
		       : vt_fail(err, VT_STEP_COMMAND, EACCES, "'%s' is not a file", wish->program);
}

/* *ret_command is what the plan is made for; its path is NULL where that is nothing of its own. */
static int find(const struct vt_cells *cells, const struct vt_cells_wish *wish,
		struct vt_arena *arena, struct vt_command *ret_command, struct vt_err *err)
{
	const struct vt_interpreter *interpreter = vt_cells_interpreter(wish);
	int r = check_kinds(wish, err);

	if (r == 0)
		r = check_setup(wish, err);
	if (r < 0)
		return r;
	if (wish->program)
		return check_program(wish, err);
	if (wish->object)
		return vt_lookup_object(arena, wish->object, cells->policy, ret_command, err);
	if (wish->command)
		return vt_lookup_command_for(wish->caller, arena, wish->command, cells->policy,
					     ret_command, err);
	if (interpreter)
		return vt_lookup_interpreter_for(wish->caller, arena,
						 wish->interpreters[interpreter - vt_interpreters],
						 cells->policy, ret_command, err);
	return 0;
}

/* Once: what can be had here does not change. */
static int settle(struct vt_cells_maker *maker, struct vt_policy *policy, struct vt_err *err)
{
	const struct vt_fact *userns = &maker->host->userns;
	char text[512];

	if (maker->spawner_fd < 0)
		return vt_fail(err, VT_STEP_PLAN, ENOENT,
			       "refused: a pool needs /proc, by which vitro finds its own program");
	int r = maker->settled ? 0 : vt_serve_settle(policy, maker->host, err);

	if (r < 0 || maker->settled)
		return r;
	maker->settled = true;
	if (userns->err) {
		(void)snprintf(text, sizeof(text), "cells have no namespaces here: %s: %s",
			       userns->tried,
			       strerror(userns->err)); /* what is cut is for a person */
		maker->log(maker->user, NULL, LOG_NOTICE, text);
	}
	return 0;
}

int vt_cells_settle(struct vt_cells_maker *maker, struct vt_err *err)
{
	struct vt_policy *policy;
	int r = vt_policy_new(&policy, err);

	if (r < 0)
		return r;
	r = settle(maker, policy, err);
	vt_policy_free(policy);
	return r;
}

/* Private folders on the host are called by it, and somebody may be waiting to make one. */
static int make_plan(struct vt_cells_maker *maker, struct vt_cells *cells,
		     const struct vt_cells_wish *wish, const struct vt_command *command,
		     struct vt_err *err)
{
	char *argv[] = { (char *)command->path, NULL };
	uint64_t number;
	char name[32];
	int r = settle(maker, cells->policy, err);

	if (r < 0)
		return r;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return vt_fail(err, VT_STEP_PLAN, errno, "make a name for a pool");
	(void)snprintf(name, sizeof(name), "p%016llx", (unsigned long long)number); /* fits */
	const struct vt_request request = {
		.command = command->path ? command : NULL,
		.argv = argv,
		.environ = wish->caller ? wish->caller->environ : environ,
		.pooled = true,
		.cells = wish->ready_max + wish->live_max,
		.name = name,
	};

	r = vt_plan_make(cells->policy, maker->host, &request, &cells->plan, err);
	return r < 0 || !vt_cells_are_used(wish) ? r : vt_cells_check_run(cells, wish, err);
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
	vt_pool_free(cells->pool);
	vt_plan_free(cells->plan);
	vt_policy_free(cells->policy);
	if (cells->program_fd > 0)
		(void)close(cells->program_fd); /* it was only read */
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
	cells->quitting = true;
	cells->due = vt_clock_now() + (cells->pool ? PATIENCE : 0);
	if (cells->pool)
		vt_pool_quit(cells->pool);
}

static void end(struct vt_cells *cells)
{
	struct vt_cells_maker *maker = cells->maker;

	add_counts(&maker->past, cells, true);
	maker->count -= cells->pool != NULL;
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

/* The one that nobody has had for longest makes room. */
static void make_room(struct vt_cells_maker *maker)
{
	struct vt_cells *oldest = NULL;

	for (struct vt_cells *cells = maker->first; cells; cells = cells->next)
		if (cells->users == 0 && cells->pool && (!oldest || cells->due < oldest->due))
			oldest = cells;
	if (maker->count >= maker->count_max && oldest)
		end(oldest);
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
			       "there are cells of %u policies and programs already, which is the "
			       "most; let tools share theirs",
			       maker->count_max);
	if (count_burst(plan) > maker->burst_max)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: what the policy grants takes %zu descriptors, and there "
			       "is room for %u: grant folders in place of files, or raise the "
			       "server's RLIMIT_NOFILE",
			       count_burst(plan), maker->burst_max);
	return 0;
}

/* Takes others' of the same kind, or makes them. */
static int provide(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		   const struct vt_command *command, struct vt_cells *own,
		   struct vt_cells **ret_cells, struct vt_err *err)
{
	bool plain = wish->command && !command->prefix_count && !command->bin_dir_count;
	bool used = vt_cells_are_used(wish);
	struct vt_cells *same = plain ? find_own(maker, wish) : NULL;
	int r = same ? 0 : make_plan(maker, own, wish, command, err);

	if (r == 0 && !same && used) {
		r = vt_cells_choose_zygote(own, wish, command, err);
		if (r == 0 && maker->shared && !own->plan->bare)
			r = vt_cells_key(own, wish, err);
		if (r == 0 && own->key.len)
			same = find_same(maker, own);
		if (same)
			same->client = wish->client;
	}
	if (r < 0 || same) {
		*ret_cells = same;
		return r;
	}
	if (used)
		make_room(maker);
	r = used ? check_room(maker, own->plan, err) : 0;
	if (r < 0)
		return r;
	if (plain) {
		own->sources = malloc(wish->sources_len + 1);
		if (!own->sources)
			return no_memory(err);
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

void vt_cells_look(struct vt_cells_maker *maker, const struct vt_cells_wish *wish)
{
	struct vt_cells own = { .maker = maker };
	struct vt_arena *arena = vt_arena_new();
	struct vt_command command = { 0 };
	struct vt_err err;

	vt_str_init(&own.key);
	/* Where it fails, who asks comes to the same end, and says so. */
	int r = arena ? read_policy(&own, wish, &err) : -ENOMEM;

	if (r == 0)
		r = find(&own, wish, arena, &command, &err);
	if (r == 0)
		r = make_plan(maker, &own, wish, &command, &err);
	if (r == 0 && vt_cells_are_used(wish))
		r = vt_cells_choose_zygote(&own, wish, &command, &err);
	if (r == 0 && vt_cells_are_used(wish))
		(void)vt_cells_key(&own, wish, &err); /* the same */
}

int vt_cells_get(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		 struct vt_cells **ret_cells, char **ret_path, struct vt_err *err)
{
	struct vt_cells *own = calloc(1, sizeof(*own)), *cells = NULL;
	struct vt_arena *arena = vt_arena_new();
	struct vt_command command = { 0 };
	char *path = NULL;

	if (own) {
		own->maker = maker;
		vt_str_init(&own->key);
	}
	int r = own && arena ? read_policy(own, wish, err) : no_memory(err);

	if (r == 0)
		r = find(own, wish, arena, &command, err);
	if (r == 0 && wish->command && !(path = strdup(command.path)))
		r = no_memory(err);
	if (r == 0)
		r = provide(maker, wish, &command, own, &cells, err);
	vt_arena_free(arena);
	if (own && cells != own)
		cells_free(own);
	if (r < 0) {
		free(path);
		return r;
	}
	cells->users++;
	*ret_cells = cells;
	*ret_path = path;
	return 0;
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
	/* All at once, so that they end beside each other. */
	for (struct vt_cells *cells = maker->first; cells; cells = cells->next)
		quit(cells);
	while (maker->first)
		end(maker->first);
	vt_loop_remove_timer(maker->loop, &maker->timer);
	while (maker->kept_count)
		free((char *)maker->kept[--maker->kept_count]);
}
