/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/result_test.h"

#include <errno.h>
#include <signal.h>

static void print(const struct vt_result *result, const struct vt_plan *plan, struct vt_str *text)
{
	struct vt_err err;

	vt_str_init(text);
	assert_int_equal(vt_result_json(result, plan, text, &err), 0);
	assert_true(text->len > 0);
	assert_ptr_equal(strchr(text->text, '\n'), text->text + text->len - 1);
}

/* The design's own example, to the letter. */
static void the_design_s_example(void **state)
{
	struct vt_plan plan = full_plan();
	struct vt_findings found = { .stop = VT_STOP_DEADLINE, .wall_ms = 500 };
	struct vt_result result;
	struct vt_str text;

	(void)state;
	vt_result_init(&result);
	vt_verdict_reach(&found, &result.verdict);
	vt_capture_init(&result.out, 100);
	vt_capture_add(&result.out, "h\xc3\xa9llo\n", 7);
	result.wall_ms = 500.4;
	result.cpu_ms = 498.1;
	result.peak_memory_kb = 9120;
	result.processes = 1;
	print(&result, &plan, &text);
	assert_string_equal(
		text.text,
		"{\"call_id\": \"c1\", \"ok\": false, \"status\": \"timeout\", \"value\": null, "
		"\"error\": {\"type\": \"Timeout\", "
		"\"message\": \"the call ran past its 0.5 s deadline (limits.wall_ms)\", "
		"\"traceback\": null}, "
		"\"exit_code\": null, \"signal\": 9, \"stdout\": \"h\xc3\xa9llo\\n\", \"stderr\": "
		"\"\", "
		"\"dropped\": {\"stdout\": 0, \"stderr\": 0}, \"logs\": [], "
		"\"usage\": {\"wall_ms\": 500.4, \"cpu_ms\": 498.1, \"peak_memory_kb\": 9120, "
		"\"processes\": 1}, "
		"\"isolation\": {\"level\": \"full\", \"processes\": \"pidns\", "
		"\"files\": \"mountns+landlock\", \"network\": \"netns\", \"syscalls\": "
		"\"seccomp\", "
		"\"memory\": \"cgroup-v1\", \"pids\": \"cgroup-v1\", \"tmp\": \"tmpfs\"}, "
		"\"files\": {}, \"denials\": null}\n");
	vt_str_done(&text);
	vt_result_done(&result);
}

static void ok_has_no_error(void **state)
{
	struct vt_findings found = { .ended = true, .wait_status = 0 };
	struct vt_plan plan = full_plan();
	struct vt_result result;
	struct vt_str text;

	(void)state;
	vt_result_init(&result);
	vt_verdict_reach(&found, &result.verdict);
	print(&result, &plan, &text);
	json_t *root = parse(&text);

	assert_true(json_is_true(json_object_get(root, "ok")));
	assert_true(json_is_null(json_object_get(root, "error")));
	assert_true(json_is_null(json_object_get(root, "signal")));
	assert_int_equal(json_integer_value(json_object_get(root, "exit_code")), 0);
	assert_true(json_is_integer(json_object_get(root, "exit_code")));
	assert_null(json_object_get(root, "unreaped"));
	/* not counted is null, and not -1 */
	json_t *usage = json_object_get(root, "usage");

	assert_true(json_is_null(json_object_get(usage, "peak_memory_kb")));
	assert_true(json_is_null(json_object_get(usage, "processes")));
	json_decref(root);
	vt_str_done(&text);
	vt_result_done(&result);
}

static void refused_has_no_isolation(void **state)
{
	struct vt_findings found = {
		.failed = true,
		.failure = { .step = VT_STEP_PLAN, .num = EPERM, .what = "\"no\" for '/a\xff'\n" },
	};
	struct vt_result result;
	struct vt_str text;

	(void)state;
	vt_result_init(&result);
	vt_verdict_reach(&found, &result.verdict);
	print(&result, NULL, &text);
	json_t *root = parse(&text);

	assert_true(json_is_null(json_object_get(root, "isolation")));
	assert_string_equal(json_string_value(json_object_get(root, "status")), "refused");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(root, "error"), "message")),
		"\"no\" for '/a\xef\xbf\xbd'\n");
	json_decref(root);
	vt_str_done(&text);
	vt_result_done(&result);
}

static void a_new_result_is_lost(void **state)
{
	struct vt_result result;

	(void)state;
	vt_result_init(&result);
	assert_int_equal(result.verdict.status, VT_STATUS_LOST);
	assert_int_equal(vt_verdict_exit_code(&result.verdict), 125);
	vt_result_done(&result);
}

static void watched_holdings_state_their_slack(void **state)
{
	struct vt_plan plan = full_plan();
	struct vt_result result;
	struct vt_str text;

	(void)state;
	plan.level = "partial";
	plan.holdings[VT_PROPERTY_MEMORY] = (struct vt_holding)HOLDING("watchdog", WATCHED,
								       "sampled every 2 to 50 ms");
	plan.holdings[VT_PROPERTY_PIDS] = (struct vt_holding)HOLDING("rlimit", NONE, "use cgroups");
	plan.holdings[VT_PROPERTY_NETWORK] = (struct vt_holding)HOLDING(NULL, NONE, "the host's");
	plan.holdings[VT_PROPERTY_CPU_TIME] = (struct vt_holding)HOLDING("watchdog", WATCHED, "");
	plan.holdings[VT_PROPERTY_CPUS] = (struct vt_holding)HOLDING("none", NONE, "no cgroup");
	vt_result_init(&result);
	print(&result, &plan, &text);
	assert_non_null(
		strstr(text.text,
		       "\"isolation\": {\"level\": \"partial\", \"processes\": \"pidns\", "
		       "\"files\": \"mountns+landlock\", \"network\": \"host\", \"syscalls\": "
		       "\"seccomp\", "
		       "\"memory\": \"watchdog\", \"pids\": \"none\", \"cpu_time\": \"watchdog\", "
		       "\"cpus\": \"none\", \"tmp\": \"tmpfs\", \"notes\": {\"memory\": \"sampled "
		       "every 2 to 50 ms\", "
		       "\"pids\": \"use cgroups\", \"cpus\": \"no cgroup\"}}"));
	vt_str_done(&text);
	vt_result_done(&result);
}

static void output_is_data(void **state)
{
	struct vt_plan plan = full_plan();
	struct vt_result result;
	struct vt_str text;

	(void)state;
	vt_result_init(&result);
	vt_capture_init(&result.out, 100);
	vt_capture_add(&result.out, "a\0\x1b\"\\\xff z", 8);
	vt_capture_init(&result.err, 4);
	vt_capture_add(&result.err, "ab\xe2\x82\xac..\xc3\xa9z", 10);
	print(&result, &plan, &text);
	assert_non_null(strstr(text.text, "\"stdout\": \"a\\u0000\\u001B\\\"\\\\\xef\xbf\xbd z\""));
	/* the seam's cut is counted: two bytes of head, one of tail are left of ten */
	assert_non_null(strstr(text.text, "\"stderr\": \"ab\\n[... 7 bytes dropped ...]\\nz\""));
	assert_non_null(strstr(text.text, "\"dropped\": {\"stdout\": 0, \"stderr\": 7}"));
	vt_str_done(&text);
	vt_result_done(&result);
}

static void numbers_have_one_decimal(void **state)
{
	static const struct {
		double ms;
		const char *want;
	} rows[] = {
		{ 0, "\"wall_ms\": 0.0," },
		{ 0.04, "\"wall_ms\": 0.0," },
		{ 0.05, "\"wall_ms\": 0.1," },
		{ 12.3456, "\"wall_ms\": 12.3," },
		{ 86400000.06, "\"wall_ms\": 86400000.1," },
		{ -1, "\"wall_ms\": null," },
		{ __builtin_nan(""), "\"wall_ms\": null," },
		{ __builtin_inf(), "\"wall_ms\": null," },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vt_result result;
		struct vt_str text;

		vt_result_init(&result);
		result.wall_ms = rows[i].ms;
		print(&result, NULL, &text);
		if (!strstr(text.text, rows[i].want))
			print_error("%s not in %s\n", rows[i].want, text.text);
		assert_non_null(strstr(text.text, rows[i].want));
		vt_str_done(&text);
		vt_result_done(&result);
	}
}

static void unreaped_is_said(void **state)
{
	struct vt_result result;
	struct vt_str text;

	(void)state;
	vt_result_init(&result);
	result.unreaped = true;
	print(&result, NULL, &text);
	assert_non_null(strstr(text.text, "\"denials\": null, \"unreaped\": true}\n"));
	vt_str_done(&text);
	vt_result_done(&result);
}

static void uncleared_is_said(void **state)
{
	struct vt_plan plan = full_plan();
	struct vt_result result;
	struct vt_str text;

	(void)state;
	plan.scratch = "/tmp/vitro-call";
	vt_result_init(&result);
	result.uncleared = true;
	print(&result, &plan, &text);
	assert_non_null(strstr(text.text, "null, \"uncleared\": \"/tmp/vitro-call\"}\n"));
	vt_str_done(&text);
	vt_result_done(&result);
}

/* A text that has failed before says so, and is no result. */
static void failed_text_is_an_error(void **state)
{
	struct vt_result result;
	struct vt_err err;
	struct vt_str text;

	(void)state;
	vt_result_init(&result);
	vt_str_init(&text);
	text.failed = true;
	assert_int_equal(vt_result_json(&result, NULL, &text, &err), -ENOMEM);
	assert_int_equal(err.step, VT_STEP_OUTPUT);
	assert_int_equal(err.num, ENOMEM);
	vt_str_done(&text);
	vt_result_done(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_design_s_example),
		cmocka_unit_test(ok_has_no_error),
		cmocka_unit_test(refused_has_no_isolation),
		cmocka_unit_test(a_new_result_is_lost),
		cmocka_unit_test(watched_holdings_state_their_slack),
		cmocka_unit_test(output_is_data),
		cmocka_unit_test(numbers_have_one_decimal),
		cmocka_unit_test(unreaped_is_said),
		cmocka_unit_test(uncleared_is_said),
		cmocka_unit_test(failed_text_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
