/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/offering.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "client/policy.h"
#include "manifest/table.h"
#include "tool/command.h"
#include "tool/function.h"
#include "tool/set.h"

/* What one client has checked keeps the others waiting: so much takes some 20 ms. */
enum { ARGUMENTS_MAX = 1 << 20, VALUES_MAX = 16 << 10 };

/* One tool, as the server is to know it. */
struct one {
	struct vt_tool *tool;
	struct vt_template *command,
		*input; /* input NULL: the arguments; command NULL: it is a function */
	char *sources, *program_at, *policy_at;
	char *function, *setup, *interpreter; /* of a function, else NULL */
	enum vt_language language;
};

/* All of a manifest. It lives as long as the server has it. */
struct all {
	struct one *ones;
	struct vt_offered *offered;
	size_t count;
	char *list;
	char **kept; /* ends with NULL */
};

static void release(void *user)
{
	struct all *all = user;

	for (size_t i = 0; i < all->count; i++) {
		vt_tool_unref(all->ones[i].tool);
		vt_template_free(all->ones[i].command);
		vt_template_free(all->ones[i].input);
		free(all->ones[i].sources);
		free(all->ones[i].program_at);
		free(all->ones[i].policy_at);
		free(all->ones[i].function);
		free(all->ones[i].setup);
		free(all->ones[i].interpreter);
	}
	for (char **kept = all->kept; kept && *kept; kept++)
		free(*kept);
	free(all->kept);
	free(all->ones);
	free(all->offered);
	free(all->list);
	free(all);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static int expand_checked(const struct one *one, const json_t *arguments, const char *text,
			  size_t len, struct vt_str *words, struct vt_str *input,
			  struct vt_err *err)
{
	char **argv, *made = NULL;
	size_t made_len = len;
	int r = vt_template_expand(one->command, arguments, &argv, err);

	if (r < 0)
		return r;
	for (char **word = argv; *word; word++)
		vt_str_addn(words, *word, strlen(*word) + 1);
	free(argv);
	if (one->input)
		r = vt_template_expand_input(one->input, arguments, &made, &made_len, err);
	if (r == 0)
		vt_str_addn(input, made ? made : text, made_len);
	free(made);
	return r;
}

static int check_size(const struct one *one, const char *arguments, size_t len, struct vt_err *err)
{
	if (len > ARGUMENTS_MAX)
		return vt_fail(err, VT_STEP_POLICY, E2BIG,
			       "%s: arguments: more than 1 MiB, which is the most for a server's "
			       "tool; put what is large into a file that the tool may read",
			       one->tool->name);
	if (!vt_json_is_within(arguments, len, VALUES_MAX))
		return vt_fail(err, VT_STEP_POLICY, E2BIG,
			       "%s: arguments: more than %d values, which is the most for a "
			       "server's tool; put them into a file that the tool may read",
			       one->tool->name, VALUES_MAX);
	return 0;
}

static int expand(void *user, size_t index, const char *arguments, size_t len, struct vt_str *words,
		  struct vt_str *input, struct vt_err *err)
{
	const struct all *all = user;
	const struct one *one = &all->ones[index];
	AUTO_JSON json_t *parsed = NULL;
	struct vt_err inner;
	int r = check_size(one, arguments, len, err);

	if (r == 0)
		r = vt_tool_check(one->tool, arguments, len, &parsed, err);

	if (r < 0)
		return r;
	if (!one->command) {
		vt_str_addn(input, arguments, len);
		return 0;
	}
	r = expand_checked(one, parsed, arguments, len, words, input, &inner);
	return r < 0 ? vt_fail(err, inner.step, inner.num, "%s: %s", one->tool->name, inner.what)
		     : 0;
}

/* ---- the manifest --------------------------------------------------------------------------- */

static int fill_command(struct one *one, const struct vitro_tool *from, struct vt_err *err)
{
	int r = vt_template_compile(from->command, one->tool->schema, from->name, &one->command,
				    err);

	if (r == 0 && from->input)
		r = vt_template_compile_input(from->input, one->tool->schema, from->name,
					      &one->input, err);
	return r;
}

static int fill_function(struct one *one, const struct vitro_tool *from, const char *function,
			 struct vt_err *err)
{
	one->function = strdup(function);
	one->interpreter = strdup(from->interpreter);
	if (!one->function || !one->interpreter)
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "read the tools");
	return vt_tool_set_up(one->language, function, from->folder, &one->setup, err);
}

static int fill_one(struct one *one, struct vt_offered *offered, const struct vitro_tool *from,
		    const struct vt_manifest_places *at, struct vt_err *err)
{
	const char *function = vt_tool_function(from, &one->language);
	int r = vt_tool_new(from->name, from->description, from->schema, &one->tool, err);

	if (r == 0)
		r = function ? fill_function(one, from, function, err)
			     : fill_command(one, from, err);
	if (r == 0)
		r = vt_policy_sources_reading(from->policy, from->folder, &one->sources, err);
	if (r < 0)
		return r;
	one->program_at = strdup(at->command);
	one->policy_at = strdup(at->policy);
	*offered = (struct vt_offered){
		.name = one->tool->name,
		.program = one->command ? vt_template_program(one->command) : one->interpreter,
		.function = one->function,
		.setup = one->setup,
		.language = one->language,
		.sources = one->sources,
		.program_at = one->program_at,
		.policy_at = one->policy_at,
	};
	return one->program_at && one->policy_at
		       ? 0
		       : vt_fail(err, VT_STEP_POLICY, ENOMEM, "read the tools");
}

static int make_list(struct all *all, const struct vt_manifest *manifest, struct vt_err *err)
{
	struct vt_toolset *set = vt_toolset_new(NULL, NULL);
	int r = set ? 0 : vt_fail(err, VT_STEP_POLICY, ENOMEM, "read the tools");

	for (size_t i = 0; r == 0 && i < all->count; i++) {
		r = vt_toolset_add(set, all->ones[i].tool, err);
		if (r < 0)
			(void)vt_manifest_blame(&manifest->tools[i], err);
	}
	if (r == 0)
		r = vt_toolset_list(set, NULL, &all->list, err);
	vt_toolset_free(set);
	return r;
}

static int keep_sources(struct all *all, const struct vt_manifest *manifest, struct vt_err *err)
{
	size_t count = 0;

	while (manifest->sources[count])
		count++;
	all->kept = calloc(count + 1, sizeof(*all->kept));
	for (size_t i = 0; all->kept && i < count; i++)
		if (!(all->kept[i] = strdup(manifest->sources[i])))
			return vt_fail(err, VT_STEP_POLICY, ENOMEM, "read the tools");
	return all->kept ? 0 : vt_fail(err, VT_STEP_POLICY, ENOMEM, "read the tools");
}

static int fill_all(struct all *all, const struct vt_manifest *manifest,
		    const struct vitro_tool *tools, struct vt_err *err)
{
	int r = keep_sources(all, manifest, err);

	for (; r == 0 && tools[all->count].name; all->count++) {
		size_t i = all->count;

		r = fill_one(&all->ones[i], &all->offered[i], &tools[i], &manifest->tools[i].at,
			     err);
		if (r < 0)
			(void)vt_manifest_blame(&manifest->tools[i], err);
	}
	return r < 0 ? r : make_list(all, manifest, err);
}

static int make_all(const struct vt_manifest *manifest, struct all **ret_all, struct vt_err *err)
{
	struct vitro_error error;
	struct vitro_tool *tools;
	struct all *all = calloc(1, sizeof(*all));

	if (all) {
		all->ones = calloc(manifest->count + 1, sizeof(*all->ones));
		all->offered = calloc(manifest->count + 1, sizeof(*all->offered));
	}
	if (!all || !all->ones || !all->offered) {
		if (all)
			release(all);
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "read the tools");
	}
	int r = vt_manifest_table(manifest, NULL, &tools, &error);

	if (r < 0) {
		vt_fail(err, VT_STEP_POLICY, error.num, "%s", error.text);
	} else {
		r = fill_all(all, manifest, tools, err);
		vt_manifest_table_free(tools);
	}
	if (r < 0)
		release(all);
	else
		*ret_all = all;
	return r;
}

static int offer(const struct vt_offering *offering, const struct vt_manifest *manifest,
		 struct vt_err *err)
{
	struct all *all;
	int r = make_all(manifest, &all, err);

	if (r < 0)
		return r;
	const struct vt_offer_source source = {
		.user = all,
		.tools = all->offered,
		.count = all->count,
		.list = all->list,
		.kept = (const char *const *)all->kept,
		.expand = expand,
		.release = release,
	};

	return vt_server_offer(offering->server, &source, err);
}

static void changed(void *user, const struct vt_manifest *manifest, const char *mistakes)
{
	struct vt_offering *offering = user;
	struct vt_err err;

	if (!manifest)
		vt_cli_log_lines(offering->log, mistakes);
	else if (offer(offering, manifest, &err) < 0)
		vt_cli_log_err(offering->log, &err);
	else
		return;
	vt_cli_log_line(offering->log, "the tools stay as they were");
}

static void watch_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_offering *offering = source->owner;

	(void)events;
	(void)vt_manifest_watch_dispatch(offering->manifest); /* changed() is told */
}

/* ---- both ----------------------------------------------------------------------------------- */

int vt_offering_begin(struct vt_offering *offering, struct vt_loop *loop, struct vt_server *server,
		      struct vt_cli_log *log, const char *path, struct vt_err *err)
{
	struct vt_manifest *manifest;
	struct vt_str mistakes;

	*offering = (struct vt_offering){ .loop = loop, .server = server, .log = log };
	/* Before it is read: a change in between is seen. */
	int r = vt_manifest_watch_new(path, changed, offering, &offering->manifest, err);

	if (r < 0)
		return r;
	offering->watch = (struct vt_watch){ .fd = vt_manifest_watch_fd(offering->manifest),
					     .ready = watch_ready,
					     .owner = offering };
	r = vt_loop_add(loop, &offering->watch, EPOLLIN, err);
	if (r < 0)
		return r;
	vt_str_init(&mistakes);
	r = vt_manifest_watch_load(offering->manifest, &manifest, &mistakes, err);
	if (r < 0) {
		vt_cli_complain_lines(mistakes.text);
		r = vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: no server is started with it", path);
	} else {
		r = offer(offering, manifest, err);
		vt_manifest_free(manifest);
	}
	vt_str_done(&mistakes);
	return r;
}

void vt_offering_end(struct vt_offering *offering)
{
	if (!offering->manifest)
		return;
	vt_loop_remove(offering->loop, &offering->watch);
	vt_manifest_watch_free(offering->manifest);
	offering->manifest = NULL;
}
