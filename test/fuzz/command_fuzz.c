/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates of commands, filled in with any arguments; and the input as what a command printed. The
 * input is an array: the template, a schema or null, then arguments. libFuzzer drives it, or
 * replay.c.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_scan.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "tool/command.h"

/* What a template promises, as a reader of it would say. */
struct promise {
	size_t words, dashes;
	bool is_fixed; /* no word can be left out or become many */
	bool may_dash; /* some argument may begin with '-' */
};

/* A message is one line that a terminal shows as it is, and begins with a place. */
static void check_failure(int status, const struct vt_err *err, const char *name)
{
	REQUIRE(status == -EINVAL || status == -E2BIG);
	REQUIRE(status == -err->num && err->step == VT_STEP_POLICY);
	REQUIRE(strncmp(err->what, name, strlen(name)) == 0);
	REQUIRE(vt_utf8_is_valid(err->what, strlen(err->what)));
	for (const char *at = err->what; *at; at++)
		REQUIRE(!iscntrl((unsigned char)*at));
}

static void check_argv(char *const *argv, const struct promise *promise)
{
	size_t count = 0, dashes = 0, bytes = 0;

	for (; argv[count]; count++) {
		REQUIRE(strlen(argv[count]) <= VT_COMMAND_MAX_WORD);
		dashes += argv[count][0] == '-';
		bytes += strlen(argv[count]) + 1;
	}
	REQUIRE(count > 0 && count <= VT_COMMAND_MAX_WORDS && bytes <= VT_COMMAND_MAX_BYTES);
	if (promise->is_fixed)
		REQUIRE(count == promise->words);
	if (!promise->may_dash)
		REQUIRE(dashes <= promise->dashes);
}

static void check_call(const struct vt_template *command, const json_t *arguments,
		       const struct promise *promise)
{
	struct vt_err err = { 0 };
	char **argv = NULL;
	int status = vt_template_expand(command, arguments, &argv, &err);

	if (status < 0)
		check_failure(status, &err, "arguments");
	else
		check_argv(argv, promise);
	free(argv);
}

/* Returns the template as C has it; NULL: it is none. The JSON owns the words. */
static const char **read_words(const json_t *array, struct promise *promise)
{
	const char **words = calloc(json_array_size(array) + 1, sizeof(*words));

	REQUIRE(words);
	*promise = (struct promise){ .words = json_array_size(array), .is_fixed = true };
	for (size_t i = 0; i < promise->words; i++) {
		words[i] = json_string_value(json_array_get(array, i));
		if (!words[i]) {
			free(words);
			return NULL;
		}
		promise->dashes += words[i][0] == '-';
		if (strstr(words[i], "?}") || strstr(words[i], "...}"))
			promise->is_fixed = false;
		if (strstr(words[i], "{-") || strcmp(words[i], "--") == 0)
			promise->may_dash = true;
	}
	return words;
}

static void compile_and_fill(const json_t *root)
{
	const json_t *schema_text = json_array_get(root, 1);
	struct vt_schema *schema = NULL;
	struct vt_template *command = NULL;
	struct promise promise;
	const char **words = read_words(json_array_get(root, 0), &promise);
	struct vt_err err = { 0 };

	if (schema_text && !json_is_null(schema_text))
		(void)vt_schema_compile(schema_text, "schema", &schema, NULL, &err); /* or none */
	if (words) {
		int status = vt_template_compile(words, schema, "command", &command, &err);

		if (status < 0)
			check_failure(status, &err, "command");
		for (size_t i = 2; status == 0 && i < json_array_size(root); i++)
			check_call(command, json_array_get(root, i), &promise);
	}
	vt_template_free(command);
	vt_schema_free(schema);
	free(words);
}

/* The value is JSON whatever was printed, and JSON if jansson says so of what was printed. */
static void check_output(const char *bytes, size_t len, bool is_json)
{
	bool is_valid = vt_json_is_valid(bytes, len);
	char *value = NULL;
	size_t value_len;

	/* jansson reads deeper. */
	if (is_json && !is_valid)
		REQUIRE(len > 2 * VT_JSON_SCAN_DEPTH);
	REQUIRE(vt_command_value(bytes, len, &value, &value_len) == 0);
	REQUIRE(value_len == strlen(value) && vt_json_is_valid(value, value_len));
	if (is_valid)
		REQUIRE(value_len <= len && memmem(bytes, len, value, value_len));
	else
		REQUIRE(value[0] == '"');
	free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vt_err err = { 0 };
	json_t *root = NULL;
	bool is_json = vt_json_load_text((const char *)data, size, "fuzz.json", &root, &err) == 0;

	check_output((const char *)data, size, is_json);
	if (is_json)
		compile_and_fill(root);
	json_decref(root);
	return 0;
}
