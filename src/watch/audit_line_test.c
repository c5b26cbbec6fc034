/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/result_test.h"

#include <stdlib.h>

#include "watch/audit_line.h"

static void check_only(json_t *granted, const char *key, const char *path)
{
	json_t *list = json_object_get(granted, key);

	assert_int_equal(json_array_size(list), 1);
	assert_string_equal(json_string_value(json_array_get(list, 0)), path);
}

static void audit_says_who_what_and_how(void **state)
{
	char shell[] = "sh", option[] = "-c", script[] = "echo \"\xff\"\n";
	char *argv[] = { shell, option, script, NULL };
	struct vt_audit audit = { .policy = "p.json", .argv = argv };
	struct vt_findings found = { .ended = true, .wait_status = W_EXITCODE(3, 0) };
	static const struct vt_build builds[] = {
		{ .act = VT_ACT_BIND, .from = "/usr", .to = "usr" },
		{ .act = VT_ACT_BIND,
		  .from = "/srv/out",
		  .to = "out",
		  .granted = true,
		  .writable = true },
		{ .act = VT_ACT_BIND,
		  .from = "/srv/s",
		  .to = "srv/s",
		  .granted = true,
		  .socket = true },
	};
	static const struct vt_denial denials[] = { { "/srv/out/.env", NULL } };
	struct vt_plan plan = full_plan();
	struct vt_result result;
	struct vt_err err;
	struct vt_str text;

	(void)state;
	plan.builds = builds;
	plan.build_count = 3;
	plan.denials = denials;
	plan.denial_count = 1;
	vt_result_init(&result);
	vt_verdict_reach(&found, &result.verdict);
	vt_str_init(&text);
	assert_int_equal(vt_audit_line(&result, &plan, &audit, &text, &err), 0);
	assert_ptr_equal(strchr(text.text, '\n'), text.text + text.len - 1);
	json_t *root = parse(&text);
	const char *when = json_string_value(json_object_get(root, "time"));
	int year, month, day, hour, minute, second, ms, end = 0;

	assert_int_equal(sscanf(when, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &year, &month, &day, &hour,
				&minute, &second, &ms, &end),
			 7);
	assert_int_equal(when[end], '\0');
	assert_true(year >= 2024);
	assert_int_equal(json_integer_value(json_object_get(root, "uid")), getuid());
	assert_int_equal(json_array_size(json_object_get(root, "argv")), 3);
	assert_string_equal(json_string_value(json_array_get(json_object_get(root, "argv"), 2)),
			    "echo \"\xef\xbf\xbd\"\n");
	assert_string_equal(json_string_value(json_object_get(root, "program")), "/bin/true");
	assert_string_equal(json_string_value(json_object_get(root, "policy")), "p.json");
	json_t *isolation = json_object_get(root, "isolation");

	assert_string_equal(json_string_value(json_object_get(isolation, "level")), "full");
	json_t *granted = json_object_get(root, "granted");

	assert_int_equal(json_array_size(json_object_get(granted, "read")), 0);
	check_only(granted, "write", "/srv/out");
	check_only(granted, "sockets", "/srv/s");
	check_only(granted, "deny", "/srv/out/.env");
	assert_string_equal(json_string_value(json_object_get(root, "status")), "error");
	assert_int_equal(json_integer_value(json_object_get(root, "exit_code")), 3);
	assert_true(json_is_object(json_object_get(root, "usage")));
	json_decref(root);
	vt_str_done(&text);
	vt_result_done(&result);
}

/* Whoever makes a call chooses how long its words are, and not how long the line is. */
static void audit_bounds_the_words(void **state)
{
	static const struct {
		size_t len;    /* of each word */
		size_t count;  /* of words */
		size_t listed; /* of words in the line */
		size_t last;   /* bytes of the last of them */
	} cases[] = {
		{ VT_AUDIT_ARGV - 1, 1, 1, VT_AUDIT_ARGV - 1 },
		{ VT_AUDIT_ARGV, 1, 1, VT_AUDIT_ARGV },
		{ 8 << 20, 1, 1, VT_AUDIT_ARGV },
		{ 20000, 3, 2, VT_AUDIT_ARGV - 20001 },
		{ 0, VT_AUDIT_ARGV + 5, VT_AUDIT_ARGV, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *word = calloc(1, cases[i].len + 1);
		char **argv = calloc(cases[i].count + 1, sizeof(*argv));
		struct vt_audit audit = { .policy = "default", .argv = argv };
		struct vt_result result;
		struct vt_str text;
		struct vt_err err;

		memset(word, 'x', cases[i].len);
		for (size_t j = 0; j < cases[i].count; j++)
			argv[j] = word;
		vt_result_init(&result);
		vt_str_init(&text);
		assert_int_equal(vt_audit_line(&result, NULL, &audit, &text, &err), 0);
		assert_true(text.len < 8 * VT_AUDIT_ARGV);
		json_t *root = parse(&text), *list = json_object_get(root, "argv");
		size_t all = (cases[i].len + 1) * cases[i].count;

		assert_int_equal(json_array_size(list), cases[i].listed);
		assert_int_equal(json_string_length(json_array_get(list, cases[i].listed - 1)),
				 cases[i].last);
		assert_int_equal(json_integer_value(json_object_get(root, "argv_bytes")),
				 all > VT_AUDIT_ARGV ? all : 0);
		json_decref(root);
		vt_str_done(&text);
		free(word);
		free(argv);
	}
}

static void audit_of_a_refusal(void **state)
{
	struct vt_audit audit = { .policy = "default" };
	struct vt_result result;
	struct vt_err err;
	struct vt_str text;

	(void)state;
	vt_result_init(&result);
	vt_str_init(&text);
	assert_int_equal(vt_audit_line(&result, NULL, &audit, &text, &err), 0);
	json_t *root = parse(&text);

	assert_int_equal(json_array_size(json_object_get(root, "argv")), 0);
	assert_true(json_is_null(json_object_get(root, "program")));
	assert_true(json_is_null(json_object_get(root, "isolation")));
	json_decref(root);
	vt_str_done(&text);
	vt_result_done(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(audit_says_who_what_and_how),
		cmocka_unit_test(audit_bounds_the_words),
		cmocka_unit_test(audit_of_a_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
