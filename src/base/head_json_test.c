/* SPDX-License-Identifier: Apache-2.0 */
/* Heads against jansson, which reads and writes JSON for everybody else: what one takes, so does
 * the other. */
#include "base/head.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/json.h"
#include "base/utf8.h"

/* A sequence of its own, the same in every run. */
static uint32_t draw(uint64_t *seed, uint32_t below)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33) % below;
}

/* Up to 12 characters, of all kinds but NUL. */
static size_t draw_text(uint64_t *seed, char text[64])
{
	size_t len = 0;

	for (uint32_t left = draw(seed, 13); left > 0; left--) {
		static const uint32_t kinds[] = { 0x20, 0x80, 0x80, 0x800, 0xd800, 0x110000 };
		uint32_t code = 1 + draw(seed, kinds[draw(seed, 6)] - 1);

		if (code >= 0xd800 && code < 0xe000)
			code = draw(seed, 2) ? '"' : '\\';
		len += vt_utf8_put(text + len, code);
	}
	return len;
}

static int64_t draw_int(uint64_t *seed)
{
	uint64_t bits = (uint64_t)draw(seed, 1u << 31) << 33 ^ (uint64_t)draw(seed, 1u << 31) << 10;

	return (int64_t)(bits ^ draw(seed, 1024)) >> draw(seed, 64);
}

/* An object of either kind of writer, and the same by the other: jansson's json_t, our text. */
static json_t *draw_object(uint64_t *seed, struct vt_str *str)
{
	json_t *root = json_object();
	struct vt_err err;

	vt_head_begin(str);
	for (uint32_t left = draw(seed, VT_HEAD_MEMBERS + 1); left > 0; left--) {
		char name[65], text[64];
		json_t *value = NULL;

		name[draw_text(seed, name)] = '\0';
		size_t len = draw_text(seed, text);
		int64_t whole = draw_int(seed);

		if (json_object_get(root, name))
			continue;
		switch (draw(seed, 4)) {
		case 0:
			vt_head_add_text(str, name, text, len);
			value = json_stringn(text, len);
			break;
		case 1:
			vt_head_add_int(str, name, whole);
			value = json_integer(whole);
			break;
		case 2:
			vt_head_add_flag(str, name, len % 2);
			value = json_boolean(len % 2);
			break;
		default:
			vt_head_add_text(str, name, NULL, 0);
			value = json_null();
		}
		assert_int_equal(json_object_set_new(root, name, value), 0);
	}
	assert_int_equal(vt_head_end(str, &err), 0);
	return root;
}

/* Whether both read the same: every member, of the same type, with the same value. */
static void assert_same(const struct vt_head *head, json_t *root)
{
	const char *name;
	json_t *value;

	assert_int_equal(head->count, json_object_size(root));
	json_object_foreach(root, name, value)
	{
		const struct vt_head_member *member = vt_head_find(head, name);

		assert_non_null(member);
		if (json_is_string(value)) {
			assert_int_equal(member->type, VT_HEAD_TEXT);
			assert_int_equal(member->len, json_string_length(value));
			assert_string_equal(member->text, json_string_value(value));
		} else if (json_is_integer(value)) {
			assert_int_equal(member->type, VT_HEAD_INT);
			assert_true(member->whole == json_integer_value(value));
		} else if (json_is_real(value)) {
			assert_int_equal(member->type, VT_HEAD_REAL);
		} else if (json_is_boolean(value)) {
			assert_int_equal(member->type, VT_HEAD_FLAG);
			assert_int_equal(member->flag, json_is_true(value));
		} else {
			assert_true(json_is_null(value));
			assert_int_equal(member->type, VT_HEAD_NULL);
		}
	}
}

/* Reads a copy, in a block of its exact size. */
static int read_copy(const char *text, size_t len, char **ret_copy, struct vt_head *head)
{
	struct vt_err err;
	char *copy = malloc(len + !len);

	assert_non_null(copy);
	memcpy(copy, text, len);
	*ret_copy = copy;
	return vt_head_parse(copy, len, head, &err);
}

static void assert_reads_as(const char *text, size_t len, json_t *root)
{
	struct vt_head head;
	char *copy;

	assert_int_equal(read_copy(text, len, &copy, &head), 0);
	assert_same(&head, root);
	free(copy);
}

/* Our text read by jansson, jansson's in its styles read by us: all are the same object. */
static void test_good_texts(void **state)
{
	static const size_t styles[] = { 0, JSON_COMPACT, JSON_ENSURE_ASCII, JSON_INDENT(3),
					 JSON_ESCAPE_SLASH | JSON_ENSURE_ASCII };
	uint64_t seed = 42;
	struct vt_str str;

	(void)state;
	vt_str_init(&str);
	for (int i = 0; i < 3000; i++) {
		AUTO_JSON json_t *root = draw_object(&seed, &str);
		AUTO_JSON json_t *ours = json_loadb(str.text, str.len, JSON_REJECT_DUPLICATES,
						    NULL);
		char *theirs = json_dumps(root, styles[i % 5]);

		assert_non_null(theirs);
		assert_true(json_equal(root, ours));
		assert_reads_as(str.text, str.len, root);
		assert_reads_as(theirs, strlen(theirs), root);
		free(theirs);
	}
	vt_str_done(&str);
}

static bool is_flat(json_t *root)
{
	const char *name;
	json_t *value;

	json_object_foreach(root, name,
			    value) if (json_is_object(value) || json_is_array(value)) return false;
	return json_is_object(root) && json_object_size(root) <= VT_HEAD_MEMBERS;
}

/*
 * Texts that were good, with some bytes changed: both take them, or neither. But jansson takes what
 * is nested, and refuses a number that is too large without being asked for it.
 */
static void test_changed_texts(void **state)
{
	static const char bytes[] =
		"{}[]\":,\\/ \n\t0123456789.-+eEutrfalsn\0\x1f\x7f\x80\xc3\xe2\xff";
	size_t taken = 0, refused = 0;
	uint64_t seed = 4711;
	struct vt_str str;

	(void)state;
	vt_str_init(&str);
	for (int i = 0; i < 20000; i++) {
		json_error_t error;
		struct vt_head head;
		char *copy;

		json_decref(draw_object(&seed, &str));
		for (uint32_t left = 1 + draw(&seed, 2); left > 0; left--)
			str.text[draw(&seed, (uint32_t)str.len)] =
				bytes[draw(&seed, sizeof(bytes) - 1)];
		AUTO_JSON json_t *root = json_loadb(str.text, str.len, JSON_REJECT_DUPLICATES,
						    &error);
		int status = read_copy(str.text, str.len, &copy, &head);

		if (root && is_flat(root) && !memchr(str.text, '\0', str.len)) {
			assert_int_equal(status, 0);
			assert_same(&head, root);
			taken++;
		} else if (root || json_error_code(&error) != json_error_numeric_overflow) {
			assert_int_equal(status, -EBADMSG);
			refused++;
		}
		free(copy);
	}
	assert_true(taken > 1000 && refused > 1000);
	vt_str_done(&str);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_texts),
		cmocka_unit_test(test_changed_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
