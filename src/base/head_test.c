/* SPDX-License-Identifier: Apache-2.0 */
#include "base/head.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

/* A head in a block of its exact size, so that a sanitizer sees a step beyond it. */
struct reading {
	char *text;
	int status;
	struct vt_head head;
	struct vt_err err;
};

static void read_bytes(struct reading *reading, const char *text, size_t len)
{
	reading->text = malloc(len ? len : 1);
	assert_non_null(reading->text);
	memcpy(reading->text, text, len);
	reading->err = (struct vt_err){ 0 };
	reading->status = vt_head_parse(reading->text, len, &reading->head, &reading->err);
	if (reading->status < 0) {
		assert_int_equal(reading->status, -EBADMSG);
		assert_int_equal(reading->err.num, EBADMSG);
		assert_int_equal(reading->err.step, VT_STEP_WIRE);
		assert_int_equal(reading->head.count, 0);
	}
}

static void read_good(struct reading *reading, const char *text)
{
	read_bytes(reading, text, strlen(text));
	if (reading->status < 0)
		fail_msg("%s: %s", text, reading->err.what);
}

static void test_members(void **state)
{
	struct reading reading;
	struct vt_head *head = &reading.head;
	size_t len = 0;

	(void)state;
	read_good(&reading, " {\"t\" : \"call\",\"id\":12345,\r\n\t\"share\":-2.5e-1, \"on\":true,"
			    "\"off\":false,\"none\":null,\"\":\"\"} \n");
	assert_int_equal(head->count, 7);
	assert_string_equal(vt_head_text(head, "t", &len), "call");
	assert_int_equal(len, 4);
	assert_int_equal(vt_head_int(head, "id", -1), 12345);
	assert_int_equal(vt_head_find(head, "share")->type, VT_HEAD_REAL);
	assert_true(vt_head_flag(head, "on", false));
	assert_false(vt_head_flag(head, "off", true));
	assert_int_equal(vt_head_find(head, "none")->type, VT_HEAD_NULL);
	assert_string_equal(vt_head_text(head, "", NULL), "");
	assert_null(vt_head_find(head, "i"));
	assert_null(vt_head_find(head, "idx"));
	free(reading.text);
	read_good(&reading, "{ }");
	assert_int_equal(head->count, 0);
	assert_null(vt_head_text(head, "t", &len));
	free(reading.text);
}

/* What is not there, and what is something else. */
static void test_other_values(void **state)
{
	struct reading reading;
	struct vt_head *head = &reading.head;
	size_t len = 7;

	(void)state;
	read_good(&reading, "{\"text\":\"5\",\"real\":5.0,\"whole\":5,\"flag\":false,\"none\":null,"
			    "\"huge\":9223372036854775808,\"over\":-1e999}");
	assert_int_equal(vt_head_int(head, "gone", -3), -3);
	assert_int_equal(vt_head_int(head, "none", -3), -3);
	assert_int_equal(vt_head_int(head, "text", -3), -3);
	assert_int_equal(vt_head_int(head, "real", -3), -3);
	assert_int_equal(vt_head_int(head, "huge", -3), -3);
	assert_int_equal(vt_head_int(head, "over", -3), -3);
	assert_int_equal(vt_head_int(head, "whole", -3), 5);
	assert_true(vt_head_flag(head, "whole", true));
	assert_false(vt_head_flag(head, "flag", true));
	assert_null(vt_head_text(head, "whole", &len));
	assert_null(vt_head_text(head, "real", &len));
	assert_null(vt_head_text(head, "flag", &len));
	assert_int_equal(len, 7);
	free(reading.text);
}

static void test_bad_texts_say_where(void **state)
{
	static const struct {
		const char *text, *what;
	} cases[] = {
		{ "", "byte 0: the text ends too early" },
		{ "[]", "byte 0: a '{' is missing" },
		{ "{", "byte 1: the text ends too early" },
		{ "{,", "byte 1: a name is missing" },
		{ "{\"a\":1,}", "byte 7: a name is missing" },
		{ "{a:1}", "byte 1: a name is missing" },
		{ "{\"a\" 1}", "byte 5: a ':' is missing" },
		{ "{\"a\":}", "byte 5: a value is missing" },
		{ "{\"a\":nul}", "byte 5: a value is missing" },
		{ "{\"a\":True}", "byte 5: a value is missing" },
		{ "{\"a\":NaN}", "byte 5: a value is missing" },
		{ "{\"a\":truex}", "byte 9: a ',' or a '}' is missing" },
		{ "{\"a\":1 \"b\":2}", "byte 7: a ',' or a '}' is missing" },
		{ "{\"a\":{}}", "byte 5: nothing is nested in a head" },
		{ "{\"a\":[1]}", "byte 5: nothing is nested in a head" },
		{ "{\"a\":1}x", "byte 7: there is more text after the end of the object" },
		{ "{\"a\":1}{", "byte 7: there is more text after the end of the object" },
		{ "{\"a\":1,\"b\":2,\"a\":3}", "byte 13: this name is there twice" },
		{ "{\"a\":1,\"\\u0061\":3}", "byte 7: this name is there twice" },
		{ "{\"a\":-}", "byte 6: a digit is missing" },
		{ "{\"a\":1.}", "byte 7: a digit is missing" },
		{ "{\"a\":1e+}", "byte 8: a digit is missing" },
		{ "{\"a\":01}", "byte 6: a ',' or a '}' is missing" },
		{ "{\"a\":0x1}", "byte 6: a ',' or a '}' is missing" },
		{ "{\"a\":.5}", "byte 5: a value is missing" },
		{ "{\"a\":+5}", "byte 5: a value is missing" },
		{ "{\"a\":\"b}", "byte 8: the text ends too early" },
		{ "{\"a\":\"b\n\"}", "byte 7: a control character in a text" },
		{ "{\"a\":\"\\x\"}", "byte 7: no such escape" },
		{ "{\"a\":\"\\", "byte 7: the text ends too early" },
		{ "{\"a\":\"\\u00g0\"}",
		  "byte 10: \\u is not followed by four hexadecimal digits" },
		{ "{\"a\":\"\\u0000\"}", "byte 6: the escape \\u0000 is not allowed" },
		{ "{\"\\u0000\":1}", "byte 2: the escape \\u0000 is not allowed" },
		{ "{\"a\":\"\\ud800\"}", "byte 6: half of a surrogate pair" },
		{ "{\"a\":\"\\ud800\\n\"}", "byte 6: half of a surrogate pair" },
		{ "{\"a\":\"\\ud800\\ud800\"}", "byte 6: half of a surrogate pair" },
		{ "{\"a\":\"\\udc00\"}", "byte 6: half of a surrogate pair" },
		{ "{\"a\":\"\x80\"}", "byte 6: this is not UTF-8" },
		{ "{\"a\":\"\xc0\xaf\"}", "byte 6: this is not UTF-8" },
		{ "{\"a\":\"\xed\xa0\x80\"}", "byte 6: this is not UTF-8" },
		{ "{\"a\":\"\xf4\x90\x80\x80\"}", "byte 6: this is not UTF-8" },
		{ "{\"a\":\"\xe2\x82\"}", "byte 6: this is not UTF-8" },
		{ "{\xff", "byte 1: a name is missing" },
	};
	char what[160];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reading reading;

		read_bytes(&reading, cases[i].text, strlen(cases[i].text));
		snprintf(what, sizeof(what), "the head of a message, %s", cases[i].what);
		assert_string_equal(reading.err.what, what);
		free(reading.text);
	}
}

static void test_nul_bytes(void **state)
{
	static const char inside[] = "{\"a\":\"b\0c\"}", escaped[] = "{\"a\":\"\\\0\"}";
	struct reading reading;

	(void)state;
	read_bytes(&reading, inside, sizeof(inside) - 1);
	assert_non_null(strstr(reading.err.what, "byte 7: a control character in a text"));
	free(reading.text);
	read_bytes(&reading, escaped, sizeof(escaped) - 1);
	assert_non_null(strstr(reading.err.what, "byte 7: no such escape"));
	free(reading.text);
	read_bytes(&reading, "{}", 3);
	assert_non_null(strstr(reading.err.what, "byte 2: there is more text"));
	free(reading.text);
}

/* Every beginning of a good text is a bad one, and is not read beyond its end. */
static void test_every_beginning_is_refused(void **state)
{
	static const char text[] = "{\"a\\n\":\"\\ud83d\\ude00\xf0\x9f\x98\x80\",\"b\":-1.5e+3,"
				   "\"c\":null,\"d\":false,\"e\":12}";
	struct reading reading;

	(void)state;
	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		read_bytes(&reading, text, len);
		assert_int_equal(reading.status, -EBADMSG);
		free(reading.text);
	}
	read_good(&reading, text);
	assert_string_equal(vt_head_text(&reading.head, "a\n", NULL),
			    "\xf0\x9f\x98\x80\xf0\x9f\x98\x80");
	free(reading.text);
}

static void test_escapes(void **state)
{
	struct reading reading;

	(void)state;
	read_good(&reading, "{\"\\u00e9\\/\":\"<\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0001\\u007F\\u07ff"
			    "\\u0800\\uFFFF\\uD800\\uDC00\\udbff\\udfff>\xc3\xa9!\"}");
	assert_string_equal(vt_head_text(&reading.head, "\xc3\xa9/", NULL),
			    "<\"\\/\b\f\n\r\t\x01\x7f\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"
			    "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf>\xc3\xa9!");
	free(reading.text);
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		enum vt_head_type type;
		int64_t whole;
	} cases[] = {
		{ "0", VT_HEAD_INT, 0 },
		{ "-0", VT_HEAD_INT, 0 },
		{ "-17", VT_HEAD_INT, -17 },
		{ "9223372036854775807", VT_HEAD_INT, INT64_MAX },
		{ "-9223372036854775808", VT_HEAD_INT, INT64_MIN },
		{ "9223372036854775808", VT_HEAD_REAL, 0 },
		{ "-9223372036854775809", VT_HEAD_REAL, 0 },
		{ "100000000000000000000000000", VT_HEAD_REAL, 0 },
		{ "0.0", VT_HEAD_REAL, 0 },
		{ "1e3", VT_HEAD_REAL, 0 },
		{ "1E+3", VT_HEAD_REAL, 0 },
		{ "25e-1", VT_HEAD_REAL, 0 },
		{ "0e0", VT_HEAD_REAL, 0 },
		{ "-12.375", VT_HEAD_REAL, 0 },
		{ "0.1", VT_HEAD_REAL, 0 },
		{ "5e-324", VT_HEAD_REAL, 0 },
		{ "1e-999", VT_HEAD_REAL, 0 },
		{ "1.7976931348623157e308", VT_HEAD_REAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reading reading;
		char text[64];

		snprintf(text, sizeof(text), "{\"n\":%s}", cases[i].text);
		read_good(&reading, text);
		assert_int_equal(vt_head_find(&reading.head, "n")->type, cases[i].type);
		assert_int_equal(vt_head_int(&reading.head, "n", 0), cases[i].whole);
		free(reading.text);
	}
}

static void test_how_many_members(void **state)
{
	struct reading reading;
	struct vt_str str;

	(void)state;
	vt_str_init(&str);
	vt_head_begin(&str);
	for (int i = 0; i < VT_HEAD_MEMBERS + 1; i++) {
		char name[16];

		snprintf(name, sizeof(name), "m%d", i);
		vt_head_add_int(&str, name, i);
		if (i < VT_HEAD_MEMBERS - 1)
			continue;
		assert_int_equal(vt_head_end(&str, &reading.err), 0);
		read_bytes(&reading, str.text, str.len);
		assert_int_equal(reading.status, i < VT_HEAD_MEMBERS ? 0 : -EBADMSG);
		if (i < VT_HEAD_MEMBERS)
			assert_int_equal(vt_head_int(&reading.head, name, -1), i);
		else
			assert_non_null(strstr(reading.err.what, "too many members"));
		free(reading.text);
		str.len--;
	}
	vt_str_done(&str);
}

static void test_writer(void **state)
{
	struct vt_err err;
	struct vt_str str;

	(void)state;
	vt_str_init(&str);
	vt_head_begin(&str);
	assert_int_equal(vt_head_end(&str, &err), 0);
	assert_string_equal(str.text, "{}");
	vt_head_begin(&str);
	vt_head_add_text(&str, "t", "a\"\\/\b\t\n\v\f\r\x1f\x7f\xc3\xa9{", 15);
	vt_head_add_text(&str, "bad", "<\0\xff\xe2\x82>", 6);
	vt_head_add_text(&str, "none", NULL, 0);
	vt_head_add_text(&str, "\n", "", 0);
	vt_head_add_int(&str, "least", INT64_MIN);
	vt_head_add_int(&str, "most", INT64_MAX);
	vt_head_add_int(&str, "zero", 0);
	vt_head_add_flag(&str, "on", true);
	vt_head_add_flag(&str, "off", false);
	assert_int_equal(vt_head_end(&str, &err), 0);
	assert_string_equal(
		str.text, "{\"t\":\"a\\\"\\\\/\\b\\t\\n\\u000b\\f\\r\\u001f\x7f\xc3\xa9{\","
			  "\"bad\":\"<" VT_UTF8_REPLACEMENT VT_UTF8_REPLACEMENT VT_UTF8_REPLACEMENT
			  ">\",\"none\":null,"
			  "\"\\n\":\"\",\"least\":-9223372036854775808,"
			  "\"most\":9223372036854775807,\"zero\":0,\"on\":true,\"off\":false}");
	vt_str_addn(&str, "x", SIZE_MAX / 2);
	assert_int_equal(vt_head_end(&str, &err), -ENOMEM);
	vt_str_done(&str);
}

/* A text is looked at in words: each of its bytes may be the odd one, beside any others. */
static void test_places(void **state)
{
	static const char kinds[] = "\"\\\x01\x1f !~\x7f#[]";
	struct vt_err err;
	struct vt_head head;
	struct vt_str str;
	char text[26];

	(void)state;
	vt_str_init(&str);
	for (size_t len = 1; len < sizeof(text); len++) {
		for (size_t i = 0; i < len * len * (sizeof(kinds) - 1); i++) {
			memset(text, 'a' + (char)(i % 3), len);
			text[i % len] = kinds[i / len / len];
			text[i / len % len] = kinds[i / len / len];
			vt_head_begin(&str);
			vt_head_add_text(&str, "t", text, len);
			assert_int_equal(vt_head_end(&str, &err), 0);
			if (vt_head_parse(str.text, str.len, &head, &err) < 0)
				fail_msg("%s", err.what);
			assert_int_equal(head.members[0].len, len);
			assert_memory_equal(vt_head_text(&head, "t", NULL), text, len);
		}
	}
	vt_str_done(&str);
}

static void test_check(void **state)
{
	static const struct vt_head_field fields[] = {
		{ "call", VT_HEAD_INT, 0, 9 },
		{ "tool", VT_HEAD_TEXT, 0, 0 },
		{ "ok", VT_HEAD_FLAG, 0, 0 },
	};
	static const struct {
		const char *text, *wrong; /* wrong: the member that the message names; NULL: none */
	} cases[] = {
		{ "{}", NULL },
		{ "{\"call\":0,\"tool\":\"\",\"ok\":false}", NULL },
		{ "{\"ok\":true,\"call\":9,\"tool\":\"x\"}", NULL },
		{ "{\"call\":null,\"tool\":null,\"ok\":null}", NULL },
		{ "{\"calls\":\"x\",\"cal\":1.5,\"\":-1,\"tool\":\"x\"}", NULL },
		{ "{\"call\":-1}", "'call'" },
		{ "{\"call\":10}", "'call'" },
		{ "{\"call\":1.0}", "'call'" },
		{ "{\"call\":\"1\"}", "'call'" },
		{ "{\"more\":1,\"tool\":1}", "'tool'" },
		{ "{\"tool\":\"x\",\"ok\":1,\"call\":1}", "'ok'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vt_err err = { 0 };
		struct vt_head head;
		char text[128];

		strcpy(text, cases[i].text);
		assert_int_equal(vt_head_parse(text, strlen(text), &head, &err), 0);
		int status = vt_head_check(&head, fields, 3, &err);

		assert_int_equal(status, cases[i].wrong ? -EBADMSG : 0);
		if (cases[i].wrong)
			assert_non_null(strstr(err.what, cases[i].wrong));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_other_values),
		cmocka_unit_test(test_bad_texts_say_where),
		cmocka_unit_test(test_nul_bytes),
		cmocka_unit_test(test_every_beginning_is_refused),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_how_many_members),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_writer),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
