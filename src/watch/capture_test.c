/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The source itself, with a realloc that can be made to fail. */
static size_t realloc_most = SIZE_MAX;

static void *bounded_realloc(void *old, size_t size)
{
	return size > realloc_most ? NULL : realloc(old, size);
}

#define realloc bounded_realloc
#include "watch/capture.c"
#undef realloc

static void expect_text(const struct vt_capture *capture, const char *want, size_t len)
{
	struct vt_str text;

	vt_str_init(&text);
	vt_capture_text(capture, &text);
	assert_true(vt_str_ok(&text));
	assert_int_equal(text.len, len);
	assert_memory_equal(text.text, want, len);
	vt_str_done(&text);
}

/* Adds bytes in pieces of a size, and compares with what the header promises. */
static void check(size_t cap, size_t piece, const char *bytes, size_t len, const char *want,
		  uint64_t dropped)
{
	struct vt_capture capture;

	vt_capture_init(&capture, cap);
	for (size_t at = 0; at < len; at += piece)
		vt_capture_add(&capture, bytes + at, len - at < piece ? len - at : piece);
	expect_text(&capture, want, strlen(want));
	assert_int_equal(vt_capture_dropped(&capture), dropped);
	assert_int_equal(capture.total, len);
	assert_true(capture.head.size + capture.tail.size <= cap);
	vt_capture_done(&capture);
}

static void nothing_is_empty(void **state)
{
	(void)state;
	check(0, 1, "", 0, "", 0);
	check(8, 1, "", 0, "", 0);
}

static void cap_zero_counts_only(void **state)
{
	(void)state;
	check(0, 3, "abcdef", 6, "\n[... 6 bytes dropped ...]\n", 6);
}

static void cap_one_keeps_the_first(void **state)
{
	(void)state;
	check(1, 1, "a", 1, "a", 0);
	check(1, 1, "abc", 3, "a\n[... 2 bytes dropped ...]\n", 2);
	check(1, 3, "abc", 3, "a\n[... 2 bytes dropped ...]\n", 2);
}

/* Every cap, length and piece size up to a few times the cap, against a plain model. */
static void every_boundary(void **state)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	char want[128];

	(void)state;
	for (size_t cap = 0; cap <= 9; cap++) {
		for (size_t len = 0; len <= 30; len++) {
			size_t head = cap - cap / 2, tail = cap / 2;

			if (len <= cap)
				(void)snprintf(want, sizeof(want), "%.*s", (int)len, alphabet);
			else
				(void)snprintf(want, sizeof(want),
					       "%.*s\n[... %zu bytes dropped ...]\n%.*s", (int)head,
					       alphabet, len - cap, (int)tail,
					       alphabet + len - tail);
			for (size_t piece = 1; piece <= 30; piece++)
				check(cap, piece, alphabet, len, want, len > cap ? len - cap : 0);
		}
	}
}

static void seam_cuts_half_heads(void **state)
{
	static const struct {
		const char *bytes, *want;
		uint64_t dropped;
	} rows[] = {
		{ "abc\xc3\xa9......uvwxy", "abc\n[... 9 bytes dropped ...]\nvwxy", 9 },
		{ "ab\xe2\x82\xac......uvwxy", "ab\n[... 10 bytes dropped ...]\nvwxy", 10 },
		{ "a\xf0\x9f\x98\x80......uvwxy", "a\n[... 11 bytes dropped ...]\nvwxy", 11 },
		/* complete at the seam: kept */
		{ "ab\xc3\xa9......uvwxy", "ab\xc3\xa9\n[... 7 bytes dropped ...]\nvwxy", 7 },
		{ "a\xe2\x82\xac......uvwxy", "a\xe2\x82\xac\n[... 7 bytes dropped ...]\nvwxy", 7 },
		{ "\xf0\x9f\x98\x80......uvwxy",
		  "\xf0\x9f\x98\x80\n[... 7 bytes dropped ...]\nvwxy", 7 },
		/* not UTF-8 at all: nothing to spare */
		{ "abc\xff......uvwxy", "abc\xff\n[... 7 bytes dropped ...]\nvwxy", 7 },
		{ "abc\xf8......uvwxy", "abc\xf8\n[... 7 bytes dropped ...]\nvwxy", 7 },
		{ "ab\xe0\x80......uvwxy", "ab\xe0\x80\n[... 7 bytes dropped ...]\nvwxy", 7 },
		{ "\x80\x80\x80\x80......uvwxy",
		  "\x80\x80\x80\x80\n[... 7 bytes dropped ...]\nvwxy", 7 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(rows[i].bytes);

		for (size_t piece = 1; piece <= len; piece++)
			check(8, piece, rows[i].bytes, len, rows[i].want, rows[i].dropped);
	}
}

static void seam_skips_half_tails(void **state)
{
	static const struct {
		const char *bytes, *want;
		uint64_t dropped;
	} rows[] = {
		{ "abcd......\xc3\xa9xyz", "abcd\n[... 8 bytes dropped ...]\nxyz", 8 },
		{ "abcd......\xe2\x82\xacxy", "abcd\n[... 9 bytes dropped ...]\nxy", 9 },
		{ "abcd......\xf0\x9f\x98\x80z", "abcd\n[... 10 bytes dropped ...]\nz", 10 },
		{ "abcd.....\xf0\x9f\x98\x80", "abcd\n[... 5 bytes dropped ...]\n\xf0\x9f\x98\x80",
		  5 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(rows[i].bytes);

		for (size_t piece = 1; piece <= len; piece++)
			check(8, piece, rows[i].bytes, len, rows[i].want, rows[i].dropped);
	}
}

/* Bytes on both sides of the seam are NUL: they are bytes like others. */
static void nul_bytes_are_kept(void **state)
{
	struct vt_capture capture;

	(void)state;
	vt_capture_init(&capture, 8);
	vt_capture_add(&capture, "\0a\0b\0c", 6);
	expect_text(&capture, "\0a\0b\0c", 6);
	vt_capture_done(&capture);
}

static void gigabyte_stays_within_the_cap(void **state)
{
	static char piece[64 << 10];
	const uint64_t total = (uint64_t)1 << 30;
	const size_t cap = 1 << 20;
	struct vt_capture capture;

	(void)state;
	vt_capture_init(&capture, cap);
	for (uint64_t at = 0; at < total; at += sizeof(piece)) {
		memset(piece, 'a' + (int)(at / sizeof(piece) % 26), sizeof(piece));
		vt_capture_add(&capture, piece, sizeof(piece));
		assert_true(capture.head.size + capture.tail.size <= cap);
	}
	assert_int_equal(capture.total, total);
	assert_int_equal(vt_capture_dropped(&capture), total - cap);

	struct vt_str text;

	vt_str_init(&text);
	vt_capture_text(&capture, &text);
	assert_int_equal(text.text[0], 'a');
	assert_int_equal(text.text[text.len - 1], piece[0]);
	assert_non_null(strstr(text.text, "\n[... 1072693248 bytes dropped ...]\n"));
	vt_str_done(&text);
	vt_capture_done(&capture);
}

/* A large cap costs nothing until it is used. */
static void memory_follows_what_was_written(void **state)
{
	struct vt_capture capture;

	(void)state;
	vt_capture_init(&capture, SIZE_MAX);
	vt_capture_add(&capture, "hello", 5);
	assert_true(capture.head.size <= 4096);
	assert_null(capture.tail.bytes);
	expect_text(&capture, "hello", 5);
	vt_capture_done(&capture);
}

static void no_memory_at_all_counts_only(void **state)
{
	struct vt_capture capture;

	(void)state;
	realloc_most = 0;
	vt_capture_init(&capture, 100);
	vt_capture_add(&capture, "hello", 5);
	vt_capture_add(&capture, "hello", 5);
	realloc_most = SIZE_MAX;
	assert_int_equal(vt_capture_dropped(&capture), 10);
	expect_text(&capture, "\n[... 10 bytes dropped ...]\n", 28);
	vt_capture_done(&capture);
}

/* Halves that cannot grow past 4096 bytes still hold the first and the last of what came. */
static void short_memory_keeps_head_and_tail(void **state)
{
	struct vt_capture capture;
	struct vt_str text;

	(void)state;
	realloc_most = 4096;
	vt_capture_init(&capture, 1 << 20);
	for (int i = 0; i < 50000; i++)
		vt_capture_add(&capture, i == 0 ? "first" : i == 49999 ? "final" : "-----", 5);
	realloc_most = SIZE_MAX;
	assert_int_equal(vt_capture_dropped(&capture), 250000 - 2 * 4096);
	vt_str_init(&text);
	vt_capture_text(&capture, &text);
	assert_memory_equal(text.text, "first", 5);
	assert_memory_equal(text.text + text.len - 5, "final", 5);
	vt_str_done(&text);
	vt_capture_done(&capture);
}

/* Memory that comes back does not make a head of what came later. */
static void a_head_that_failed_stays(void **state)
{
	struct vt_capture capture;

	(void)state;
	realloc_most = 0;
	vt_capture_init(&capture, 8);
	vt_capture_add(&capture, "lost", 4);
	realloc_most = SIZE_MAX;
	vt_capture_add(&capture, "later", 5);
	assert_int_equal(vt_capture_dropped(&capture), 9);
	expect_text(&capture, "\n[... 9 bytes dropped ...]\n", 27);
	vt_capture_done(&capture);
}

/* What follows the head alone, for somebody who has passed the head on already. */
static void rest_is_seam_and_tail(void **state)
{
	struct vt_capture capture;
	struct vt_str rest;

	(void)state;
	vt_str_init(&rest);
	vt_capture_init(&capture, 4);
	vt_capture_add(&capture, "ab", 2);
	vt_capture_rest(&capture, &rest);
	assert_string_equal(rest.text, "");
	vt_capture_add(&capture, "cd", 2);
	vt_capture_rest(&capture, &rest);
	assert_string_equal(rest.text, "cd");
	vt_str_done(&rest);
	vt_capture_add(&capture, "efgh", 4);
	vt_capture_rest(&capture, &rest);
	assert_string_equal(rest.text, "\n[... 4 bytes dropped ...]\ngh");
	vt_str_done(&rest);
	vt_capture_done(&capture);
}

static void done_can_be_used_again(void **state)
{
	struct vt_capture capture;

	(void)state;
	vt_capture_init(&capture, 4);
	vt_capture_add(&capture, "abcdefgh", 8);
	vt_capture_done(&capture);
	assert_null(capture.head.bytes);
	assert_int_equal(capture.total, 0);
	vt_capture_done(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_empty),
		cmocka_unit_test(cap_zero_counts_only),
		cmocka_unit_test(cap_one_keeps_the_first),
		cmocka_unit_test(every_boundary),
		cmocka_unit_test(seam_cuts_half_heads),
		cmocka_unit_test(seam_skips_half_tails),
		cmocka_unit_test(nul_bytes_are_kept),
		cmocka_unit_test(gigabyte_stays_within_the_cap),
		cmocka_unit_test(memory_follows_what_was_written),
		cmocka_unit_test(no_memory_at_all_counts_only),
		cmocka_unit_test(short_memory_keeps_head_and_tail),
		cmocka_unit_test(a_head_that_failed_stays),
		cmocka_unit_test(rest_is_seam_and_tail),
		cmocka_unit_test(done_can_be_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
