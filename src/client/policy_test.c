/* SPDX-License-Identifier: Apache-2.0 */
#include "client/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void assert_sources(const vitro_policy *policy, const char *text)
{
	char *sources = vt_policy_sources(policy);

	assert_string_equal(sources, text);
	free(sources);
}

static void test_sources_in_order(void **state)
{
	(void)state;
	vitro_policy *policy = vitro_policy_new();
	struct vitro_error error;

	assert_sources(NULL, "[]");
	assert_sources(policy, "[]");
	assert_int_equal(vitro_policy_load(policy, "strict", &error), 0);
	assert_int_equal(vitro_policy_load_json(policy, "{\"limits\": {\"pids\": 3}}", &error), 0);
	assert_int_equal(vitro_policy_set(policy, "limits.wall_ms", "5s", &error), 0);
	assert_sources(policy, "[{\"load\":\"strict\"},"
			       "{\"json\":\"{\\\"limits\\\": {\\\"pids\\\": 3}}\"},"
			       "{\"key\":\"limits.wall_ms\",\"value\":\"5s\"}]");
	vitro_policy_free(policy);
}

/* What is wrong is said at once, and changes nothing. */
static void test_wrong_sources(void **state)
{
	(void)state;
	vitro_policy *policy = vitro_policy_new();
	struct vitro_error error = { 0 };

	assert_int_equal(vitro_policy_set(policy, "limits.pids", "7", NULL), 0);
	assert_int_equal(vitro_policy_set(policy, "limits.wal_ms", "5s", &error), -EINVAL);
	assert_non_null(strstr(error.text, "limits.wall_ms"));
	assert_true(vitro_policy_set(policy, "limits.wall_ms", "soon", &error) < 0);
	/* In words that have nothing to do with a command line, and each of them once. */
	static const struct {
		const char *key, *value, *text;
	} cases[] = {
		{ "limits.wall_ms", "-5s", "limits.wall_ms: -5s is out of range (1ms to 1440m)" },
		{ "files.read", "x", "files.read: 'x' is relative; here a path must be absolute" },
		{ "files.read", "[\"x\"]",
		  "files.read[0]: 'x' is relative; here a path must be absolute" },
		{ "extends", "strict", "extends: 'extends' can only stand in a policy file" },
		{ "", "x", "unknown key ''; see vitro-policy(5)" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(vitro_policy_set(policy, cases[i].key, cases[i].value, &error) < 0);
		assert_string_equal(error.text, cases[i].text);
	}
	assert_true(vitro_policy_load_json(policy, "{\"files\":{\"read\":[\".\"]}}", &error) < 0);
	assert_true(vitro_policy_load_json(policy, "{", NULL) < 0);
	assert_int_equal(vitro_policy_load(policy, "nothing-of-that-name", &error), -ENOENT);
	assert_int_equal(error.num, ENOENT);
	assert_memory_equal(error.text, "there is no file '", 18);
	assert_sources(policy, "[{\"key\":\"limits.pids\",\"value\":\"7\"}]");
	vitro_policy_free(policy);
}

/* The supervisor may be somewhere else. */
static void test_file_names_are_absolute(void **state)
{
	(void)state;
	char folder[] = "/tmp/vitro-policy.XXXXXX", before[4096], expected[128];
	vitro_policy *policy = vitro_policy_new();
	struct vitro_error error = { 0 };

	assert_non_null(getcwd(before, sizeof(before)));
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	FILE *file = fopen("p.json", "we");

	assert_non_null(file);
	assert_true(fputs("{\"files\": {\"read\": [\".\"]}}", file) >= 0);
	assert_int_equal(fclose(file), 0);
	if (vitro_policy_load(policy, "p.json", &error) < 0)
		fail_msg("%s", error.text);
	(void)snprintf(expected, sizeof(expected), "[{\"load\":\"%s/p.json\"}]", folder);
	assert_sources(policy, expected);
	assert_int_equal(unlink("p.json"), 0);
	assert_int_equal(chdir(before), 0);
	assert_int_equal(rmdir(folder), 0);
	vitro_policy_free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources_in_order),
		cmocka_unit_test(test_wrong_sources),
		cmocka_unit_test(test_file_names_are_absolute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
