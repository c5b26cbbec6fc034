/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of manifests under any input. libFuzzer drives it, or replay.c. */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/json_scan.h"
#include "fuzz.h"
#include "manifest/manifest.h"
#include "tool/command.h"
#include "tool/function.h"
#include "tool/set.h"

/* A file that is always there, in a folder whose files are not policies. */
#define PLACE "/dev/null"

static void check_command(const struct vt_manifest_tool *from, const struct vt_schema *schema)
{
	struct vt_template *command, *input = NULL;
	struct vt_err err;

	REQUIRE(from->command[0]);
	REQUIRE(vt_template_compile(from->command, schema, "command", &command, &err) == 0);
	REQUIRE(!from->input ||
		vt_template_compile_input(from->input, schema, "stdin", &input, &err) == 0);
	vt_template_free(input);
	vt_template_free(command);
}

/* What whoever makes tools of it relies on. */
static void check_tool(const struct vt_manifest_tool *from)
{
	struct vt_tool *tool;
	struct vt_err err;

	REQUIRE(vt_tool_new(from->name, from->description, from->schema, &tool, &err) == 0);
	REQUIRE(!from->command != !from->function);
	if (from->command)
		check_command(from, from->schema ? tool->schema : NULL);
	else
		REQUIRE(vt_tool_check_function(from->language, from->function, "function", &err) ==
			0);
	REQUIRE(vt_json_is_valid(from->policy.json, strlen(from->policy.json)));
	vt_tool_unref(tool);
}

static void check_manifest(const struct vt_manifest *manifest)
{
	REQUIRE(manifest->path[0] == '/' && manifest->count <= VT_TOOLSET_MAX_TOOLS);
	for (size_t i = 0; i < manifest->count; i++) {
		check_tool(&manifest->tools[i]);
		REQUIRE(vt_manifest_find(manifest, manifest->tools[i].name) == &manifest->tools[i]);
	}
}

/* "FILE:LINE: what", each in a line that a terminal shows as it is. */
static void check_mistakes(const char *text, const struct vt_err *err)
{
	size_t lines = 0;

	REQUIRE(err->num > 0 && err->step == VT_STEP_POLICY && *err->what && *text);
	for (const char *at = text; *at; lines++) {
		const char *end = strchr(at, '\n');

		REQUIRE(end && end > at);
		REQUIRE(strncmp(at, PLACE ":", strlen(PLACE ":")) == 0 || err->num != EINVAL);
		for (; at < end; at++)
			REQUIRE(!iscntrl((unsigned char)*at));
		at = end + 1;
	}
	REQUIRE(lines <= VT_MANIFEST_MISTAKES + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vt_manifest *manifest = NULL;
	struct vt_str mistakes;
	struct vt_err err = { 0 };

	vt_str_init(&mistakes);
	int status = vt_manifest_load_text((const char *)data, size, PLACE, &manifest, NULL,
					   &mistakes, &err);

	REQUIRE(status == 0 || status == -err.num);
	if (status == 0)
		check_manifest(manifest);
	else
		check_mistakes(mistakes.text, &err);
	vt_manifest_free(manifest);
	vt_str_done(&mistakes);
	return 0;
}
