/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "tool/set.h"

#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/str.h"

/* What the watcher was told, in a line. */
struct told {
	char text[256];
	struct vt_toolset *set;
	bool meddles;
};

static void watch(void *user, enum vt_toolset_event event, const struct vt_tool *tool)
{
	static const char marks[] = {
		[VT_TOOL_ADDED] = '+', [VT_TOOL_REMOVED] = '-', [VT_TOOL_CHANGED] = '~'
	};
	struct told *told = user;
	struct vt_err err = { 0 };

	(void)snprintf(told->text + strlen(told->text), 32, "%c%s", marks[event], tool->name);
	if (!told->meddles || event == VT_TOOL_REMOVED)
		return;
	assert_int_equal(vt_toolset_remove(told->set, tool->name, &err), 0);
	assert_int_equal(tool->name[0], 'a');
}

static struct vt_tool *tool_of(const char *name, const char *description, const char *schema)
{
	struct vt_tool *tool = NULL;
	struct vt_err err = { 0 };

	if (vt_tool_new(name, description, schema, &tool, &err) < 0)
		fail_msg("%s", err.what);
	return tool;
}

static int add(struct vt_toolset *set, const char *name, const char *description,
	       const char *schema, struct vt_err *err)
{
	struct vt_tool *tool = tool_of(name, description, schema);
	int status = vt_toolset_add(set, tool, err);

	vt_tool_unref(tool);
	return status;
}

static void added(struct vt_toolset *set, const char *name, const char *description,
		  const char *schema)
{
	struct vt_err err = { 0 };

	if (add(set, name, description, schema, &err) < 0)
		fail_msg("%s", err.what);
}

static void assert_list(const struct vt_toolset *set, const char *query, const char *want)
{
	struct vt_err err = { 0 };
	char *list = NULL;

	assert_int_equal(vt_toolset_list(set, query, &list, &err), 0);
	assert_string_equal(list, want);
	free(list);
}

/* The names of a list, one after the other. */
static void assert_found(const struct vt_toolset *set, const char *query, const char *want)
{
	struct vt_err err = { 0 };
	AUTO_JSON json_t *root = NULL;
	char *list = NULL, names[256] = "";
	json_t *tool;
	size_t i;

	assert_int_equal(vt_toolset_list(set, query, &list, &err), 0);
	assert_int_equal(vt_json_load_text(list, strlen(list), "list", &root, &err), 0);
	json_array_foreach(root, i, tool)
		strcat(names, json_string_value(json_object_get(tool, "name")));
	assert_string_equal(names, want);
	free(list);
}

static void test_names(void **state)
{
	static const char *const bad[] = { "",    "a b",   "a\n", "\xc3\xa9", "a{", "a\"b",
					   "a'b", "\x1b[", "a,b", "a\\",      "a+" };
	char most[VT_TOOL_MAX_NAME + 2];
	struct vt_err err = { 0 };
	struct vt_tool *tool = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(vt_tool_new(bad[i], NULL, NULL, &tool, &err), -EINVAL);
		for (const char *at = err.what; *at; at++)
			assert_false(iscntrl((unsigned char)*at));
	}
	memset(most, 'a', sizeof(most));
	most[VT_TOOL_MAX_NAME + 1] = '\0';
	assert_int_equal(vt_tool_new(most, NULL, NULL, &tool, &err), -EINVAL);
	most[VT_TOOL_MAX_NAME] = '\0';
	assert_null(tool);
	vt_tool_unref(tool_of(most, NULL, NULL));
	vt_tool_unref(tool_of("Az09_-.:/", NULL, NULL));
}

static void test_wrong_definitions(void **state)
{
	static const struct {
		const char *description, *schema, *message;
	} cases[] = {
		{ "\xff", NULL, "t: the description is not UTF-8" },
		{ NULL, "{", "t: schema:1:1: the text ends too early" },
		{ NULL, "true", "t: schema: want an object" },
		{ NULL, "[]", "t: schema: want an object" },
		{ NULL, "{\"type\": \"string\"}",
		  "t: schema.type: arguments are an object, and \"string\" allows none" },
		{ NULL, "{\"type\": 5}",
		  "t: schema.type: want one of \"string\", \"integer\", \"number\", "
		  "\"boolean\", "
		  "\"array\", \"object\" or \"null\", found 5" },
	};
	struct vt_tool *tool = NULL;
	struct vt_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			vt_tool_new("t", cases[i].description, cases[i].schema, &tool, &err),
			-EINVAL);
		assert_string_equal(err.what, cases[i].message);
	}
	char *text = malloc(VT_TOOL_MAX_SCHEMA + 2);

	memset(text, ' ', VT_TOOL_MAX_SCHEMA + 1);
	text[VT_TOOL_MAX_SCHEMA + 1] = '\0';
	assert_int_equal(vt_tool_new("t", NULL, text, &tool, &err), -E2BIG);
	text[VT_TOOL_MAX_DESCRIPTION + 1] = '\0';
	assert_int_equal(vt_tool_new("t", text, NULL, &tool, &err), -E2BIG);
	text[VT_TOOL_MAX_DESCRIPTION] = '\0';
	assert_int_equal(vt_tool_new("t", text, NULL, &tool, &err), 0);
	vt_tool_unref(tool);
	free(text);
}

static void test_the_list(void **state)
{
	struct vt_toolset *set = vt_toolset_new(NULL, NULL);

	(void)state;
	assert_list(set, NULL, "[]");
	added(set, "b", "Say \"hi\"\n", "{ \"properties\": { \"x y\":\n{\"multipleOf\": 0.10} } }");
	added(set, "a", NULL, NULL);
	added(set, "B", "", "{}");
	assert_list(set, "",
		    "[{\"name\":\"B\",\"description\":\"\",\"input_schema\":{}},"
		    "{\"name\":\"a\",\"input_schema\":{\"type\":\"object\"}},"
		    "{\"name\":\"b\",\"description\":\"Say \\\"hi\\\"\\n\",\"input_schema\":"
		    "{\"properties\":{\"x y\":{\"multipleOf\":0.10}}}}]");
	vt_toolset_free(set);
	vt_toolset_free(NULL);
}

static void test_queries(void **state)
{
	struct vt_toolset *set = vt_toolset_new(NULL, NULL);
	char query[VT_TOOLSET_MAX_QUERY + 2];
	struct vt_err err = { 0 };
	char *list = NULL;

	(void)state;
	added(set, "ReadFile", "Reads a file of the workspace.", NULL);
	added(set, "write_file", "Writes a file. \xc3\x84nderungen bleiben.", NULL);
	added(set, "now", NULL, NULL);
	assert_found(set, "file", "ReadFilewrite_file");
	assert_found(set, "FILE  reads\t", "ReadFile");
	assert_found(set, "workspace readf", "ReadFile");
	assert_found(set, "file nothing", "");
	assert_found(set, " \n ", "ReadFilenowwrite_file");
	assert_found(set, "NOW", "now");
	assert_found(set, "\xc3\x84nder", "write_file");
	assert_found(set, "\xc3\xa4nder", "");
	/* A word is not found half in the name and half in the description. */
	assert_found(set, "filereads", "");
	assert_found(set, "file\nreads", "ReadFile");
	memset(query, 'x', sizeof(query));
	query[VT_TOOLSET_MAX_QUERY + 1] = '\0';
	assert_int_equal(vt_toolset_list(set, query, &list, &err), -E2BIG);
	for (size_t i = 0; i < VT_TOOLSET_MAX_QUERY; i++)
		query[i] = i % 2 ? ' ' : 'f';
	query[VT_TOOLSET_MAX_QUERY] = '\0';
	assert_found(set, query, "ReadFilewrite_file");
	vt_toolset_free(set);
}

static void test_the_watcher_is_told(void **state)
{
	struct told told = { 0 };
	struct vt_err err = { 0 };

	(void)state;
	told.set = vt_toolset_new(watch, &told);
	added(told.set, "b", "x", "{}");
	added(told.set, "a", NULL, "{}");
	assert_string_equal(told.text, "+b+a");
	told.text[0] = '\0';
	added(told.set, "b", "x", " {\n} ");
	assert_string_equal(told.text, "");
	added(told.set, "b", "y", "{}");
	added(told.set, "b", NULL, "{}");
	added(told.set, "b", NULL, "{\"title\": \"b\"}");
	assert_string_equal(told.text, "~b~b~b");
	told.text[0] = '\0';
	assert_int_equal(vt_toolset_remove(told.set, "c\n", &err), -ENOENT);
	assert_string_equal(err.what, "there is no tool 'c\\n'");
	assert_int_equal(vt_toolset_remove(told.set, "b", &err), 0);
	assert_int_equal(vt_toolset_remove(told.set, "b", &err), -ENOENT);
	assert_string_equal(told.text, "-b");
	assert_int_equal(vt_toolset_count(told.set), 1);
	/* It may remove what it was told of. */
	told.meddles = true;
	told.text[0] = '\0';
	added(told.set, "a", "new", NULL);
	assert_string_equal(told.text, "~a-a");
	assert_int_equal(vt_toolset_count(told.set), 0);
	vt_toolset_free(told.set);
}

static void count_release(void *owner)
{
	++*(int *)owner;
}

static void test_a_tool_outlives_its_place(void **state)
{
	struct vt_toolset *set = vt_toolset_new(NULL, NULL);
	struct vt_tool *first = tool_of("t", NULL, "{\"required\": [\"a\"]}");
	struct vt_err err = { 0 };
	int released = 0;

	(void)state;
	first->owner = &released;
	first->release = count_release;
	assert_int_equal(vt_toolset_add(set, first, &err), 0);
	assert_int_equal(vt_toolset_add(set, first, &err), 0); /* in its own place */
	added(set, "t", NULL, "{\"required\": [\"b\"]}");
	assert_ptr_not_equal(vt_toolset_find(set, "t"), first);
	assert_int_equal(vt_tool_check(first, "{\"a\": 1}", 8, NULL, &err), 0);
	assert_int_equal(vt_tool_check(vt_toolset_find(set, "t"), "{\"a\": 1}", 8, NULL, &err),
			 -EINVAL);
	assert_int_equal(released, 0);
	vt_tool_unref(first);
	assert_int_equal(released, 1);
	vt_tool_unref(NULL);
	struct vt_tool *second = vt_tool_ref(vt_toolset_find(set, "t"));

	vt_toolset_free(set);
	assert_string_equal(second->name, "t");
	vt_tool_unref(second);
}

/* The same definition by another owner: nothing shows, and calls go to the new one. */
static void test_a_new_owner(void **state)
{
	struct told told = { 0 };
	struct vt_err err = { 0 };
	int released = 0;

	(void)state;
	told.set = vt_toolset_new(watch, &told);
	for (int i = 0; i < 2; i++) {
		struct vt_tool *tool = tool_of("t", NULL, NULL);

		tool->owner = &released;
		tool->release = count_release;
		assert_int_equal(vt_toolset_add(told.set, tool, &err), 0);
		assert_ptr_equal(vt_toolset_find(told.set, "t"), tool);
		vt_tool_unref(tool);
		assert_int_equal(released, i);
	}
	assert_string_equal(told.text, "+t");
	vt_toolset_free(told.set);
	assert_int_equal(released, 2);
}

static void test_arguments(void **state)
{
	struct vt_tool *tool = tool_of("fs/read", NULL,
				       "{\"properties\": {\"path\": {\"type\": \"string\"}},"
				       " \"extra\": 1, \"required\": [\"path\"]}");
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "{\"path\": 5}", "fs/read: arguments.path: want a string, found 5" },
		{ "{}", "fs/read: arguments: \"path\" is missing" },
		{ "[]", "fs/read: arguments: want an object" },
		{ "", "fs/read: arguments:1:1: the text ends too early" },
		{ "{\"path\": \"\\u0000\"}",
		  "fs/read: arguments:1:17: the escape \\u0000 is not allowed" },
	};
	AUTO_JSON json_t *arguments = NULL;
	struct vt_err err = { 0 };

	(void)state;
	assert_int_equal(tool->warnings.count, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			vt_tool_check(tool, cases[i].text, strlen(cases[i].text), &arguments, &err),
			-EINVAL);
		assert_string_equal(err.what, cases[i].message);
		assert_null(arguments);
	}
	assert_int_equal(vt_tool_check(tool, "{\"path\": \"x\"}", 13, &arguments, &err), 0);
	assert_string_equal(json_string_value(json_object_get(arguments, "path")), "x");
	vt_tool_unref(tool);
}

static void add_euros(struct vt_str *str, const char *before, const char *after)
{
	vt_str_add(str, before);
	for (int i = 0; i < 20; i++)
		vt_str_add(str, "\xe2\x82\xac");
	vt_str_add(str, after);
}

/* A long name, a long place, much that is wanted, a guess and a long value, of characters of three
 * bytes. */
static void test_long_messages_are_cut_between_characters(void **state)
{
	char name[VT_TOOL_MAX_NAME + 1] = "";
	struct vt_str schema, text;
	struct vt_err err = { 0 };

	(void)state;
	memset(name, 'n', VT_TOOL_MAX_NAME);
	vt_str_init(&schema);
	vt_str_init(&text);
	vt_str_add(&schema, "{\"additionalProperties\": {\"additionalProperties\": "
			    "{\"additionalProperties\": {\"enum\": [0");
	for (int i = 0; i < 8; i++)
		add_euros(&schema, ",\"", i == 4 ? "y\"" : "\"");
	vt_str_add(&schema, "]}}}}");
	for (int i = 0; i < 3; i++)
		add_euros(&text, "{\"", "\": ");
	add_euros(&text, "\"", "yy\"}}}");
	for (int i = 0; i < 3; i++) {
		name[VT_TOOL_MAX_NAME - i] = '\0';
		struct vt_tool *tool = tool_of(name, NULL, schema.text);

		assert_int_equal(vt_tool_check(tool, text.text, text.len, NULL, &err), -EINVAL);
		assert_true(strlen(err.what) > sizeof(err.what) - 8);
		assert_string_equal(err.what + strlen(err.what) - 3, "...");
		assert_true(vt_utf8_is_valid(err.what, strlen(err.what)));
		vt_tool_unref(tool);
	}
	vt_str_done(&text);
	vt_str_done(&schema);
}

static void test_a_full_set(void **state)
{
	struct vt_toolset *set = vt_toolset_new(NULL, NULL);
	struct vt_err err = { 0 };
	char name[16];

	(void)state;
	/* In no order, so that each is put between others. */
	for (unsigned i = 0; i < VT_TOOLSET_MAX_TOOLS; i++) {
		(void)snprintf(name, sizeof(name), "t%u", i * 1999 % VT_TOOLSET_MAX_TOOLS);
		added(set, name, NULL, "{}");
	}
	assert_int_equal(vt_toolset_count(set), VT_TOOLSET_MAX_TOOLS);
	assert_int_equal(add(set, "more", NULL, NULL, &err), -E2BIG);
	assert_string_equal(err.what, "more: there are 4096 tools already, which is the most");
	assert_int_equal(add(set, "t7", "changed", NULL, &err), 0);
	for (unsigned i = 0; i < VT_TOOLSET_MAX_TOOLS; i++) {
		(void)snprintf(name, sizeof(name), "t%u", i);
		struct vt_tool *tool = vt_toolset_find(set, name);

		assert_non_null(tool);
		assert_string_equal(tool->name, name);
	}
	assert_null(vt_toolset_find(set, "t"));
	assert_null(vt_toolset_find(set, "t9999"));
	vt_toolset_free(set);
}

static void test_bytes_are_counted(void **state)
{
	struct vt_toolset *set = vt_toolset_new(NULL, NULL);
	char *description = malloc(VT_TOOL_MAX_DESCRIPTION + 1), name[16];
	struct vt_err err = { 0 };
	int status = 0, count = 0;

	(void)state;
	memset(description, 'x', VT_TOOL_MAX_DESCRIPTION);
	description[VT_TOOL_MAX_DESCRIPTION] = '\0';
	while (status == 0 && count < 1000) {
		(void)snprintf(name, sizeof(name), "t%d", count);
		status = add(set, name, description, "{}", &err);
		count += status == 0;
	}
	assert_int_equal(status, -E2BIG);
	assert_int_equal(count, VT_TOOLSET_MAX_BYTES / (VT_TOOL_MAX_DESCRIPTION + 60));
	/* One may be replaced, and one that is removed makes room. */
	assert_int_equal(add(set, "t0", description, "{}", &err), 0);
	assert_int_equal(vt_toolset_remove(set, "t0", &err), 0);
	assert_int_equal(add(set, "u0", description, "{}", &err), 0);
	assert_int_equal(add(set, "u1", description, "{}", &err), -E2BIG);
	free(description);
	vt_toolset_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_wrong_definitions),
		cmocka_unit_test(test_the_list),
		cmocka_unit_test(test_queries),
		cmocka_unit_test(test_the_watcher_is_told),
		cmocka_unit_test(test_a_tool_outlives_its_place),
		cmocka_unit_test(test_a_new_owner),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_long_messages_are_cut_between_characters),
		cmocka_unit_test(test_a_full_set),
		cmocka_unit_test(test_bytes_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
