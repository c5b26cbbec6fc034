/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_grows(void **state)
{
	struct vt_str str;

	(void)state;
	vt_str_init(&str);
	assert_string_equal(str.text, "");
	for (int i = 0; i < 1000; i++) {
		vt_str_add(&str, "ab");
		vt_str_addn(&str, "cde", 1);
		vt_str_addf(&str, "%03d", i);
	}
	assert_true(vt_str_ok(&str));
	assert_int_equal(str.len, 6000);
	assert_int_equal(strlen(str.text), 6000);
	assert_memory_equal(str.text + 5994, "abc999", 7);
	vt_str_done(&str);
	assert_string_equal(str.text, "");
	vt_str_done(&str);
}

static void test_keeps_nul_bytes(void **state)
{
	struct vt_str str;

	(void)state;
	vt_str_init(&str);
	vt_str_addn(&str, "a\0b", 3);
	vt_str_addn(&str, "", 0);
	assert_int_equal(str.len, 3);
	assert_memory_equal(str.text, "a\0b", 4);
	vt_str_done(&str);
}

static void test_wraps(void **state)
{
	const char *word = "123456789";
	struct vt_str text, str;

	(void)state;
	vt_str_init(&text);
	vt_str_init(&str);
	for (int i = 0; i < 20; i++)
		vt_str_addf(&text, "%s%s", i ? " " : "", word);
	vt_str_addf(&str, "%-20s", "name");
	vt_str_wrap(&str, text.text, 20, 4);
	/* Eight words end in column 99 with what is before them, and nine from column 4 in 93. */
	const char *second = strchr(str.text, '\n');

	assert_int_equal(second - str.text, 99);
	assert_memory_equal(second, "\n    1234", 9);
	const char *third = strchr(second + 1, '\n');

	assert_int_equal(third - second - 1, 93);
	assert_string_equal(third, "\n    123456789 123456789 123456789\n");
	vt_str_done(&str);
	vt_str_done(&text);
}

static void test_drops(void **state)
{
	struct vt_str str;

	(void)state;
	vt_str_init(&str);
	vt_str_drop(&str, 0);
	vt_str_add(&str, "abcde");
	vt_str_drop(&str, 2);
	vt_str_add(&str, "f");
	assert_string_equal(str.text, "cdef");
	vt_str_drop(&str, 4);
	assert_int_equal(str.len, 0);
	assert_string_equal(str.text, "");
	vt_str_done(&str);
}

static void test_clears(void **state)
{
	struct vt_str str;

	(void)state;
	vt_str_init(&str);
	vt_str_clear(&str);
	assert_string_equal(str.text, "");
	vt_str_add(&str, "before");
	vt_str_addn(&str, "x", SIZE_MAX / 2);
	const char *text = str.text;

	vt_str_clear(&str);
	assert_string_equal(str.text, "");
	assert_true(vt_str_ok(&str));
	vt_str_add(&str, "after");
	assert_string_equal(str.text, "after");
	assert_int_equal(str.len, 5);
	assert_ptr_equal(str.text, text);
	vt_str_done(&str);
}

/* Who writes a text begins no line by it, and steers no terminal. */
static void test_shows(void **state)
{
	struct vt_str str;

	(void)state;
	vt_str_init(&str);
	vt_str_show(&str, "a\nb\r\x1b[2J\xe2\x80\xae\xff\0\xc3\xa9", 15);
	assert_string_equal(str.text, "a\\nb\\r\\u001b[2J\\u202e\\xff\\u0000\xc3\xa9");
	str.len = 0;
	vt_str_wrap(&str, "one\ntwo\rthree  \x1b[m", 0, 4);
	assert_string_equal(str.text, "one\\ntwo\\rthree \\u001b[m\n");
	vt_str_done(&str);
}

/* A length that no memory holds fails before anything is copied, and stays failed. */
static void test_failure_is_sticky(void **state)
{
	struct vt_str str;

	(void)state;
	vt_str_init(&str);
	vt_str_add(&str, "kept");
	vt_str_addn(&str, "x", SIZE_MAX / 2);
	assert_false(vt_str_ok(&str));
	vt_str_add(&str, "more");
	vt_str_addf(&str, "%d", 5);
	assert_false(vt_str_ok(&str));
	assert_string_equal(str.text, "kept");
	vt_str_done(&str);
	assert_true(vt_str_ok(&str));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_keeps_nul_bytes),
		cmocka_unit_test(test_wraps),
		cmocka_unit_test(test_clears),
		cmocka_unit_test(test_drops),
		cmocka_unit_test(test_shows),
		cmocka_unit_test(test_failure_is_sticky),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
