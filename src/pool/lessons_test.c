/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/lessons.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *argv[] = { (char *)"python", (char *)"setup", NULL };

/* What a zygote is started with, behind the words above. */
static const char *told(struct vt_lessons *lessons, unsigned zygote)
{
	static char text[8192];
	char **words = vt_lessons_words(lessons, argv, zygote);

	assert_non_null(words);
	assert_ptr_equal(words[0], argv[0]);
	assert_ptr_equal(words[1], argv[1]);
	*text = '\0';
	for (size_t i = 2; words[i]; i++)
		strcat(strcat(text, words[i]), " ");
	free(words);
	return text;
}

static void test_once_is_enough(void **state)
{
	struct vt_lessons lessons = { 0 };

	(void)state;
	assert_int_equal(vt_lessons_want(&lessons, "json"), 1);
	assert_int_equal(vt_lessons_want(&lessons, "json"), 0);
	assert_string_equal(vt_lessons_next(&lessons)->name, "json");
	vt_lessons_next(&lessons)->state = VT_LESSON_LEARNED;
	assert_null(vt_lessons_next(&lessons));
	assert_int_equal(vt_lessons_want(&lessons, "json"), 0);
	vt_lessons_done(&lessons);
}

static void test_what_failed_may_be_tried_again(void **state)
{
	struct vt_lessons lessons = { 0 };

	(void)state;
	assert_int_equal(vt_lessons_want(&lessons, "late"), 1);
	vt_lessons_next(&lessons)->state = VT_LESSON_FAILED;
	assert_string_equal(told(&lessons, 0), "");
	assert_int_equal(vt_lessons_want(&lessons, "late"), 1);
	assert_string_equal(told(&lessons, 0), "+late ");
	vt_lessons_done(&lessons);
}

static void test_bounds(void **state)
{
	struct vt_lessons lessons = { 0 };
	char name[VT_MODULE_MAX + 2];

	(void)state;
	memset(name, 'm', sizeof(name));
	name[VT_MODULE_MAX + 1] = '\0';
	assert_int_equal(vt_lessons_want(&lessons, name), -EINVAL);
	assert_int_equal(vt_lessons_want(&lessons, ""), -EINVAL);
	assert_false(vt_lessons_take(&lessons, name) || vt_lessons_take(&lessons, ""));
	assert_true(vt_lessons_take(&lessons, name + 1));
	assert_int_equal(vt_lessons_want(&lessons, name + 1), 1);
	for (int i = 1; i < VT_LESSONS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "m%d", i);
		assert_int_equal(vt_lessons_want(&lessons, name), 1);
	}
	assert_int_equal(vt_lessons_want(&lessons, "one.more"), -E2BIG);
	assert_false(vt_lessons_take(&lessons, "one.more"));
	assert_int_equal(vt_lessons_want(&lessons, "m7"), 0);
	assert_true(vt_lessons_take(&lessons, "m7"));
	for (int i = 1; i <= VT_LESSONS_LEFT_OUT_MAX; i++) {
		(void)snprintf(name, sizeof(name), "m%d", i);
		assert_int_equal(vt_lessons_leave_out(&lessons, name), 0);
	}
	assert_int_equal(vt_lessons_leave_out(&lessons, "m100"), -E2BIG);
	vt_lessons_done(&lessons);
}

/* One that was started before something was learned has to learn that when its turn has come. */
static void test_zygotes_take_turns(void **state)
{
	struct vt_lessons lessons = { 0 };

	(void)state;
	assert_int_equal(vt_lessons_turn_to(&lessons, 0), 0);
	assert_int_equal(vt_lessons_want(&lessons, "first"), 1);
	assert_int_equal(vt_lessons_want(&lessons, "bad"), 1);
	assert_int_equal(vt_lessons_leave_out(&lessons, "bad"), 0);
	assert_int_equal(vt_lessons_leave_out(&lessons, "bad"), -EALREADY);
	assert_int_equal(vt_lessons_want(&lessons, "bad"), 0);
	assert_string_equal(told(&lessons, 1), "+first -bad ");
	assert_int_equal(vt_lessons_want(&lessons, "second"), 1);
	for (size_t i = 0; i < lessons.count; i++)
		if (lessons.items[i].state == VT_LESSON_WANTED)
			lessons.items[i].state = VT_LESSON_LEARNED;
	assert_int_equal(vt_lessons_turn_to(&lessons, 1), 0);
	assert_string_equal(vt_lessons_next(&lessons)->name, "second");
	assert_string_equal(told(&lessons, 0), "+first -bad +second ");
	assert_int_equal(vt_lessons_turn_to(&lessons, 0), 1);
	assert_null(vt_lessons_next(&lessons));
	vt_lessons_done(&lessons);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once_is_enough),
		cmocka_unit_test(test_what_failed_may_be_tried_again),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_zygotes_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
