/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_what_is_json(void **state)
{
	static const char *const texts[] = {
		"null",
		"true",
		"false",
		"0",
		"-0",
		"-0.5e+10",
		"1E5",
		"12345678901234567890123",
		"1e999",
		"\"\"",
		"\"\\u0000\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
		"\"\\ud83d\\ude00\"",
		"\"\xe2\x82\xac\x7f\"",
		"[]",
		" [ ] ",
		"{}",
		"\t{\r\n}\n",
		"[1,[2,{\"a\":[]}],\"]\"]",
		"{\"a\":1,\"a\":2}",
		"{ \"a\" : 1 , \"\" : { } }",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!vt_json_is_valid(texts[i], strlen(texts[i])))
			fail_msg("%s", texts[i]);
}

static void test_what_is_not(void **state)
{
	static const char *const texts[] = {
		" ",
		"nul",
		"nulll",
		"True",
		"01",
		"-",
		"+1",
		".5",
		"1.",
		"1e",
		"1e+",
		"0x1",
		"NaN",
		"Infinity",
		"\"",
		"\"\\\"",
		"\"\\",
		"\"\\x\"",
		"\"\\u12\"",
		"\"\\u12g4\"",
		"\"\\ud800\"",
		"\"\\udc00\"",
		"\"\\ud800\\n\"",
		"\"\\ud800\\ud800\"",
		"\"a\nb\"",
		"\"\xff\"",
		"\"\xed\xa0\x80\"",
		"'a'",
		"[",
		"[1",
		"[1,",
		"[1,]",
		"[,]",
		"[1 2]",
		"[1}",
		"]",
		"{",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{a:1}",
		"{1:1}",
		"{\"a\" 1}",
		"1 2",
		"[] x",
		"// x\n1",
		"\xef\xbb\xbf{}",
		"\v1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (vt_json_is_valid(texts[i], strlen(texts[i])))
			fail_msg("%s", texts[i]);
	assert_false(vt_json_is_valid(NULL, 0));
	assert_false(vt_json_is_valid("1\0", 2));
	assert_false(vt_json_is_valid("\"\\\0\"", 4));
	/* No byte past the end is looked at, where it would make a whole of it. */
	assert_false(vt_json_is_valid("\"\\u12345\"", 5));
	assert_false(vt_json_is_valid("true", 3));
	assert_false(vt_json_is_valid("[1]", 2));
}

/* Strings are looked at several bytes at a time: each byte counts, wherever it stands. */
static void test_each_byte_in_each_place(void **state)
{
	enum { SIZE = 2 + 64 + 8 + 12, LAST = SIZE - 4 };

	(void)state;
	for (int byte = 0; byte < 256; byte++) {
		bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';

		for (size_t place = 1; place < SIZE - 1; place++) {
			char text[SIZE];

			memset(text, 'x', sizeof(text));
			text[0] = text[sizeof(text) - 1] = '"';
			text[place] = (char)byte;
			/* What follows the end of the string, and an escape, are wrong here too. */
			if (vt_json_is_valid(text, sizeof(text)) != plain)
				fail_msg("byte %d at %zu", byte, place);
			memcpy(text + LAST, "\xe2\x82\xac", 3);
			if (place < LAST && vt_json_is_valid(text, sizeof(text)) != plain)
				fail_msg("byte %d at %zu, beside others", byte, place);
		}
	}
}

static void test_depth_is_bounded(void **state)
{
	size_t most = VT_JSON_SCAN_DEPTH;
	char text[2 * VT_JSON_SCAN_DEPTH + 2];

	(void)state;
	memset(text, '[', most + 1);
	memset(text + most + 1, ']', most + 1);
	assert_false(vt_json_is_valid(text, 2 * most + 2));
	assert_true(vt_json_is_valid(text + 1, 2 * most));
}

static void test_digits_are_bounded(void **state)
{
	size_t most = VT_JSON_SCAN_DIGITS;
	char text[VT_JSON_SCAN_DIGITS + 8];

	(void)state;
	memset(text, '9', sizeof(text));
	assert_false(vt_json_is_valid(text, most + 1));
	assert_true(vt_json_is_valid(text, most));
	text[0] = '-';
	assert_true(vt_json_is_valid(text, most + 1));
	text[0] = '0';
	text[1] = '.';
	assert_true(vt_json_is_valid(text, most + 2));
	assert_false(vt_json_is_valid(text, most + 3));
}

static void test_compact(void **state)
{
	static const char text[] =
		" { \"a b\" :\t[ 1 ,\n2.50 , \"\\\" \\\\\" , \" \" ] ,\r\n\"c\":{ } } ";
	struct vt_str str;

	(void)state;
	vt_str_init(&str);
	vt_json_add_compact(&str, text, strlen(text));
	assert_string_equal(str.text, "{\"a b\":[1,2.50,\"\\\" \\\\\",\" \"],\"c\":{}}");
	assert_true(vt_json_is_valid(str.text, str.len));
	vt_str_done(&str);
}

/* Which line a path leads to, in a text where each line is a place. */
static void test_places(void **state)
{
	static const char text[] =
		"\n{\"a\": 1,\n \"b\": [{},\n  {\"c d\":\n   [\"]}\", 2,\n 3]}],\n"
		" \"limits\" : {\n\"wall\": null }\n}";
	static const struct {
		const char *path;
		size_t line;
	} cases[] = {
		{ "", 2 },
		{ "a", 2 },
		{ "b", 3 },
		{ "b[0]", 3 },
		{ "b[1]", 4 },
		{ "b[1].x", 4 },
		{ "b[1][\"c d\"]", 4 },
		{ "b[1][\"c d\"][2]", 6 },
		{ "b[7]", 3 },
		{ "limits", 7 },
		{ "limits.wall", 8 },
		{ "limits.wall.no", 8 },
		{ "no", 2 },
		{ "[0]", 2 },
		{ "limits[0]", 7 },
		{ "b.c", 3 },
		{ "b[", 3 },
		{ "b[\"", 3 },
		{ "b[1][\"c", 4 },
		{ "..", 2 },
		{ "b[1x]", 3 },
		{ "b[]", 3 },
	};
	struct vt_json_span whole = vt_json_span(text, strlen(text));

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *at = vt_json_follow(whole, cases[i].path, strlen(cases[i].path));

		if (vt_json_line(text, at) != cases[i].line)
			fail_msg("%s: line %zu, want %zu", cases[i].path, vt_json_line(text, at),
				 cases[i].line);
	}
}

static void test_walk(void **state)
{
	static const char *const empty[] = { "",  "{}", "[ ]", "1",  "\"{\"",
					     "[", "{",  ",",   "[,", "{\"a\"}" };
	struct vt_json_span rest = vt_json_span(" [1, {\"a\": 2} ,[ ] ] ", 22), key, value;
	int count = 0;

	(void)state;
	for (; vt_json_next(&rest, &key, &value); count++) {
		static const char *const want[] = { "1", "{\"a\": 2}", "[ ]" };

		assert_true(count < 3 && key.at == key.end);
		assert_int_equal(value.end - value.at, strlen(want[count]));
		assert_memory_equal(value.at, want[count], strlen(want[count]));
	}
	assert_int_equal(count, 3);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		rest = vt_json_span(empty[i], strlen(empty[i]));
		if (vt_json_next(&rest, &key, &value))
			fail_msg("'%s' has items", empty[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_json),
		cmocka_unit_test(test_what_is_not),
		cmocka_unit_test(test_each_byte_in_each_place),
		cmocka_unit_test(test_depth_is_bounded),
		cmocka_unit_test(test_digits_are_bounded),
		cmocka_unit_test(test_compact),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
