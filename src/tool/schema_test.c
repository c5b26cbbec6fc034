/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/vectors/schema.json, which every implementation of schemas has to pass, and what is this
 * one's own: its messages and its bounds.
 */
#include "tool/schema.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "tool/schema_test.h"

/* ---- the vectors --------------------------------------------------------------------------- */

struct tally {
	size_t values, errors, warnings, failed;
};

static void note(struct tally *tally, const json_t *group, const json_t *test, const char *what)
{
	print_case(group, test, "the schema", what);
	tally->failed++;
}

static void run_value(struct tally *tally, const struct vt_schema *schema, const json_t *group,
		      const json_t *test)
{
	struct vt_err err = { 0 };
	const json_t *where = json_object_get(test, "where");
	int status = vt_schema_check(schema, json_object_get(test, "data"), "value", &err);
	int want = json_is_true(json_object_get(test, "valid")) ? 0 : -EINVAL;

	tally->values++;
	if (status != want)
		note(tally, group, test, status ? err.what : "it passes");
	else if (status && where && !begins_with_place(err.what, json_string_value(where)))
		note(tally, group, test, err.what);
}

/* Each keyword that warns is named by one warning, in the order of the schema. */
static void run_warnings(struct tally *tally, const json_t *group,
			 const struct vt_schema_warnings *warnings)
{
	const json_t *wanted = json_object_get(group, "warns");

	tally->warnings += json_array_size(wanted);
	if (json_array_size(wanted) != warnings->count) {
		note(tally, group, NULL, warnings->count ? warnings->items[0] : "it does not warn");
		return;
	}
	for (size_t i = 0; i < warnings->count; i++) {
		char keyword[64];
		bool found = false;

		for (size_t j = 0; j < warnings->count; j++) {
			snprintf(keyword, sizeof(keyword), " '%s' ",
				 json_string_value(json_array_get(wanted, i)));
			found = found || strstr(warnings->items[j], keyword);
		}
		if (!found)
			note(tally, group, NULL, keyword);
	}
}

static void run_group(struct tally *tally, const json_t *group)
{
	const json_t *error = json_object_get(group, "error"), *test;
	struct vt_schema_warnings warnings;
	struct vt_schema *schema = NULL;
	struct vt_err err = { 0 };
	size_t i;
	int status = vt_schema_compile(json_object_get(group, "schema"), "schema", &schema,
				       &warnings, &err);

	tally->errors += error != NULL;
	if (error && (status != -EINVAL || !begins_with_place(err.what, json_string_value(error))))
		note(tally, group, NULL, status ? err.what : "it is accepted");
	if (!error && status < 0)
		note(tally, group, NULL, err.what);
	if (status == 0) {
		run_warnings(tally, group, &warnings);
		json_array_foreach((json_t *)json_object_get(group, "tests"), i, test)
			run_value(tally, schema, group, test);
	}
	vt_schema_free(schema);
}

static void test_vectors(void **state)
{
	AUTO_JSON json_t *groups = load_vectors("schema.json");
	struct tally tally = { 0 };
	json_t *group;
	size_t i;

	(void)state;
	json_array_foreach(groups, i, group) run_group(&tally, group);
	assert_int_equal(tally.failed, 0);
	/* A file that lost its tests would pass. */
	assert_true(tally.values >= 700 && tally.errors >= 70 && tally.warnings >= 10);
}

/* ---- messages ------------------------------------------------------------------------------ */

#define FILES                                                                                  \
	"{'type': 'object', 'properties': {'files': {'type': 'array', 'items': {'properties':" \
	" {'name': {'type': 'string', 'minLength': 2, 'pattern': '^[a-z]+$'},"                 \
	" 'mode': {'enum': ['read', 'write', 'append']}, 'size': {'minimum': 0.5},"            \
	" 'to': {'anyOf': [{'type': 'string'}, {'type': 'integer'}, {'const': null}]},"        \
	" 'tags': {'uniqueItems': true, 'maxItems': 2}, 'kind': {'const': 'x'},"               \
	" 'not': {'not': {'const': 1}}, 'never': false, 'step': {'multipleOf': 0.1}},"         \
	" 'additionalProperties': false, 'required': ['name']}}}}"

static const struct {
	const char *item, *message;
} messages[] = {
	{ "{'name': 5}", ".name: want a string, found 5" },
	{ "{'name': null}", ".name: want a string, found null" },
	{ "{'name': {}}", ".name: want a string, found an empty object" },
	{ "{'name': 'a'}", ".name: want at least 2 characters, found 1" },
	{ "{'name': 'a\\nb'}", ".name: want text that matches '^[a-z]+$', found \"a\\nb\"" },
	{ "{}", ": \"name\" is missing" },
	{ "{'nam': 'ab'}", ".nam: there is no such property; did you mean 'name'?" },
	{ "{'name': 'ab', 'quite else': 1}", "[\"quite else\"]: there is no such property" },
	{ "{'name': 'ab', 'mode': 'wirte'}",
	  ".mode: want \"read\", \"write\" or \"append\", found \"wirte\"; did you mean "
	  "\"write\"?" },
	{ "{'name': 'ab', 'mode': 1}", ".mode: want \"read\", \"write\" or \"append\", found 1" },
	{ "{'name': 'ab', 'size': 0.1}", ".size: want a number of at least 0.5, found 0.1" },
	{ "{'name': 'ab', 'to': 1.5}", ".to: want a string, an integer or null, found 1.5" },
	{ "{'name': 'ab', 'tags': [1, 1.0]}",
	  ".tags: want items that differ, found [0] and [1] equal" },
	{ "{'name': 'ab', 'tags': [1, 2, 3]}", ".tags: want at most 2 items, found 3" },
	{ "{'name': 'ab', 'kind': 'y'}", ".kind: want \"x\", found \"y\"" },
	{ "{'name': 'ab', 'not': 1}", ".not: found 1, which the schema's 'not' excludes" },
	{ "{'name': 'ab', 'never': [1]}", ".never: want nothing here, found an array" },
	{ "{'name': 'ab', 'step': 0.25}",
	  ".step: want a number that is a multiple of 0.1, found 0.25" },
	{ "[]", NULL },
};

static void test_messages_say_where_what_and_found(void **state)
{
	char schema[] = FILES;

	(void)state;
	quoted(schema);
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		char text[256], want[256];
		struct vt_err err = { 0 };

		snprintf(text, sizeof(text), "{'files': [{'name': 'ok'}, %s]}", messages[i].item);
		int status = check(schema, quoted(text), &err);

		if (!messages[i].message) {
			assert_int_equal(status, 0);
			continue;
		}
		snprintf(want, sizeof(want), "arguments.files[1]%s", messages[i].message);
		assert_int_equal(status, -EINVAL);
		assert_string_equal(err.what, want);
	}
}

static void test_an_error_in_a_schema_says_where(void **state)
{
	struct vt_schema *schema = NULL;
	struct vt_err err = { 0 };

	(void)state;
	assert_int_equal(compile("{\"properties\": {\"a\": {\"type\": \"strin\"}}}", &schema, &err),
			 -EINVAL);
	assert_string_equal(err.what, "inputSchema.properties.a.type: there is no type \"strin\"; "
				      "did you mean \"string\"?");
	assert_int_equal(compile("{\"pattern\": \"a(\"}", &schema, &err), -EINVAL);
	assert_string_equal(err.what, "inputSchema.pattern: 'a(' is not a regular expression: "
				      "missing closing parenthesis, at its byte 2");
	assert_int_equal(compile("{\"items\": {\"$ref\": \"#/$defs/x\"}}", &schema, &err), -EINVAL);
	assert_string_equal(err.what,
			    "inputSchema.items.$ref: \"#/$defs/x\" names nothing in this schema");
	assert_null(schema);
}

static void test_messages_are_short_and_safe(void **state)
{
	struct vt_schema *schema = compiled("{\"additionalProperties\": {\"type\": \"null\"}}");
	struct vt_str key;
	struct vt_err err = { 0 };

	(void)state;
	vt_str_init(&key);
	for (int i = 0; i < 1000; i++)
		vt_str_add(&key, "\x1b[31m\n\xe2\x80\xae");
	AUTO_JSON json_t *value = json_object();

	json_object_set_new(value, key.text, json_string(key.text));
	assert_int_equal(vt_schema_check(schema, value, "a\nb", &err), -EINVAL);
	assert_true(strlen(err.what) < 400);
	assert_null(strpbrk(err.what, "\x1b\n"));
	assert_null(strstr(err.what, "\xe2\x80\xae"));
	assert_non_null(strstr(err.what, "want null, found \"\\u001b[31m\\n"));
	vt_str_done(&key);
	vt_schema_free(schema);
}

static void test_a_long_place_keeps_its_end(void **state)
{
	struct vt_schema *schema = compiled("{\"anyOf\": [{\"type\": \"integer\"}, {\"type\": "
					    "\"array\", \"items\": {\"$ref\": \"#\"}}]}");
	AUTO_JSON json_t *value = json_string("x");
	struct vt_err err = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		value = json_pack("[o]", value);
	assert_int_equal(vt_schema_check(schema, value, "arguments", &err), -EINVAL);
	assert_memory_equal(err.what, "arguments...[0][0]", 18);
	assert_non_null(strstr(err.what, "[0]: want an integer or an array, found \"x\""));
	vt_schema_free(schema);
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void test_a_schema_is_a_copy(void **state)
{
	AUTO_JSON json_t *root = parsed("{\"enum\": [\"a\"], \"properties\": {}}");
	AUTO_JSON json_t *value = json_string("a");
	struct vt_schema *schema = NULL;
	struct vt_err err = { 0 };

	(void)state;
	assert_int_equal(vt_schema_compile(root, "s", &schema, NULL, &err), 0);
	json_array_clear(json_object_get(root, "enum"));
	json_object_clear(root);
	assert_int_equal(vt_schema_check(schema, value, "arguments", &err), 0);
	vt_schema_free(schema);
	vt_schema_free(NULL);
}

static void test_text_that_is_not_utf8(void **state)
{
	struct vt_schema *schema = compiled("{\"pattern\": \"a\"}");
	AUTO_JSON json_t *value = json_string_nocheck("\xff\xfe");
	struct vt_err err = { 0 };

	(void)state;
	assert_int_equal(vt_schema_check(schema, value, "arguments", &err), -EILSEQ);
	assert_string_equal(err.what, "arguments: the text is not UTF-8");
	vt_schema_free(schema);
}

/* What no JSON value of ours can hold is refused where JSON is read, and so is in no vector. */
static void test_numbers_that_the_reader_refuses(void **state)
{
	static const char *const texts[] = { "1e400", "-1e400", "9223372036854775808" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct vt_err err = { 0 };
		json_t *root = NULL;

		assert_int_equal(vt_json_load_text(texts[i], strlen(texts[i]), "n", &root, &err),
				 -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_messages_say_where_what_and_found),
		cmocka_unit_test(test_an_error_in_a_schema_says_where),
		cmocka_unit_test(test_messages_are_short_and_safe),
		cmocka_unit_test(test_a_long_place_keeps_its_end),
		cmocka_unit_test(test_a_schema_is_a_copy),
		cmocka_unit_test(test_text_that_is_not_utf8),
		cmocka_unit_test(test_numbers_that_the_reader_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
