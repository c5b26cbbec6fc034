/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "plan/environment.h"

#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static struct vt_arena *arena;

static int begin(void **state)
{
	(void)state;
	arena = vt_arena_new();
	return arena ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	vt_arena_free(arena);
	return 0;
}

static const char *const caller[] = { "LANG=C.UTF-8",  "SECRET=1",    "PATH=/home/me/bin",
				      "HOME=/home/me", "LANGUAGE=de", "TERM=x=y",
				      "junk",          "EMPTY=",      NULL };

/* The environment of a policy, one line per variable. The policy adds to pass and set. */
static const char *made(const char *json, const char *const *from, const struct vt_command *command)
{
	struct vt_policy *policy;
	struct vt_err err;
	struct vt_str text;

	assert_int_equal(vt_policy_new(&policy, &err), 0);
	if (vt_policy_load_text(policy, json, strlen(json), "/", "test", &err) < 0)
		fail_msg("%s", err.what);
	char **variables = vt_environment_make(arena, policy, (char *const *)from, command, NULL);

	assert_non_null(variables);
	/* It borrows nothing of the policy. */
	vt_policy_free(policy);
	vt_str_init(&text);
	for (; *variables; variables++)
		vt_str_addf(&text, "%s\n", *variables);
	assert_true(vt_str_ok(&text));
	const char *copy = vt_arena_dup(arena, text.text);

	vt_str_done(&text);
	return copy;
}

/* Nothing but the few that are passed by default; their names match as a whole. */
static void test_default(void **state)
{
	(void)state;
	assert_string_equal(made("{}", caller, NULL),
			    "PATH=" SYSTEM_PATH "\nHOME=/tmp\nLANG=C.UTF-8\n");
}

static void test_nothing_to_inherit(void **state)
{
	const char *const empty[] = { NULL };

	(void)state;
	assert_string_equal(made("{}", empty, NULL), "PATH=" SYSTEM_PATH "\nHOME=/tmp\n");
	assert_string_equal(made("{}", NULL, NULL), "PATH=" SYSTEM_PATH "\nHOME=/tmp\n");
}

static void test_passed_by_name(void **state)
{
	(void)state;
	assert_string_equal(
		made("{\"env\": {\"pass\": [\"TERM\", \"EMPTY\", \"ABSENT\", \"junk\"]}}", caller,
		     NULL),
		"PATH=" SYSTEM_PATH "\nHOME=/tmp\nTERM=x=y\nEMPTY=\n");
}

/* The caller's PATH and HOME are not there inside, so "*" leaves them out; their names do not. */
static void test_all_passed(void **state)
{
	(void)state;
	assert_string_equal(made("{\"env\": {\"pass\": [\"*\"]}}", caller, NULL),
			    "PATH=" SYSTEM_PATH "\nHOME=/tmp\nLANG=C.UTF-8\nSECRET=1\n"
			    "LANGUAGE=de\nTERM=x=y\nEMPTY=\n");
	assert_string_equal(made("{\"env\": {\"pass\": [\"PATH\", \"HOME\"]}}", caller, NULL),
			    "PATH=/home/me/bin\nHOME=/home/me\n");
}

static void test_set_wins(void **state)
{
	(void)state;
	assert_string_equal(made("{\"env\": {\"pass\": [\"LANG\"], \"set\": {\"LANG\": \"C\","
				 " \"HOME\": \"/in\", \"PATH\": \"/x\", \"NEW\": \"a=b\"}}}",
				 caller, NULL),
			    "PATH=/x\nHOME=/in\nLANG=C\nNEW=a=b\n");
}

/* Twice in the caller's own: the last one counts, as it does for most shells. */
static void test_doubles(void **state)
{
	const char *const doubled[] = { "LANG=a", "TZ=b", "LANG=c", NULL };

	(void)state;
	assert_string_equal(made("{}", doubled, NULL),
			    "PATH=" SYSTEM_PATH "\nHOME=/tmp\nLANG=c\nTZ=b\n");
}

static void test_commands_folders(void **state)
{
	const char *dirs[] = { "/opt/venv/bin", "/opt/py/bin" };
	const struct vt_command command = { .bin_dirs = dirs, .bin_dir_count = 2 };

	(void)state;
	assert_string_equal(made("{}", NULL, &command),
			    "PATH=/opt/venv/bin:/opt/py/bin:" SYSTEM_PATH "\nHOME=/tmp\n");
	assert_string_equal(made("{\"env\": {\"set\": {\"PATH\": \"/mine\"}}}", NULL, &command),
			    "PATH=/mine\nHOME=/tmp\n");
}

#define STAGED(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGED(test_default),          STAGED(test_nothing_to_inherit),
		STAGED(test_passed_by_name),   STAGED(test_all_passed),
		STAGED(test_set_wins),         STAGED(test_doubles),
		STAGED(test_commands_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
