/* SPDX-License-Identifier: Apache-2.0 */
/* vitro tools: what a manifest offers. Nothing is run, and no cell is made. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/manifest.h"
#include "cli/options.h"
#include "tool/set.h"
#include <vitro.h>

static int make_set(const struct vt_manifest *manifest, struct vt_toolset *set, struct vt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < manifest->count; i++) {
		const struct vt_manifest_tool *from = &manifest->tools[i];
		struct vt_tool *tool;

		r = vt_tool_new(from->name, from->description, from->schema, &tool, err);
		if (r == 0) {
			r = vt_toolset_add(set, tool, err);
			vt_tool_unref(tool);
		}
		if (r < 0)
			(void)vt_manifest_blame(from, err);
	}
	return r;
}

static bool is_required(const json_t *schema, const char *name)
{
	const json_t *required = json_object_get(schema, "required");

	for (size_t i = 0; i < json_array_size(required); i++) {
		const char *one = json_string_value(json_array_get(required, i));

		if (one && strcmp(one, name) == 0)
			return true;
	}
	return false;
}

/* "search pattern [path]", as usages are written. */
static void add_usage(struct vt_str *text, const json_t *tool)
{
	const json_t *schema = json_object_get(tool, "input_schema");
	const json_t *properties = json_object_get(schema, "properties");
	const char *name;
	json_t *value;
	size_t i;

	vt_str_add(text, json_string_value(json_object_get(tool, "name")));
	json_object_foreach((json_t *)properties, name, value)
	{
		bool required = is_required(schema, name);

		vt_str_add(text, required ? " " : " [");
		vt_str_show(text, name, strlen(name));
		vt_str_add(text, required ? "" : "]");
	}
	json_array_foreach(json_object_get(schema, "required"), i, value)
	{
		name = json_string_value(value);
		if (!name || json_object_get(properties, name))
			continue; /* it is there */
		vt_str_add(text, " ");
		vt_str_show(text, name, strlen(name));
	}
	vt_str_add(text, "\n");
}

static int print_text(const char *list, struct vt_err *err)
{
	AUTO_JSON json_t *tools = json_loads(list, 0, NULL);
	const json_t *tool;
	struct vt_str text;
	size_t i;

	if (!tools)
		return vt_fail(err, VT_STEP_OUTPUT, ENOMEM, "list the tools");
	vt_str_init(&text);
	json_array_foreach(tools, i, tool)
	{
		const char *about = json_string_value(json_object_get(tool, "description"));

		add_usage(&text, tool);
		if (about && *about) {
			vt_str_add(&text, "    ");
			vt_str_wrap(&text, about, 4, 4);
		}
	}
	int r = vt_cli_report(&text, err);

	vt_str_done(&text);
	return r;
}

static int print_json(const char *list, struct vt_err *err)
{
	struct vt_str text;

	vt_str_init(&text);
	vt_str_addf(&text, "%s\n", list);
	int r = vt_str_ok(&text) ? vt_cli_write_safe(STDOUT_FILENO, text.text, text.len, false)
				 : -ENOMEM;

	vt_str_done(&text);
	return r < 0 ? vt_fail(err, VT_STEP_OUTPUT, -r, "print the tools") : 0;
}

static int print_list(const char *list, const struct vt_options *options, struct vt_err *err)
{
	return options->json ? print_json(list, err) : print_text(list, err);
}

/* Those that a server has of its own. */
static int print_served(const struct vt_options *options, struct vt_err *err)
{
	const struct vitro_options wanted = { .socket = options->serve.socket, .server_tools = 1 };
	struct vitro_error error;
	vitro_toolhost *host;

	/* The library would only say that there is no list. */
	int r = vt_toolset_check_query(options->query, err);

	if (r < 0)
		return r;
	if (vitro_toolhost_new(&host, NULL, &wanted, &error) < 0)
		return vt_fail(err, VT_STEP_POLICY, error.num, "%s", error.text);
	char *list = vitro_toolhost_list(host, options->query);

	r = list ? print_list(list, options, err)
		 : vt_fail(err, VT_STEP_OUTPUT, ENOMEM, "list the tools");
	free(list);
	vitro_toolhost_free(host);
	return r;
}

static int print_tools(const struct vt_manifest *manifest, const struct vt_options *options,
		       struct vt_err *err)
{
	struct vt_toolset *set = vt_toolset_new(NULL, NULL);
	char *list = NULL;
	int r = set ? make_set(manifest, set, err)
		    : vt_fail(err, VT_STEP_OUTPUT, ENOMEM, "list the tools");

	if (r == 0)
		r = vt_toolset_list(set, options->query, &list, err);
	if (r == 0)
		r = print_list(list, options, err);
	free(list);
	vt_toolset_free(set);
	return r;
}

static void show_help(void)
{
	vt_options_show("tools",
			"usage: vitro tools TOOLS.json [FLAGS]\n"
			"       vitro tools --socket PATH [FLAGS]\n\n"
			"Prints the tools of a manifest, or of a server, each with its "
			"arguments and\nwhat it is for. Nothing is run. Flags:\n\n",
			"\nvitro-tools(5) says how a manifest is written.\n");
}

static int offer(const struct vt_options *options, struct vt_err *err)
{
	struct vt_manifest *manifest;

	if (options->serve.socket && options->command[0])
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "want a manifest or --socket, and not both");
	if (options->serve.socket)
		return print_served(options, err);
	if (!options->command[0] || options->command[1])
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "want one manifest: vitro tools TOOLS.json [--query TEXT]");
	if (vt_cli_load_manifest(options->command[0], &manifest, err) < 0)
		return 1; /* told */
	int r = print_tools(manifest, options, err);

	vt_manifest_free(manifest);
	return r;
}

int vt_cli_tools(int argc, char **argv)
{
	struct vt_options options;
	struct vt_err err;
	int r = vt_options_parse(&options, argc, argv, &err);

	if (r == 0 && options.help)
		show_help();
	else if (r == 0)
		r = offer(&options, &err);
	if (r < 0)
		vt_cli_complain_err(&err);
	vt_options_done(&options);
	return r == 0 ? 0 : VT_EXIT_OWN;
}
