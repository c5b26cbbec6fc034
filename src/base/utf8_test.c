/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/utf8.h"

#define SEQUENCES ((size_t)0x110000 - 0x800)

/* Every character there is comes back as it went, and its length is that of its range. */
static void test_every_character(void **state)
{
	size_t seen = 0;

	(void)state;
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		char bytes[4];

		if (code >= 0xd800 && code <= 0xdfff)
			continue;
		size_t len = vt_utf8_put(bytes, code);
		struct vt_utf8 next = vt_utf8_next(bytes, len);

		assert_true(next.valid);
		assert_int_equal(next.code, code);
		assert_int_equal(next.len, len);
		assert_int_equal(len, 1 + (code > 0x7f) + (code > 0x7ff) + (code > 0xffff));
		while (--len > 0) {
			next = vt_utf8_next(bytes, len);
			assert_true(next.cut && !next.valid && next.len == len);
		}
		seen++;
	}
	assert_int_equal(seen, SEQUENCES);
}

/*
 * Of all beginnings of three bytes, as many are valid as there are characters: nothing is read
 * twice, in an overlong form or as a surrogate.
 */
static void test_nothing_else(void **state)
{
	size_t valid[5] = { 0 };

	(void)state;
	for (uint32_t value = 0; value < 1 << 24; value++) {
		char bytes[4] = { (char)(value >> 16), (char)(value >> 8), (char)value, '\x80' };
		struct vt_utf8 next = vt_utf8_next(bytes, 4);

		assert_in_range(next.len, 1, 4);
		if (next.valid)
			valid[next.len]++;
	}
	assert_int_equal(valid[1], 0x80 << 16);
	assert_int_equal(valid[2], (0x800 - 0x80) << 8);
	assert_int_equal(valid[3], 0x10000 - 0x800 - 0x800);
	/* The fourth byte is one of the 64 that end them. */
	assert_int_equal(valid[4], 0x100000 / 64);
}

/* The examples of the Unicode standard, chapter 3.9: what one U+FFFD stands for. */
static void test_maximal_subparts(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool cut;
	} cases[] = {
		{ "\x80", 1, false },        { "\xc0\xaf", 1, false },
		{ "\xe0\x80", 1, false },    { "\xed\xa0\x80", 1, false },
		{ "\xf4\x91", 1, false },    { "\xff", 1, false },
		{ "\xc2", 1, true },         { "\xe2\x82", 2, true },
		{ "\xf0\x9f\x98", 3, true }, { "\xf1\x80\xe1", 2, false },
		{ "\xe1\x80q", 2, false },   { "\xf5\x80", 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vt_utf8 next = vt_utf8_next(cases[i].bytes, strlen(cases[i].bytes));

		assert_false(next.valid);
		assert_int_equal(next.len, cases[i].len);
		assert_int_equal(next.cut, cases[i].cut);
	}
	assert_int_equal(vt_utf8_next(VT_UTF8_REPLACEMENT, 3).code, 0xfffd);
}

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

static void test_cut_keeps_characters_whole(void **state)
{
	(void)state;
	const char *text = "a\xc3\xa9\xf0\x9f\x98\x80z"; /* 1, 2, 4 and 1 bytes */

	assert_int_equal(vt_utf8_cut(text, 8, 8), 8);
	assert_int_equal(vt_utf8_cut(text, 8, 100), 8);
	assert_int_equal(vt_utf8_cut(text, 8, 7), 7);
	for (size_t max = 3; max < 7; max++)
		assert_int_equal(vt_utf8_cut(text, 8, max), 3);
	assert_int_equal(vt_utf8_cut(text, 8, 2), 1);
	assert_int_equal(vt_utf8_cut(text, 8, 0), 0);
	assert_int_equal(vt_utf8_cut("\x80\x80\x80\x80\x80\x80", 6, 5), 5);
	assert_int_equal(vt_utf8_cut(NULL, 0, 5), 0);
}

static void check_shown(const char *bytes, size_t size, const char *shown)
{
	char buf[64];

	memset(buf, '#', sizeof(buf));
	assert_string_equal(vt_utf8_show_text(buf, size, bytes, strlen(bytes)), shown);
	assert_int_equal(buf[size], '#');
}

static void test_show_escapes_and_cuts(void **state)
{
	(void)state;
	check_shown("/srv/d\xc3\xa9j\xc3\xa0", 32, "/srv/d\xc3\xa9j\xc3\xa0");
	check_shown("a\nb\tc\x7f", 32, "a\\nb\\u0009c\\u007f");
	check_shown("\x1b[31m", 32, "\\u001b[31m");
	check_shown("\xc2\x9b\xe2\x80\xae\xff\xe2\x82", 32, "\\u009b\\u202e\\xff\\xe2\\x82");
	check_shown("123456789012345", 16, "123456789012345");
	check_shown("1234567890123456", 16, "123456789012...");
	check_shown("12345678901\n\n\n", 16, "12345678901...");
	check_shown("\xf1\x80\x80\xf1\x80\x80", 16, "\\xf1\\x80\\x80...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_keeps_characters_whole),
		cmocka_unit_test(test_every_character),
		cmocka_unit_test(test_nothing_else),
		cmocka_unit_test(test_maximal_subparts),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_show),
		cmocka_unit_test(test_show_escapes_and_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
