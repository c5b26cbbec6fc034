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

#include "base/fd.h"
#include "base/json.h"
#include "host/helper.h"
#include "plan/lookup.h"
#include "policy/policy.h"
#include "serve/settle.h"

enum { CELLS_MAX = 256 }; /* each has a hull, and processes of its own */

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

/* *ret_command is what the plan is made for; its path is NULL where that is nothing of its own. */
static int find(const struct vt_cells *cells, const struct vt_cells_wish *wish,
		struct vt_arena *arena, struct vt_command *ret_command, struct vt_err *err)
{
	if (!!wish->program + !!wish->object + !!wish->command > 1)
		return misunderstand("a pool is of one program, or object, or command", err);
	if (wish->object && *wish->object != '/')
		return misunderstand("the object of a pool", err);
	if (wish->program && *wish->program != '/')
		return misunderstand("the program of a pool", err);
	if (wish->object)
		return vt_lookup_object(arena, wish->object, cells->policy, ret_command, err);
	if (wish->command)
		return vt_lookup_command(arena, wish->command, cells->policy, ret_command, err);
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
		maker->log(maker->user, LOG_NOTICE, text);
	}
	return 0;
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
		.environ = environ,
		.pooled = true,
		.cells = wish->ready_max + wish->live_max,
		.name = name,
	};

	return vt_plan_make(cells->policy, maker->host, &request, &cells->plan, err);
}

/* ---- the cells ----------------------------------------------------------------------------- */

/*
 * A program that is replaced or removed while the client runs stays what it was. One that cannot be
 * read goes by its path alone.
 */
static void pin_program(struct vt_cells *cells, int known_fd)
{
	AUTO_CLOSE int fd = known_fd >= 0 ? fcntl(known_fd, F_DUPFD_CLOEXEC, 3)
					  : open(cells->program,
						 O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	/* A fifo is no program, and must not be waited for either. */
	if (fd > 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		cells->program_fd = vt_fd_take(&fd);
}

/* Which program holds the tools ready. */
static int choose_zygote(const struct vt_cells_maker *maker, struct vt_cells *cells,
			 const struct vt_cells_wish *wish, const struct vt_command *command,
			 struct vt_err *err)
{
	char helper[PATH_MAX];

	if (wish->command) {
		cells->program = strdup("/proc/self/exe");
		cells->argv[0] = (char *)"vitro-commands";
	} else if (wish->object) {
		int r = vt_helper_find("vitro-object", helper, err);

		if (r < 0)
			return r;
		cells->program = strdup(helper);
		cells->object = strdup(command->path);
		cells->argv[0] = cells->program;
		cells->argv[1] = cells->object;
		if (!cells->program || !cells->object)
			return no_memory(err);
		pin_program(cells, -1);
	} else {
		cells->program = strdup(wish->program);
		cells->argv[0] = cells->program;
		if (cells->program)
			pin_program(cells, maker->program_fd);
	}
	return cells->program ? 0 : no_memory(err);
}

static int start(const struct vt_cells_maker *maker, struct vt_cells *cells,
		 const struct vt_cells_wish *wish, const struct vt_command *command,
		 struct vt_err *err)
{
	int r = choose_zygote(maker, cells, wish, command, err);
	const struct vt_pool_options options = {
		.plan = cells->plan,
		.program = cells->program,
		.program_fd = cells->program_fd,
		.has_main = wish->program,
		.object = cells->object,
		.argv = cells->argv,
		.spawner_fd = maker->spawner_fd,
		.children = maker->children,
		.ready_min = wish->ready_min,
		.ready_max = wish->ready_max,
		.live_max = wish->live_max,
		.queue_ms = cells->plan->queue_ms,
		.log = maker->log,
		.user = maker->user,
	};

	return r < 0 ? r : vt_pool_new(maker->loop, &options, &cells->pool, err);
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
	free(cells->sources);
	free(cells);
}

static struct vt_cells *find_shared(const struct vt_cells_maker *maker,
				    const struct vt_cells_wish *wish)
{
	struct vt_cells *cells = maker->first;

	while (cells && (!cells->sources || cells->sources_len != wish->sources_len ||
			 memcmp(cells->sources, wish->sources, wish->sources_len) != 0))
		cells = cells->next;
	return cells;
}

/* Takes others' of the same kind, or makes them. */
static int provide(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		   const struct vt_command *command, struct vt_cells *own,
		   struct vt_cells **ret_cells, struct vt_err *err)
{
	bool plain = wish->command && !command->prefix_count && !command->bin_dir_count;
	struct vt_cells *cells = plain ? find_shared(maker, wish) : NULL;
	int r = 0;

	if (cells) {
		*ret_cells = cells;
		return 0;
	}
	if (maker->count >= CELLS_MAX)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "there are cells of %d policies and programs already, which is the "
			       "most; let tools share theirs",
			       CELLS_MAX);
	if (plain) {
		own->sources = malloc(wish->sources_len + 1);
		if (!own->sources)
			return no_memory(err);
		memcpy(own->sources, wish->sources, wish->sources_len);
		own->sources_len = wish->sources_len;
	}
	r = make_plan(maker, own, wish, command, err);
	if (r == 0 && (wish->program || wish->object || wish->command))
		r = start(maker, own, wish, command, err);
	if (r < 0)
		return r;
	own->next = maker->first;
	maker->first = own;
	maker->count++;
	*ret_cells = own;
	return 0;
}

int vt_cells_get(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		 struct vt_cells **ret_cells, char **ret_path, struct vt_err *err)
{
	struct vt_cells *own = calloc(1, sizeof(*own)), *cells = NULL;
	struct vt_arena *arena = vt_arena_new();
	struct vt_command command = { 0 };
	char *path = NULL;
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

static void add_counts(struct vt_pool_counts *sum, const struct vt_cells *cells)
{
	struct vt_pool_counts one = { 0 };

	if (cells->pool)
		vt_pool_count(cells->pool, &one);
	sum->ready += one.ready;
	sum->refilling += one.refilling;
	sum->live += one.live;
	sum->waiting += one.waiting;
	sum->calls += one.calls;
	sum->cells_made += one.cells_made;
	sum->cold_calls += one.cold_calls;
}

void vt_cells_count(const struct vt_cells_maker *maker, struct vt_pool_counts *ret_counts)
{
	struct vt_pool_counts sum = maker->past;

	for (const struct vt_cells *cells = maker->first; cells; cells = cells->next)
		add_counts(&sum, cells);
	*ret_counts = sum;
}

void vt_cells_release(struct vt_cells_maker *maker, struct vt_cells *cells)
{
	if (!cells || --cells->users > 0)
		return;
	maker->count--;
	add_counts(&maker->past, cells);
	maker->past.ready = maker->past.refilling = maker->past.live = maker->past.waiting = 0;
	for (struct vt_cells **at = &maker->first; *at; at = &(*at)->next) {
		if (*at == cells) {
			*at = cells->next;
			break;
		}
	}
	cells_free(cells);
}
