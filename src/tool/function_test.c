/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/function.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void test_names(void **state)
{
	static const char *const good[] = { "m:f", "pkg.mod:f", "_m1:Class.method",
					    "m\xc3\xa4h:f_2", "a.b.c:_d.e" };
	static const char *const bad[] = { "",      "m",    "m:",     ":f",    "m:f:g",  "m.:f",
					   ".m:f",  "m:.f", "1m:f",   "m:f ",  "a b:f",  "m:f()",
					   "m/n:f", "-m:f", "a..b:f", "m:f\n", "m\xff:f" };
	char text[VT_TOOL_MAX_FUNCTION + 2];
	struct vt_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(vt_tool_check_function(VT_PYTHON, good[i], "python", &err), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_true(vt_tool_check_function(VT_PYTHON, bad[i], "python", &err) < 0);
		assert_non_null(strstr(err.what, "python: want a module and its function"));
	}
	memset(text, 'a', sizeof(text));
	text[1] = ':';
	text[VT_TOOL_MAX_FUNCTION] = '\0';
	assert_int_equal(vt_tool_check_function(VT_PYTHON, text, "python", &err), 0);
	text[VT_TOOL_MAX_FUNCTION] = 'a';
	text[VT_TOOL_MAX_FUNCTION + 1] = '\0';
	assert_true(vt_tool_check_function(VT_PYTHON, text, "python", &err) < 0);
}

static void test_names_of_node(void **state)
{
	static const char *const good[] = { "m.mjs#f", "lib/m.js#default", "a b.cjs#f", "..m#f" };
	static const char *const bad[] = { "",       "m.mjs",    "m.mjs#",    "#f",     "/m.mjs#f",
					   "../m#f", "a/../m#f", "m.mjs#f#g", "a//m#f", "a/#f",
					   "./m#f",  "m\n#f",    "m\xff#f" };
	struct vt_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(vt_tool_check_function(VT_NODE, good[i], "node", &err), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_true(vt_tool_check_function(VT_NODE, bad[i], "node", &err) < 0);
		assert_non_null(strstr(err.what, "node: want a file and its export"));
	}
}

static void write_file(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static char *set_up(const char *function, const char *folder)
{
	struct vt_err err;
	char *setup = NULL;

	assert_int_equal(vt_tool_set_up(VT_PYTHON, function, folder, &setup, &err), 0);
	return setup;
}

static void test_setup(void **state)
{
	char *setup = set_up("pkg.mod:f", NULL);
	struct vt_err err;

	(void)state;
	assert_string_equal(setup, "{\"version\":1,\"mode\":\"json\",\"path\":[],"
				   "\"preload\":[\"pkg.mod\"],\"rehearse\":[\"call\"]}");
	free(setup);
	setup = set_up("m:f", "/no/such \"folder\"");
	assert_non_null(strstr(setup, "\"path\":[\"/no/such \\\"folder\\\"\"]"));
	assert_null(strstr(setup, "stamp"));
	free(setup);
	assert_true(vt_tool_set_up(VT_PYTHON, "m:f", "/\xff", &setup, &err) < 0);
}

/* Other code is another pool, whether it is a file or a package; what is beside it is no matter. */
static void test_changed(void **state)
{
	char folder[] = "/tmp/tool.function-XXXXXX", path[64], inner[96], command[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/pkg", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int i = 0; i < 2; i++) {
		const char *function = i ? "pkg.mod:f" : "pkg:f";
		char *before = set_up(function, folder);

		(void)snprintf(inner, sizeof(inner), "%s/%s", path, i ? "mod.py" : "__init__.py");
		write_file(inner, "1\n");
		char *there = set_up(function, folder), *same = set_up(function, folder);

		assert_string_not_equal(before, there);
		assert_string_equal(there, same);
		write_file(inner, "12\n");
		char *after = set_up(function, folder);

		assert_string_not_equal(there, after);
		free(before);
		free(there);
		free(same);
		free(after);
	}
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_names_of_node),
		cmocka_unit_test(test_setup),
		cmocka_unit_test(test_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
