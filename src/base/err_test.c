/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_fail_fills(void **state)
{
	struct vt_err err = { 0 };

	(void)state;
	assert_int_equal(vt_fail(&err, VT_STEP_MOUNTS, ENOENT, "bind '%s'", "/srv"), -ENOENT);
	assert_int_equal(err.step, VT_STEP_MOUNTS);
	assert_int_equal(err.num, ENOENT);
	assert_string_equal(err.what, "bind '/srv'");
}

static void test_an_error_is_never_success(void **state)
{
	struct vt_err err;

	(void)state;
	assert_int_equal(vt_fail(&err, VT_STEP_EXEC, 0, "x"), -EIO);
	assert_int_equal(vt_fail(&err, VT_STEP_EXEC, -ENOENT, "x"), -EIO);
	assert_int_equal(vt_fail_at(&err, VT_STEP_EXEC, 0, "x", NULL), -EIO);
	assert_int_equal(err.num, EIO);
}

/* At each length around the end of what[]: whole where it fits, marked where it is cut. */
static void test_long_texts_are_marked(void **state)
{
	struct vt_err err, at;
	char text[600];
	size_t room = sizeof(err.what) - 1;

	(void)state;
	for (size_t len = room - 5; len < room + 5; len++) {
		memset(text, 'x', len);
		text[len] = '\0';
		vt_fail(&err, VT_STEP_EXEC, EIO, "%s", text);
		vt_fail_at(&at, VT_STEP_EXEC, EIO, text, NULL);
		assert_string_equal(err.what, at.what);
		assert_int_equal(strlen(err.what), len < room ? len : room);
		assert_int_equal(strcmp(err.what + strlen(err.what) - 3, "...") == 0, len > room);
	}
}

static void test_fail_at_quotes_its_subject(void **state)
{
	struct vt_err err;
	char subject[600];

	(void)state;
	assert_int_equal(vt_fail_at(&err, VT_STEP_CAPS, EPERM, "drop", "cap_x"), -EPERM);
	assert_string_equal(err.what, "drop 'cap_x'");
	memset(subject, 's', sizeof(subject) - 1);
	subject[sizeof(subject) - 1] = '\0';
	vt_fail_at(&err, VT_STEP_CAPS, EPERM, "drop", subject);
	assert_int_equal(strlen(err.what), sizeof(err.what) - 1);
	assert_string_equal(err.what + sizeof(err.what) - 4, "...");
}

static void test_every_step_has_a_name(void **state)
{
	(void)state;
	for (int step = 0; step < VT_STEP_COUNT; step++) {
		const char *name = vt_step_name(step);

		assert_non_null(name);
		assert_string_not_equal(name, "");
		assert_string_not_equal(name, "unknown");
	}
	assert_string_equal(vt_step_name(VT_STEP_COUNT), "unknown");
	assert_string_equal(vt_step_name((enum vt_step) - 1), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fail_fills),
		cmocka_unit_test(test_an_error_is_never_success),
		cmocka_unit_test(test_long_texts_are_marked),
		cmocka_unit_test(test_fail_at_quotes_its_subject),
		cmocka_unit_test(test_every_step_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
