/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/selftest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A report in which every act was denied, but for those that a test changes. */
static int begin(void **state)
{
	struct vt_selftest *test = calloc(1, sizeof(*test));

	assert_non_null(test);
	test->tried = calloc(vt_try_count, sizeof(*test->tried));
	assert_non_null(test->tried);
	test->caller = "root";
	for (size_t i = 0; i < vt_try_count; i++)
		test->tried[i] = (struct vt_tried){ .row = &vt_tries[i],
						    .door = "a door",
						    .sentence = "a sentence",
						    .outcome = VT_TRIAL_DENIED };
	*state = test;
	return 0;
}

static int end(void **state)
{
	struct vt_selftest *test = *state;

	free(test->tried);
	free(test);
	return 0;
}

static void set(struct vt_selftest *test, const char *act, enum vt_trial_outcome outcome,
		const char *why)
{
	for (size_t i = 0; i < vt_try_count; i++) {
		if (strcmp(vt_tries[i].act, act) != 0)
			continue;
		test->tried[i].outcome = outcome;
		(void)snprintf(test->tried[i].why, sizeof(test->tried[i].why), "%s", why);
		return;
	}
	fail_msg("no act %s", act);
}

/* The lines below a heading, up to the next empty one. */
static const char *section(const struct vt_str *text, const char *heading)
{
	static char lines[4096];
	char line[128];

	(void)snprintf(line, sizeof(line), "\n\n%s\n", heading);
	const char *at = strstr(text->text, line);

	*lines = '\0';
	if (!at)
		return NULL;
	at += strlen(line);
	const char *over = strstr(at, "\n\n");

	assert_non_null(over);
	(void)snprintf(lines, sizeof(lines), "%.*s", (int)(over - at), at);
	return lines;
}

static void tells_late_from_not_at_all(void **state)
{
	struct vt_selftest *test = *state;
	struct vt_str text;

	set(test, "take_heap", VT_TRIAL_LATE, "by 9 MB");
	vt_str_init(&text);
	vt_selftest_text(test, &text);
	assert_true(vt_str_ok(&text));
	assert_null(section(&text, "Not denied:"));
	assert_string_equal(section(&text, "Stopped late:"),
			    "memory      take_heap (a door): by 9 MB");
	vt_str_done(&text);

	set(test, "take_together", VT_TRIAL_REACHED, "");
	vt_str_init(&text);
	vt_selftest_text(test, &text);
	assert_string_equal(section(&text, "Not denied:"),
			    "memory      take_together (a door): a sentence");
	assert_string_equal(section(&text, "Stopped late:"),
			    "memory      take_heap (a door): by 9 MB");
	vt_str_done(&text);
}

static void says_one_cause_once(void **state)
{
	struct vt_selftest *test = *state;
	struct vt_str text;

	set(test, "udp4", VT_TRIAL_UNCLEAR, "it ended");
	set(test, "trace", VT_TRIAL_UNCLEAR, "it ended");
	set(test, "tcp4", VT_TRIAL_UNCLEAR, "it went");
	set(test, "tcp6", VT_TRIAL_UNJUDGED, "it ended");
	vt_str_init(&text);
	vt_selftest_text(test, &text);
	assert_true(vt_str_ok(&text));
	assert_string_equal(section(&text, "Unclear, though it works outside:"),
			    "several     it ended: trace, udp4\n"
			    "network     tcp4 (a door): it went");
	assert_string_equal(section(&text, "Not judged here:"),
			    "network     tcp6 (a door): it ended");
	vt_str_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tells_late_from_not_at_all, begin, end),
		cmocka_unit_test_setup_teardown(says_one_cause_once, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
