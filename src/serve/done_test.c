/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/done.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/frame.h"
#include "base/head.h"

static struct vt_outcome outcome_of(enum vt_status status)
{
	struct vt_outcome outcome = { .value = "[1]", .value_len = 3, .came_to_cell = true };

	vt_result_init(&outcome.result);
	outcome.result.verdict.status = status;
	(void)strcpy(outcome.result.verdict.type, "Type");
	(void)strcpy(outcome.result.verdict.message, "message");
	return outcome;
}

/* The head of what a client is told. */
static void describe(const struct vt_outcome *outcome, struct vt_str *text, struct vt_head *head)
{
	struct vt_str texts[2] = { { 0 } };
	struct vt_err err;

	vt_str_init(text);
	vt_done_describe(text, 7, outcome, texts);
	assert_int_equal(vt_head_end(text, &err), 0);
	assert_true(text->len <= VT_FRAME_HEAD_MAX);
	if (vt_head_parse(text->text, text->len, head, &err) < 0)
		fail_msg("%s", err.what);
}

static void test_ok(void **state)
{
	struct vt_outcome outcome = outcome_of(VT_STATUS_OK);
	struct vt_head head;
	struct vt_str text;

	(void)state;
	describe(&outcome, &text, &head);
	assert_string_equal(vt_head_text(&head, "is", NULL), "done");
	assert_string_equal(vt_head_text(&head, "status", NULL), "ok");
	assert_int_equal(vt_head_int(&head, "call", 0), 7);
	assert_int_equal(vt_head_int(&head, "value", 0), 3);
	assert_true(vt_head_flag(&head, "cell", false));
	assert_null(vt_head_find(&head, "error"));
	assert_null(vt_head_find(&head, "unreaped"));
	assert_null(vt_head_find(&head, "exit_code"));
	assert_null(vt_head_find(&head, "stdout"));
	vt_str_done(&text);
}

/* The supervisor's own words, where the tool has none. */
static void test_verdict(void **state)
{
	struct vt_outcome outcome = outcome_of(VT_STATUS_TIMEOUT);
	struct vt_head head;
	struct vt_str text;

	(void)state;
	outcome.came_to_cell = false;
	outcome.result.unreaped = true;
	describe(&outcome, &text, &head);
	assert_string_equal(vt_head_text(&head, "error_type", NULL), "Type");
	assert_string_equal(vt_head_text(&head, "error", NULL), "message");
	assert_null(vt_head_find(&head, "cell"));
	assert_true(vt_head_flag(&head, "unreaped", false));
	vt_str_done(&text);
}

/* Whatever a tool says, a head has room for it. */
static void test_own_words(void **state)
{
	static char type[513], words[100000];
	struct vt_outcome outcome = outcome_of(VT_STATUS_ERROR);
	struct vt_head head;
	struct vt_str text;
	size_t len;

	(void)state;
	memset(type, 1, 512);
	memset(words, 2, sizeof(words));
	outcome.error_type = type;
	outcome.error = words;
	outcome.error_len = sizeof(words);
	describe(&outcome, &text, &head);
	assert_string_equal(vt_head_text(&head, "error_type", NULL), type);
	assert_non_null(vt_head_text(&head, "error", &len));
	assert_int_equal(len, 8192);
	vt_str_done(&text);
	outcome.error = "";
	outcome.error_len = 0;
	describe(&outcome, &text, &head);
	assert_string_equal(vt_head_text(&head, "error", NULL), "");
	vt_str_done(&text);
}

/* Nothing here is looked into: the lengths alone count. */
static void test_too_much(void **state)
{
	const size_t room = VT_FRAME_MAX - VT_FRAME_HEAD_MAX;
	const size_t cases[][3] = { { room + 1, 0, 0 },
				    { 1, room, 0 },
				    { 1, 0, room },
				    { room / 2, room / 2, room / 2 },
				    { SIZE_MAX, SIZE_MAX, 2 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vt_outcome outcome = outcome_of(VT_STATUS_OK);
		char out = 'x', err = 'y';
		struct vt_str texts[2] = { { .text = &out, .len = cases[i][1] },
					   { .text = &err, .len = cases[i][2] } };

		outcome.value_len = cases[i][0];
		vt_done_bound(&outcome, texts);
		assert_int_equal(outcome.result.verdict.status, VT_STATUS_RESULT_LIMIT);
		assert_string_equal(outcome.result.verdict.type, "ResultLimit");
		assert_int_equal(outcome.value_len + texts[0].len + texts[1].len, 0);
	}
	struct vt_outcome outcome = outcome_of(VT_STATUS_OK);
	struct vt_str texts[2] = { { .len = room - 4 }, { .len = 1 } };

	vt_done_bound(&outcome, texts);
	assert_int_equal(outcome.result.verdict.status, VT_STATUS_OK);
	assert_int_equal(texts[0].len, room - 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ok),
		cmocka_unit_test(test_verdict),
		cmocka_unit_test(test_own_words),
		cmocka_unit_test(test_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
