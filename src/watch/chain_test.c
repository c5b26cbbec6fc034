/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "watch/chain.h"

enum { LINES = 6 };

/* A log, and where its lines begin. */
struct log {
	struct vt_str text;
	char last[VT_CHAIN_HEX + 1];
	size_t at[LINES + 1];
};

static void add(struct log *log, const char *json)
{
	assert_int_equal(vt_chain_add(&log->text, json, strlen(json), log->last, log->last), 0);
}

static void begin(struct log *log)
{
	*log = (struct log){ 0 };
	vt_str_init(&log->text);
	memcpy(log->last, vt_chain_zeros, sizeof(log->last));
}

/* Lines of several lengths, one of them longer than any block. */
static void make(struct log *log)
{
	char json[200];
	struct vt_str large;

	begin(log);
	for (int i = 0; i < LINES; i++) {
		log->at[i] = log->text.len;
		snprintf(json, sizeof(json),
			 "{\"time\": \"2026-01-0%dT00:00:00.000Z\", \"call_id\": \"c%d\"}\n", i + 1,
			 i);
		if (i != 3) {
			add(log, json);
			continue;
		}
		vt_str_init(&large);
		vt_str_add(&large, "{\"time\": \"2026-01-04T00:00:00.000Z\", \"argv\": \"");
		for (int j = 0; j < 10000; j++)
			vt_str_add(&large, "0123456789");
		vt_str_add(&large, "\"}");
		add(log, large.text);
		vt_str_done(&large);
	}
	log->at[LINES] = log->text.len;
}

static size_t length(const struct log *log, int line)
{
	return log->at[line + 1] - log->at[line];
}

/* Walks in pieces of that size. */
static struct vt_chain walk(const char *text, size_t len, size_t piece)
{
	struct vt_chain chain;

	vt_chain_begin(&chain, NULL);
	for (size_t at = 0; at < len; at += piece)
		vt_chain_walk(&chain, text + at, len - at < piece ? len - at : piece);
	vt_chain_end(&chain);
	return chain;
}

static void expect(const struct vt_str *text, enum vt_chain_fault fault, uint64_t line)
{
	static const size_t pieces[] = { SIZE_MAX / 2, 1, 7, VT_CHAIN_TAIL, 4096 };

	assert_true(vt_str_ok(text));
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct vt_chain chain = walk(text->text, text->len, pieces[i]);

		if (chain.fault != fault || (fault && chain.fault_line != line))
			fail_msg("line %d %s, not line %d %s, in pieces of %zu",
				 (int)chain.fault_line, vt_chain_meaning(chain.fault), (int)line,
				 vt_chain_meaning(fault), pieces[i]);
	}
}

/* The text of some lines of the log, in the order of their numbers. */
static void take(struct vt_str *out, const struct log *log, const char *order)
{
	vt_str_init(out);
	for (; *order; order++)
		vt_str_addn(out, log->text.text + log->at[*order - '0'], length(log, *order - '0'));
}

static void test_whole(void **state)
{
	struct log log;

	(void)state;
	make(&log);
	expect(&log.text, VT_CHAIN_WHOLE, 0);
	struct vt_chain chain = walk(log.text.text, log.text.len, 100);

	assert_int_equal(chain.lines, LINES);
	assert_int_equal(chain.linked, LINES);
	assert_int_equal(chain.unlinked, 0);
	assert_string_equal(chain.first_time, "2026-01-01T00:00:00.000Z");
	assert_string_equal(chain.last_time, "2026-01-06T00:00:00.000Z");
	assert_string_equal(chain.last, log.last);
	/* The newline of the last line says nothing that its brace does not. */
	log.text.len--;
	expect(&log.text, VT_CHAIN_WHOLE, 0);
	vt_str_done(&log.text);
}

/* The hash is one that any tool gets: printf '...' | sha256sum. */
static void test_known_hash(void **state)
{
	static const char want[] =
		"{\"a\": 1, \"prev\": "
		"\"0000000000000000000000000000000000000000000000000000000000000000\", "
		"\"hash\": "
		"\"5bdd81dbbb598e9ea0d65cf5d9e725e91049b6b7e081149b8ea79d003aee5eb4\"}\n";
	struct log log;

	(void)state;
	begin(&log);
	add(&log, "{\"a\": 1}");
	assert_string_equal(log.text.text, want);
	vt_str_done(&log.text);
}

static void test_every_changed_byte(void **state)
{
	struct log log;

	(void)state;
	make(&log);
	for (size_t at = 0; at < log.text.len;
	     at += at < log.at[3] || at > log.at[4] - 200 ? 1 : 997) {
		char byte = log.text.text[at];

		for (int bit = 0; bit < 8; bit += 7) {
			log.text.text[at] = (char)(byte ^ (1 << bit));
			struct vt_chain chain = walk(log.text.text, log.text.len, 4096);

			/* The last newline and what is no line any more without it. */
			if (!chain.fault)
				fail_msg("byte %zu changed, and not noticed", at);
		}
		log.text.text[at] = byte;
	}
	vt_str_done(&log.text);
}

static void test_tampering(void **state)
{
	static const struct {
		const char *order;
		enum vt_chain_fault fault;
		uint64_t line;
	} rows[] = {
		{ "01245", VT_CHAIN_UNLINKED, 4 },   /* one removed */
		{ "12345", VT_CHAIN_HEADLESS, 1 },   /* the first removed */
		{ "5", VT_CHAIN_HEADLESS, 1 },       /* all but the last */
		{ "021345", VT_CHAIN_UNLINKED, 2 },  /* reordered */
		{ "102345", VT_CHAIN_HEADLESS, 1 },  /* and at the beginning */
		{ "0122345", VT_CHAIN_UNLINKED, 4 }, /* one put in twice */
		{ "0120345", VT_CHAIN_ANEW, 4 },     /* the first put in once more */
		{ "01234501", VT_CHAIN_ANEW, 7 },    /* two chains */
		{ "0123", VT_CHAIN_WHOLE, 0 },       /* the end cut off: nothing shows that */
	};
	struct vt_str text;
	struct log log;

	(void)state;
	make(&log);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		take(&text, &log, rows[i].order);
		expect(&text, rows[i].fault, rows[i].line);
		vt_str_done(&text);
	}
	vt_str_done(&log.text);
}

/* A line with a right hash for its text, but not for its place. */
static void test_replaced_line(void **state)
{
	char hash[VT_CHAIN_HEX + 1];
	struct vt_str text;
	struct log log;

	(void)state;
	make(&log);
	take(&text, &log, "01");
	const char *prev, *last;

	assert_true(vt_chain_is_tail(text.text + text.len - 1 - VT_CHAIN_TAIL, &prev, &last));
	char held[VT_CHAIN_HEX + 1] = "";

	memcpy(held, last, VT_CHAIN_HEX);
	assert_int_equal(vt_chain_add(&text, "{\"forged\": 1}", 13, held, hash), 0);
	vt_str_addn(&text, log.text.text + log.at[3], log.at[LINES] - log.at[3]);
	expect(&text, VT_CHAIN_UNLINKED, 4);
	vt_str_done(&text);
	vt_str_done(&log.text);
}

static void test_foreign_lines(void **state)
{
	static const char *const lines[] = { "\n", "{}\n", "{\"time\": 1}\n", "not JSON\n\n\n" };
	struct vt_str text;
	struct log log;

	(void)state;
	make(&log);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		take(&text, &log, "012");
		vt_str_add(&text, lines[i]);
		expect(&text, VT_CHAIN_FOREIGN, 4);
		vt_str_addn(&text, log.text.text + log.at[3], log.at[LINES] - log.at[3]);
		expect(&text, VT_CHAIN_FOREIGN, 4);
		vt_str_done(&text);
	}
	vt_str_done(&log.text);
}

/* Every way to cut the file off within a line. */
static void test_torn(void **state)
{
	struct vt_str text;
	struct log log;

	(void)state;
	make(&log);
	for (size_t cut = 1; cut < length(&log, 2) - 1; cut++) {
		take(&text, &log, "01");
		vt_str_addn(&text, log.text.text + log.at[2], cut);
		struct vt_chain chain = walk(text.text, text.len, 4096);

		assert_int_equal(chain.fault, VT_CHAIN_TORN);
		assert_int_equal(chain.fault_line, 3);
		vt_str_done(&text);
	}
	vt_str_done(&log.text);
}

static void test_unchained_before(void **state)
{
	struct vt_str text;
	struct log log;

	(void)state;
	make(&log);
	vt_str_init(&text);
	vt_str_add(&text, "{\"time\": \"old\"}\n{\"time\": \"older\"}\n");
	struct vt_chain chain = walk(text.text, text.len, 4096);

	assert_int_equal(chain.fault, VT_CHAIN_WHOLE);
	assert_int_equal(chain.unlinked, 2);
	assert_int_equal(chain.linked, 0);
	vt_str_addn(&text, log.text.text, log.text.len);
	expect(&text, VT_CHAIN_WHOLE, 0);
	chain = walk(text.text, text.len, 4096);
	assert_int_equal(chain.unlinked, 2);
	assert_int_equal(chain.linked, LINES);
	assert_int_equal(chain.lines, LINES + 2);
	vt_str_done(&text);
	vt_str_done(&log.text);
}

/* A log with a gap of two lines after its second, and the line that tells of it. */
static void make_gap(struct log *log, const char *gap)
{
	struct vt_chain chain;

	begin(log);
	add(log, "{\"a\": 1}");
	add(log, "{\"a\": 2}");
	log->at[0] = log->text.len;
	vt_str_add(&log->text, gap);
	vt_chain_begin(&chain, NULL);
	vt_chain_walk(&chain, gap, strlen(gap));
	vt_chain_end(&chain);
	log->at[1] = log->text.len;
	assert_int_equal(vt_chain_add_gap(&log->text, &chain, "2026-01-01T00:00:00.000Z", log->last,
					  log->last),
			 0);
	log->at[2] = log->text.len;
	add(log, "{\"a\": 3}");
}

static void test_gap(void **state)
{
	struct log log;

	(void)state;
	make_gap(&log, "{\"torn\n\n");
	expect(&log.text, VT_CHAIN_WHOLE, 0);
	struct vt_chain chain = walk(log.text.text, log.text.len, 4096);

	assert_int_equal(chain.gap_lines, 2);
	assert_int_equal(chain.linked, 4);
	/* What is in the gap is held too. */
	log.text.text[log.at[0]] ^= 1;
	expect(&log.text, VT_CHAIN_NO_GAP, 5);
	log.text.text[log.at[0]] ^= 1;
	memmove(log.text.text + log.at[0], log.text.text + log.at[1], log.text.len - log.at[1]);
	log.text.len -= log.at[1] - log.at[0];
	expect(&log.text, VT_CHAIN_NO_GAP, 3);
	vt_str_done(&log.text);
}

static void test_gap_without_its_line(void **state)
{
	struct log log;

	(void)state;
	make_gap(&log, "x\n");
	memmove(log.text.text + log.at[1], log.text.text + log.at[2], log.text.len - log.at[2]);
	log.text.len -= log.at[2] - log.at[1];
	expect(&log.text, VT_CHAIN_FOREIGN, 3);
	vt_str_done(&log.text);
}

static void test_expected(void **state)
{
	struct vt_chain chain;
	struct log log;

	(void)state;
	make(&log);
	vt_chain_begin(&chain, log.last);
	vt_chain_walk(&chain, log.text.text, log.text.len);
	vt_chain_end(&chain);
	assert_int_equal(chain.expected_at, LINES);
	vt_chain_begin(&chain, log.last);
	vt_chain_walk(&chain, log.text.text, log.at[LINES - 1]);
	vt_chain_end(&chain);
	assert_int_equal(chain.fault, VT_CHAIN_WHOLE);
	assert_int_equal(chain.expected_at, 0);
	vt_str_done(&log.text);
}

static void test_what_is_no_object(void **state)
{
	static const char *const bad[] = { "", "\n", "{", "{}", "[1]", "{\"a\": 1", "{\"a\":\n1}" };
	char hash[VT_CHAIN_HEX + 1] = "kept";
	struct vt_str out;

	(void)state;
	vt_str_init(&out);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(vt_chain_add(&out, bad[i], strlen(bad[i]), vt_chain_zeros, hash),
				 -EINVAL);
	assert_int_equal(out.len, 0);
	assert_string_equal(hash, "kept");
	vt_str_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_known_hash),
		cmocka_unit_test(test_every_changed_byte),
		cmocka_unit_test(test_tampering),
		cmocka_unit_test(test_replaced_line),
		cmocka_unit_test(test_foreign_lines),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_unchained_before),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_gap_without_its_line),
		cmocka_unit_test(test_expected),
		cmocka_unit_test(test_what_is_no_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
