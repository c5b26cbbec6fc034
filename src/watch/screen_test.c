/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "watch/screen.h"

/* Whole, byte by byte, and cut in two at each position: the same comes out. */
static void shows(const char *bytes, size_t len, const char *want)
{
	for (size_t cut = 0; cut <= len + 1; cut++) {
		struct vt_screen screen = { 0 };
		struct vt_str out;

		vt_str_init(&out);
		if (cut <= len) {
			vt_screen_add(&screen, bytes, cut, &out);
			vt_screen_add(&screen, bytes + cut, len - cut, &out);
		} else {
			for (size_t i = 0; i < len; i++)
				vt_screen_add(&screen, bytes + i, 1, &out);
		}
		vt_screen_end(&screen, &out);
		assert_true(vt_str_ok(&out));
		assert_string_equal(out.text, want);
		assert_int_equal(out.len, strlen(want));
		assert_int_equal(screen.pending_len, 0);
		vt_str_done(&out);
	}
}

#define SHOWS(literal, want) shows(literal, sizeof(literal) - 1, want)

static void plain_text_passes(void **state)
{
	(void)state;
	SHOWS("", "");
	SHOWS("hello, world ~!\n", "hello, world ~!\n");
	SHOWS("a\tb\r\nc\r", "a\tb\r\nc\r");
}

static void every_language_passes(void **state)
{
	static const char *const texts[] = {
		"Grüße, naïveté, ŁÓDŹ",
		"Здравствуй",
		"שלום",
		"مرحبا",
		"日本語、中文、한국어",
		"नमस्ते",
		"ไทย",
		"😀👩‍👩‍👧🇪🇺",
		"é (combining)",
		"\U0010ffff\U00010000\uffff",
		"\u00a0\u07ff\u0800\ud7ff\ue000",
		"\u2027\u202f\u2065\u206a",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		shows(texts[i], strlen(texts[i]), texts[i]);
}

static void escape_sequences_are_shown(void **state)
{
	(void)state;
	SHOWS("\x1b[31mred\x1b[0m", "^[[31mred^[[0m");
	SHOWS("\x1b]0;title\x07", "^[]0;title^G");
	SHOWS("\x1b]52;c;aGk=\x1b\\", "^[]52;c;aGk=^[\\");
	SHOWS("\x1bP+q\x1b\\\x1b", "^[P+q^[\\^[");
}

static void every_ascii_control_is_shown(void **state)
{
	(void)state;
	for (int byte = 0; byte < 0x80; byte++) {
		char in = (char)byte;
		char want[3] = { in, 0, 0 };

		if ((byte < 0x20 && !strchr("\n\t\r", byte)) || byte == 0 || byte == 0x7f) {
			want[0] = '^';
			want[1] = (char)(byte == 0x7f ? '?' : byte + '@');
		}
		shows(&in, 1, want);
	}
	SHOWS("a\0b", "a^@b");
	SHOWS("rm\x7f\x08\x08", "rm^?^H^H");
}

static void c1_controls_are_shown(void **state)
{
	(void)state;
	SHOWS("\x9b"
	      "31m",
	      "\\x9b31m");
	SHOWS("\x9d"
	      "0;t\x9c",
	      "\\x9d0;t\\x9c");
	for (unsigned point = 0x80; point <= 0x9f; point++) {
		char in[3] = { (char)0xc2, (char)point, 0 };
		char want[8];

		(void)snprintf(want, sizeof(want), "\\u%04x", point);
		shows(in, 2, want);
		(void)snprintf(want, sizeof(want), "\\x%02x", point);
		shows(in + 1, 1, want);
	}
	SHOWS("\xc2\xa0", "\u00a0");
}

static void bidi_overrides_are_shown(void **state)
{
	(void)state;
	for (unsigned point = 0x2000; point <= 0x2080; point++) {
		char in[4] = { (char)0xe2, (char)(0x80 | (point >> 6 & 0x3f)),
			       (char)(0x80 | (point & 0x3f)), 0 };
		char want[8];
		int steers = (point >= 0x200e && point <= 0x200f) ||
			     (point >= 0x2028 && point <= 0x202e) ||
			     (point >= 0x2066 && point <= 0x2069);

		(void)snprintf(want, sizeof(want), "\\u%04x", point);
		shows(in, 3, steers ? want : in);
	}
	SHOWS("if (admin\u202e) {", "if (admin\\u202e) {");
	SHOWS("\u061c", "\\u061c");
	SHOWS("a\U000e0041b", "a\\udb40\\udc41b");
}

static void invalid_bytes_are_shown(void **state)
{
	(void)state;
	SHOWS("\xff\xfe", "\\xff\\xfe");
	SHOWS("a\x80z", "a\\x80z");
	/* overlong forms, also of ESC and CSI */
	SHOWS("\xc0\x9b", "\\xc0\\x9b");
	SHOWS("\xc1\xbf", "\\xc1\\xbf");
	SHOWS("\xe0\x80\x9b", "\\xe0\\x80\\x9b");
	SHOWS("\xe0\x82\x9b", "\\xe0\\x82\\x9b");
	SHOWS("\xf0\x80\x80\x9b", "\\xf0\\x80\\x80\\x9b");
	SHOWS("\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf");
	/* surrogates, and beyond U+10FFFF */
	SHOWS("\xed\xa0\x80", "\\xed\\xa0\\x80");
	SHOWS("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	SHOWS("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80");
}

static void broken_sequences_hide_nothing(void **state)
{
	(void)state;
	/* what follows a broken sequence is looked at afresh */
	SHOWS("\xc3\x1b[m", "\\xc3^[[m");
	SHOWS("\xe2\x80\x1b[m", "\\xe2\\x80^[[m");
	SHOWS("\xf0\x9f\x98\x1b[m", "\\xf0\\x9f\\x98^[[m");
	SHOWS("\xe2\xc3\xa9", "\\xe2\u00e9");
	SHOWS("\xe2\x80\xc2\x9b", "\\xe2\\x80\\u009b");
	SHOWS("\xc3\xc3\xa9\n", "\\xc3\u00e9\n");
	/* and a stream that ends inside one */
	SHOWS("ok\xf0\x9f\x98", "ok\\xf0\\x9f\\x98");
	SHOWS("\xc3", "\\xc3");
}

/* Whatever comes in, nothing goes out that steers a terminal: all pairs of bytes, in a frame. */
static void no_control_gets_through(void **state)
{
	(void)state;
	for (unsigned pair = 0; pair < 0x10000; pair++) {
		char in[6] = { (char)0xe2, (char)(pair >> 8), (char)pair, (char)0x9b, 'z', '\n' };
		struct vt_screen screen = { 0 };
		struct vt_str out;

		vt_str_init(&out);
		vt_screen_add(&screen, in, sizeof(in), &out);
		vt_screen_end(&screen, &out);
		for (size_t i = 0; i < out.len; i++) {
			unsigned char byte = (unsigned char)out.text[i];
			unsigned char before = i ? (unsigned char)out.text[i - 1] : 0;

			assert_true(byte >= 0x20 || byte == '\n' || byte == '\t' || byte == '\r');
			assert_int_not_equal(byte, 0x7f);
			/* a byte 80 to 9f is there only inside a sequence, and not after c2 */
			if (byte >= 0x80 && byte <= 0x9f)
				assert_true(before >= 0x80 && before != 0xc2);
		}
		vt_str_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_text_passes),
		cmocka_unit_test(every_language_passes),
		cmocka_unit_test(escape_sequences_are_shown),
		cmocka_unit_test(every_ascii_control_is_shown),
		cmocka_unit_test(c1_controls_are_shown),
		cmocka_unit_test(bidi_overrides_are_shown),
		cmocka_unit_test(invalid_bytes_are_shown),
		cmocka_unit_test(broken_sequences_hide_nothing),
		cmocka_unit_test(no_control_gets_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
