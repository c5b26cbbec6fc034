/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/utf8.h"

static void test_next(void **state)
{
	static const struct {
		const char *bytes;
		uint32_t code;
		size_t len;
		bool valid;
	} cases[] = {
		{ "a", 'a', 1, true },
		{ "\x7f", 0x7f, 1, true },
		{ "\xc2\x80", 0x80, 2, true },
		{ "\xe2\x80\xae", 0x202e, 3, true },
		{ "\xf4\x8f\xbf\xbf", 0x10ffff, 4, true },
		{ "\x80", 0, 1, false },     /* begins nothing */
		{ "\xc0\xaf", 0, 1, false }, /* too long for what it says */
		{ "\xe0\x80\xaf", 0, 1, false },
		{ "\xed\xa0\x80", 0, 1, false }, /* half of a pair */
		{ "\xf4\x90\x80\x80", 0, 1, false },
		{ "\xe2\x80", 0, 2, false }, /* cut */
		{ "\xf0\x9f\x98", 0, 3, false },
		{ "\xe2\x80x", 0, 2, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vt_utf8 next = vt_utf8_next(cases[i].bytes, strlen(cases[i].bytes));

		assert_int_equal(next.valid, cases[i].valid);
		assert_int_equal(next.len, cases[i].len);
		assert_int_equal(next.code, cases[i].code);
	}
}

static void shows(const char *bytes, const char *want)
{
	char out[VT_UTF8_SHOWN + 1];

	memset(out, '#', sizeof(out));
	size_t len = vt_utf8_show(out, bytes, vt_utf8_next(bytes, strlen(bytes)));

	assert_int_equal(len, strlen(want));
	assert_memory_equal(out, want, len);
	assert_int_equal(out[VT_UTF8_SHOWN], '#');
}

static void test_show(void **state)
{
	(void)state;
	shows("a", "a");
	shows("\\", "\\");
	shows("\xc3\xa9", "\xc3\xa9");
	shows("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80");
	shows("\n", "\\n");
	shows("\r", "\\r");
	shows("\t", "\\u0009");
	shows("\x1b", "\\u001b");
	shows("\x7f", "\\u007f");
	shows("\xc2\x9b", "\\u009b");
	shows("\xd8\x9c", "\\u061c");
	shows("\xe2\x80\xa8", "\\u2028");
	shows("\xe2\x80\xae", "\\u202e");
	shows("\xe2\x81\xa9", "\\u2069");
	shows("\xf3\xa0\x81\x81", "\\udb40\\udc41");
	shows("\xff", "\\xff");
	shows("\xf0\x9f\x98", "\\xf0\\x9f\\x98");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
