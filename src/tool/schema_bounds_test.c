/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas and values that are made to take for ever, or all memory: each ends, with an error. */
#include "tool/schema.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/str.h"
#include "tool/schema_test.h"

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Schemas and values that would take for ever: exponents, squares, and what counts as one step. */
static const struct {
	const char *schema;
	const char *unit; /* repeated to make a text */
	int count;
} bombs[] = {
	{ "{'pattern': '^(a+)+$'}", "a", 40 },
	{ "{'pattern': '^(a|aa)+$'}", "a", 60 },
	{ "{'pattern': '(.*)*[xy]'}", "a", 5000 },
	{ "{'pattern': 'a*[bc]'}", "a", 200000 },
	{ "{'pattern': '.*[xy]'}", "ab\n", 100000 },
	{ "{'pattern': '[^x]*[^x]*[^x]*[xy]'}", "a", 100000 },
	{ "{'pattern': '(a*)*\\\\1[bc]'}", "a", 100000 },
	{ "{'pattern': '(a*)\\\\1[bc]'}", "a", 300000 },
	{ "{'pattern': 'a{60000}[bc]'}", "a", 1000000 },
	{ "{'pattern': '[ab]{30000}[cd]'}", "a", 1000000 },
	{ "{'pattern': '(?:a(?=.*[bc]))+[bc]'}", "a", 100000 },
	{ "{'pattern': '(?<=a{200})[bc]'}", "a", 1000000 },
	{ "{'pattern': '^(?:(?:a?){30}){30}[bc]$'}", "a", 1000 },
	{ "{'pattern': '^(a(?1)?a|a)[bc]$'}", "a", 3000 },
	{ "{'pattern': '(?R)?a*[bc]'}", "a", 3000 },
};

static void test_patterns_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bombs) / sizeof(bombs[0]); i++) {
		char text[256];
		struct vt_str subject;
		struct vt_err err = { 0 };

		snprintf(text, sizeof(text), "%s", bombs[i].schema);
		struct vt_schema *schema = compiled(quoted(text));

		vt_str_init(&subject);
		for (int j = 0; j < bombs[i].count; j++)
			vt_str_add(&subject, bombs[i].unit);
		vt_str_add(&subject, "!");
		AUTO_JSON json_t *value = json_string(subject.text);
		double start = seconds();
		int status = vt_schema_check(schema, value, "arguments", &err);

		if ((status != -E2BIG && status != -EINVAL) || seconds() - start > 2)
			fail_msg("%s: %d %s, %.3f s", text, status, err.what, seconds() - start);
		vt_str_done(&subject);
		vt_schema_free(schema);
	}
}

static void test_a_bound_is_no_answer(void **state)
{
	const char *text = "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"";
	struct vt_err err = { 0 };

	(void)state;
	/* A pattern that is given up on is neither a match nor a failure to match. */
	assert_int_equal(check("{\"not\": {\"pattern\": \"^(a+)+$\"}}", text, &err), -E2BIG);
	assert_int_equal(check("{\"anyOf\": [{\"pattern\": \"^(a+)+$\"}, true]}", text, &err),
			 -E2BIG);
	assert_int_equal(check("{\"if\": {\"pattern\": \"^(a+)+$\"}}", text, &err), -E2BIG);
	assert_string_equal(err.what,
			    "arguments: too much work to check; make it simpler or smaller");
}

static void test_an_exponential_schema_ends(void **state)
{
	struct vt_str text;
	struct vt_err err = { 0 };

	(void)state;
	vt_str_init(&text);
	vt_str_add(&text, "{\"$ref\": \"#/$defs/d0\", \"$defs\": {");
	for (int i = 0; i < 40; i++)
		vt_str_addf(&text,
			    "\"d%d\": {\"allOf\": [{\"$ref\": \"#/$defs/d%d\"},"
			    " {\"$ref\": \"#/$defs/d%d\"}]}, ",
			    i, i + 1, i + 1);
	vt_str_add(&text, "\"d40\": {\"type\": \"integer\"}}}");
	assert_int_equal(check(text.text, "1", &err), -E2BIG);
	vt_str_done(&text);
}

/* Applies a rule nine thousand times to one value, and says how long that took. */
static int check_often(const json_t *rule, const json_t *value, double *ret_seconds)
{
	AUTO_JSON json_t *root = json_pack("{s{sO}s[]}", "$defs", "a", rule, "allOf");
	struct vt_schema *schema = NULL;
	struct vt_err err = { 0 };

	for (int i = 0; i < 9000; i++)
		json_array_append_new(json_object_get(root, "allOf"),
				      json_pack("{ss}", "$ref", "#/$defs/a"));
	assert_int_equal(vt_schema_compile(root, "s", &schema, NULL, &err), 0);
	double start = seconds();
	int status = vt_schema_check(schema, value, "arguments", &err);

	*ret_seconds = seconds() - start;
	vt_schema_free(schema);
	return status;
}

/* A look at a long text is paid for by its length, or few steps would take minutes. */
static void test_long_texts_cost_more(void **state)
{
	enum { SIZE = 1 << 20 };
	char *text = malloc(SIZE);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', SIZE);
	AUTO_JSON json_t *value = json_stringn(text, SIZE);
	AUTO_JSON json_t *rules = json_pack("[{sO}, {si}, {ss}]", "const", value, "maxLength", SIZE,
					    "pattern", "^a*$");
	json_t *rule;
	size_t i;

	json_array_foreach(rules, i, rule)
	{
		double taken;

		assert_int_equal(check_often(rule, value, &taken), -E2BIG);
		assert_true(taken < 2);
	}
	free(text);
}

static void test_nesting_is_bounded(void **state)
{
	struct vt_schema *tree = compiled("{\"items\": {\"$ref\": \"#\"}}"), *schema = NULL;
	AUTO_JSON json_t *value = json_array(), *deep = json_object(), *loop = json_object();
	json_t *other = json_object();
	struct vt_err err = { 0 };

	(void)state;
	for (int i = 0; i < 200; i++)
		value = json_pack("[o]", value);
	assert_int_equal(vt_schema_check(tree, value, "arguments", &err), 0);
	for (int i = 0; i < 2000; i++)
		value = json_pack("[o]", value);
	assert_int_equal(vt_schema_check(tree, value, "arguments", &err), -E2BIG);
	vt_schema_free(tree);
	for (int i = 0; i < 200; i++)
		deep = json_pack("{so}", "not", deep);
	assert_int_equal(vt_schema_compile(deep, "s", &schema, NULL, &err), -E2BIG);
	json_object_set_new(loop, "not", other);
	json_object_set(other, "not", loop);
	assert_int_equal(vt_schema_compile(loop, "s", &schema, NULL, &err), -E2BIG);
	json_object_clear(other);
	assert_null(schema);
}

static void test_deep_items_that_differ_at_the_end(void **state)
{
	struct vt_schema *schema = compiled("{\"uniqueItems\": true}");
	struct vt_err err = { 0 };
	json_t *a = json_integer(1), *b = json_integer(2);

	(void)state;
	for (int i = 0; i < 1000; i++) {
		a = json_pack("[o]", a);
		b = json_pack("[o]", b);
	}
	AUTO_JSON json_t *value = json_pack("[oo]", a, b);

	assert_int_equal(vt_schema_check(schema, value, "arguments", &err), -E2BIG);
	vt_schema_free(schema);
}

static void test_many_items_are_unique(void **state)
{
	struct vt_schema *schema = compiled("{\"uniqueItems\": true}");
	AUTO_JSON json_t *value = json_array();
	struct vt_err err = { 0 };

	(void)state;
	for (int i = 0; i < 100000; i++)
		json_array_append_new(value, json_integer(i));
	assert_int_equal(vt_schema_check(schema, value, "arguments", &err), 0);
	json_array_append_new(value, json_real(77777));
	assert_int_equal(vt_schema_check(schema, value, "arguments", &err), -EINVAL);
	assert_string_equal(err.what, "arguments: want items that differ, found [77777] and "
				      "[100000] equal");
	vt_schema_free(schema);
}

static void test_big_schemas_are_refused(void **state)
{
	AUTO_JSON json_t *nodes = json_array(), *values = json_array(), *patterns = json_array();
	struct vt_schema *schema = NULL;
	struct vt_err err = { 0 };

	(void)state;
	for (int i = 0; i < VT_SCHEMA_MAX_NODES; i++)
		json_array_append_new(nodes, json_object());
	for (int i = 0; i < VT_SCHEMA_MAX_VALUES; i++)
		json_array_append_new(values, json_integer(i));
	for (int i = 0; i < 2000; i++)
		json_array_append_new(patterns,
				      json_pack("{ss}", "pattern", "(((a|b){20}){20}){2}"));
	AUTO_JSON json_t *many_nodes = json_pack("{sO}", "anyOf", nodes);
	AUTO_JSON json_t *many_values = json_pack("{sO}", "enum", values);
	AUTO_JSON json_t *many_patterns = json_pack("{sO}", "anyOf", patterns);

	assert_int_equal(vt_schema_compile(many_nodes, "s", &schema, NULL, &err), -E2BIG);
	assert_int_equal(vt_schema_compile(many_values, "s", &schema, NULL, &err), -E2BIG);
	assert_int_equal(vt_schema_compile(many_patterns, "s", &schema, NULL, &err), -E2BIG);
	assert_null(schema);
	json_array_remove(nodes, 0);
	assert_int_equal(vt_schema_compile(many_nodes, "s", &schema, NULL, &err), 0);
	vt_schema_free(schema);
}

static void test_a_long_chain_of_references(void **state)
{
	AUTO_JSON json_t *definitions = json_object();
	struct vt_schema *schema = NULL;
	struct vt_err err = { 0 };
	char key[16], next[32];

	(void)state;
	for (int i = 0; i < 5000; i++) {
		snprintf(key, sizeof(key), "d%d", i);
		snprintf(next, sizeof(next), "#/$defs/d%d", i + 1);
		json_object_set_new(definitions, key, json_pack("{ss}", "$ref", next));
	}
	json_object_set_new(definitions, "d5000", json_true());
	AUTO_JSON json_t *root = json_pack("{sO}", "$defs", definitions);

	/* Nothing recurses that deep, whatever the answer. */
	assert_int_equal(vt_schema_compile(root, "s", &schema, NULL, &err), -E2BIG);
}

static void test_warnings_are_bounded(void **state)
{
	AUTO_JSON json_t *root = json_object();
	struct vt_schema_warnings warnings;
	struct vt_schema *schema = NULL;
	struct vt_err err = { 0 };
	char key[16];

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "x%d\n", i);
		json_object_set_new(root, key, json_true());
	}
	assert_int_equal(vt_schema_compile(root, "s", &schema, &warnings, &err), 0);
	assert_int_equal(warnings.count, VT_SCHEMA_MAX_WARNINGS);
	assert_string_equal(warnings.items[0],
			    "s: the keyword 'x0\\n' is not known and not checked");
	assert_string_equal(warnings.items[31], "s: more keywords are not checked");
	vt_schema_free(schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns_end),
		cmocka_unit_test(test_a_bound_is_no_answer),
		cmocka_unit_test(test_an_exponential_schema_ends),
		cmocka_unit_test(test_long_texts_cost_more),
		cmocka_unit_test(test_nesting_is_bounded),
		cmocka_unit_test(test_deep_items_that_differ_at_the_end),
		cmocka_unit_test(test_many_items_are_unique),
		cmocka_unit_test(test_big_schemas_are_refused),
		cmocka_unit_test(test_a_long_chain_of_references),
		cmocka_unit_test(test_warnings_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
