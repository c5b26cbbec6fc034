/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client's wish comes to: its policy, its program, its plan. All that asks paths which a
 * client named is here, in choose.c and in key.c; on a server it runs in a scout, and never on the
 * loop.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "launch/image.h"
#include "plan/lookup.h"
#include "policy/builtin.h"
#include "policy/policy.h"
#include "serve/cells.h"
#include "serve/key.h"
#include "serve/request.h"
#include "serve/settle.h"

enum {
	SETUP_MAX = 48 << 10,
	/* Of what a scout found: an environment twice, and as much again. It is walked on the loop.
	 */
	IMAGE_MAX = 8 << 20,
};

/* ---- the policy ---------------------------------------------------------------------------- */

static int apply_source(struct vt_policy *policy, const json_t *source, bool is_clients,
			struct vt_err *err)
{
	const char *load = json_string_value(json_object_get(source, "load"));
	const json_t *text = json_object_get(source, "json");
	const char *key = json_string_value(json_object_get(source, "key"));
	const char *value = json_string_value(json_object_get(source, "value"));
	const char *from = json_string_value(json_object_get(source, "from"));

	/* A text of a client's is no part of a file that the client names. */
	if (from && is_clients)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "a source of a policy has 'from', which a server takes from nobody: "
			       "leave it out, and name files by their absolute paths");
	/* A server has another working directory. */
	if (policy->plain_files && load && *load != '/' && !vt_builtin_find(load))
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "a policy's file goes by its absolute path to a server");
	if (load)
		return vt_policy_load(policy, load, "", err);
	if (json_is_string(text) && from)
		return vt_policy_load_part(policy, json_string_value(text),
					   json_string_length(text), from, from, err);
	if (json_is_string(text))
		return vt_policy_load_text(policy, json_string_value(text),
					   json_string_length(text), NULL, "policy", err);
	if (key && value)
		return vt_policy_set(policy, key, value, NULL, key, err);
	return vt_request_misunderstand("a source of a policy", err);
}

/*
 * What a log calls it. A client's has a file's or a built-in's name where it is that and nothing
 * else: what the client adds may be wider.
 */
static int name_policy(struct vt_cells *cells, const struct vt_cells_wish *wish,
		       const json_t *sources, struct vt_err *err)
{
	const struct vt_policy *policy = cells->policy;
	const char *only = json_array_size(sources) == 1
				   ? json_string_value(
					     json_object_get(json_array_get(sources, 0), "load"))
				   : NULL;
	const char *name = "default";

	if (wish->caller)
		name = only ? only : json_array_size(sources) ? "the client's own" : "default";
	else if (policy->sources.count)
		name = policy->sources.items[policy->sources.count - 1];
	else if (policy->given)
		name = "the client's own";
	cells->policy_name = strdup(name);
	return cells->policy_name ? 0 : vt_cells_no_memory(err);
}

static int read_policy(struct vt_cells *cells, const struct vt_cells_wish *wish, struct vt_err *err)
{
	int r = vt_policy_new(&cells->policy, err);

	/* What one client names keeps the others waiting. */
	if (r == 0) {
		cells->policy->plain_files = cells->maker->shared;
		cells->policy->texts = &cells->key;
	}
	AUTO_JSON json_t *sources = NULL;
	const json_t *source;
	size_t i;

	if (r == 0 && wish->sources_len)
		r = vt_json_load_text(wish->sources, wish->sources_len, "sources", &sources, err);
	if (r == 0 && sources && !json_is_array(sources))
		return vt_request_misunderstand("the sources of a policy", err);
	json_array_foreach(sources, i, source) if (r == 0)
		r = apply_source(cells->policy, source, wish->caller, err);
	if (r == 0)
		r = name_policy(cells, wish, sources, err);
	if (cells->policy)
		cells->policy->texts = NULL;
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
static int find_command(const struct vt_cells *cells, const struct vt_cells_wish *wish,
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
		.kept = { maker->kept, maker->kept_count },
		.closed = { &maker->closed, maker->closed != NULL },
	};

	r = vt_plan_make(cells->policy, maker->host, &request, &cells->plan, err);
	return r < 0 || !vt_cells_are_used(wish) ? r : vt_cells_check_run(cells, wish, err);
}

static int plan_zygote(struct vt_cells *cells, const struct vt_cells_wish *wish,
		       const struct vt_command *command, struct vt_err *err)
{
	int r = make_plan(cells->maker, cells, wish, command, err);

	if (r == 0 && vt_cells_are_used(wish))
		r = vt_cells_choose_zygote(cells, wish, command, err);
	/* What programs and interpreters hold ready is shared by clients of a server alone. */
	if (r == 0 && (wish->command || (vt_cells_are_used(wish) && cells->maker->shared)))
		return vt_cells_key(cells, wish, command, err);
	vt_str_clear(&cells->key);
	return r;
}

int vt_cells_find(struct vt_cells *cells, const struct vt_cells_wish *wish, struct vt_err *err)
{
	struct vt_arena *arena = vt_arena_new();
	struct vt_command command = { 0 };
	int r = arena ? read_policy(cells, wish, err) : vt_cells_no_memory(err);

	cells->generation = cells->maker->generation;

	if (r == 0)
		r = find_command(cells, wish, arena, &command, err);
	if (r == 0) {
		cells->path = wish->command ? strdup(command.path) : NULL;
		if (wish->command && !cells->path)
			r = vt_cells_no_memory(err);
	}
	if (r == 0)
		r = plan_zygote(cells, wish, &command, err);
	vt_arena_free(arena);
	return r;
}

/* ---- for another process --------------------------------------------------------------------- */

enum { PATH_TEXT, PROGRAM_TEXT, OBJECT_TEXT, SCRIPT_TEXT, POLICY_TEXT, TEXTS };

_Static_assert((int)TEXTS == (int)VT_IMAGE_TEXTS, "each has its place");

static int make_image(const struct vt_cells *cells, struct vt_err *err)
{
	const struct vt_image_whole whole = {
		.plan = *cells->plan,
		.texts = { [PATH_TEXT] = cells->path,
			   [PROGRAM_TEXT] = cells->program,
			   [OBJECT_TEXT] = cells->object,
			   [SCRIPT_TEXT] = cells->script,
			   [POLICY_TEXT] = cells->policy_name },
		.bytes = cells->key.text,
		.bytes_len = cells->key.len,
	};

	return vt_image_make_whole(&whole, err);
}

void vt_cells_look(struct vt_cells_maker *maker, const struct vt_cells_wish *wish,
		   struct vt_cells_found *ret_found)
{
	struct vt_cells cells = { .maker = maker, .program_fd = -1 };
	int r;

	memset(ret_found, 0, sizeof(*ret_found)); /* with what is between its members */
	ret_found->image_fd = ret_found->program_fd = -1;
	vt_str_init(&cells.key);
	r = vt_cells_find(&cells, wish, &ret_found->err);
	if (r == 0)
		r = ret_found->image_fd = make_image(&cells, &ret_found->err);
	if (r < 0)
		return;
	ret_found->err.num = 0;
	ret_found->generation = cells.generation;
	ret_found->program_fd = cells.program_fd;
}

/* *ret_text: NULL where there is none. */
static int copy_text(const char *text, char **ret_text, struct vt_err *err)
{
	*ret_text = text ? strdup(text) : NULL;
	return text && !*ret_text ? vt_cells_no_memory(err) : 0;
}

int vt_cells_believe(struct vt_cells *cells, const struct vt_cells_wish *wish,
		     struct vt_cells_found *found, struct vt_err *err)
{
	struct stat st;

	if (found->err.num)
		return vt_fail(err, found->err.step, found->err.num, "%s", found->err.what);
	if (fstat(found->image_fd, &st) < 0 || st.st_size > IMAGE_MAX)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: what the pool names, and what is passed on to it, comes "
			       "to more than %d MB",
			       IMAGE_MAX >> 20);
	int r = vt_image_open_whole(found->image_fd, &cells->image, &cells->image_len, err);

	if (r < 0)
		return r;
	const struct vt_image_whole *image = cells->image;

	cells->plan = &cells->image->plan;
	cells->generation = found->generation;
	cells->program_fd = vt_fd_take(&found->program_fd);
	if ((r = copy_text(image->texts[PATH_TEXT], &cells->path, err)) < 0 ||
	    (r = copy_text(image->texts[PROGRAM_TEXT], &cells->program, err)) < 0 ||
	    (r = copy_text(image->texts[OBJECT_TEXT], &cells->object, err)) < 0 ||
	    (r = copy_text(image->texts[SCRIPT_TEXT], &cells->script, err)) < 0 ||
	    (r = copy_text(image->texts[POLICY_TEXT], &cells->policy_name, err)) < 0)
		return r;
	vt_str_addn(&cells->key, image->bytes ? image->bytes : "", image->bytes_len);
	if (!vt_str_ok(&cells->key))
		return vt_cells_no_memory(err);
	if (!cells->plan->pooled || (wish->command && !cells->path) ||
	    (vt_cells_are_used(wish) && !cells->program))
		return vt_fail(err, VT_STEP_PLAN, EBADMSG, "understand what was found of a pool");
	return vt_cells_are_used(wish) ? vt_cells_arrange(cells, wish, err) : 0;
}

void vt_cells_found_done(struct vt_cells_found *found)
{
	vt_fd_close(&found->image_fd);
	vt_fd_close(&found->program_fd);
}
