/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler of schemas under any JSON, and what it makes of it under any value. The input is an
 * array: a schema, then values for it; what is no array is a schema and its own value. libFuzzer
 * drives it, or replay.c.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"
#include "tool/schema.h"

static void check_line(const char *text)
{
	REQUIRE(*text);
	for (const char *at = text; *at; at++)
		REQUIRE(!iscntrl((unsigned char)*at));
}

/* A message is one line that a terminal shows as it is, and begins with a place. */
static void check_failure(int status, const struct vt_err *err, const char *name)
{
	REQUIRE(status == -EINVAL || status == -E2BIG);
	REQUIRE(status == -err->num && err->step == VT_STEP_POLICY);
	REQUIRE(strncmp(err->what, name, strlen(name)) == 0);
	check_line(err->what);
}

/* What is quickly seen to fit, fits. */
static void check_quick(const struct vt_schema *schema, const json_t *value, int status)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

	if (text && vt_schema_fits_plainly(schema, text, strlen(text)))
		REQUIRE(status == 0);
	free(text);
}

static int check_value(const struct vt_schema *schema, const json_t *value)
{
	struct vt_err err = { 0 }, again = { 0 };
	int status = vt_schema_check(schema, value, "value", &err);

	REQUIRE(vt_schema_check(schema, value, "value", &again) == status);
	if (status < 0)
		check_failure(status, &err, "value");
	REQUIRE(strcmp(err.what, again.what) == 0);
	check_quick(schema, value, status);
	return status;
}

/* A value is equal to itself, and not to an array of itself. */
static void check_equality(json_t *value)
{
	AUTO_JSON json_t *root = json_pack("{sO}", "const", value),
			 *longer = json_pack("[O]", value);
	struct vt_schema *schema = NULL;
	struct vt_err err = { 0 };
	int status = vt_schema_compile(root, "schema", &schema, NULL, &err);

	REQUIRE(root && longer);
	if (status < 0) {
		REQUIRE(status == -E2BIG);
		return;
	}
	REQUIRE(check_value(schema, value) == 0);
	REQUIRE(check_value(schema, longer) == -EINVAL);
	vt_schema_free(schema);
}

static void compile_and_check(json_t *root)
{
	bool is_array = json_is_array(root) && json_array_size(root) > 0;
	struct vt_schema_warnings warnings = { 0 };
	struct vt_schema *schema = NULL;
	struct vt_err err = { 0 };
	int status = vt_schema_compile(is_array ? json_array_get(root, 0) : root, "schema", &schema,
				       &warnings, &err);

	if (status < 0) {
		REQUIRE(!schema);
		check_failure(status, &err, "schema");
		return;
	}
	REQUIRE(warnings.count <= VT_SCHEMA_MAX_WARNINGS);
	for (size_t i = 0; i < warnings.count; i++)
		check_line(warnings.items[i]);
	check_value(schema, root);
	for (size_t i = 1; is_array && i < json_array_size(root); i++) {
		check_value(schema, json_array_get(root, i));
		check_equality(json_array_get(root, i));
	}
	vt_schema_free(schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vt_err err = { 0 };
	json_t *root = NULL;

	if (vt_json_load_text((const char *)data, size, "fuzz.json", &root, &err) == 0)
		compile_and_check(root);
	json_decref(root);
	return 0;
}
