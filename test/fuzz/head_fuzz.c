/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of heads under any bytes, beside jansson: what one takes the other takes too, as the
 * same object; and written again, it is read as the same once more. libFuzzer drives it, or
 * replay.c.
 */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/head.h"
#include "base/utf8.h"
#include "fuzz.h"

/* A text that the owner may use as a C string, and print. */
static void check_text(const char *text, size_t len)
{
	REQUIRE(strlen(text) == len);
	for (size_t at = 0; at < len;) {
		struct vt_utf8 next = vt_utf8_next(text + at, len - at);

		REQUIRE(next.valid);
		at += next.len;
	}
}

static void check_member(const struct vt_head *head, const struct vt_head_member *member,
			 json_t *value)
{
	check_text(member->name, member->name_len);
	REQUIRE(vt_head_find(head, member->name) == member);
	REQUIRE(member->type <= VT_HEAD_TEXT);
	if (member->type == VT_HEAD_TEXT) {
		check_text(member->text, member->len);
		REQUIRE(!value || strcmp(json_string_value(value), member->text) == 0);
	} else if (member->type == VT_HEAD_INT) {
		REQUIRE(!value || json_integer_value(value) == member->whole);
		REQUIRE(vt_head_int(head, member->name, !member->whole) == member->whole);
	} else if (member->type == VT_HEAD_REAL) {
		REQUIRE(!value || json_is_real(value));
		REQUIRE(vt_head_int(head, member->name, 7) == 7);
	} else if (member->type == VT_HEAD_FLAG) {
		REQUIRE(!value || json_is_true(value) == member->flag);
		REQUIRE(vt_head_flag(head, member->name, !member->flag) == member->flag);
	} else {
		REQUIRE(!value || json_is_null(value));
		REQUIRE(!vt_head_text(head, member->name, NULL));
	}
}

/* Whether the object is one that a head can be, of what jansson takes. */
static bool is_head(json_t *root, const uint8_t *data, size_t size)
{
	const char *name;
	json_t *value;

	json_object_foreach(root, name,
			    value) if (json_is_object(value) || json_is_array(value)) return false;
	/* jansson skips a NUL byte behind a number. */
	return json_is_object(root) && json_object_size(root) <= VT_HEAD_MEMBERS &&
	       !memchr(data, '\0', size);
}

/* Reals are never written. */
static void write_member(struct vt_str *str, const struct vt_head_member *member)
{
	if (member->type == VT_HEAD_TEXT)
		vt_head_add_text(str, member->name, member->text, member->len);
	else if (member->type == VT_HEAD_INT)
		vt_head_add_int(str, member->name, member->whole);
	else if (member->type == VT_HEAD_FLAG)
		vt_head_add_flag(str, member->name, member->flag);
	else
		vt_head_add_text(str, member->name, NULL, 0);
}

static void write_again(const struct vt_head *head)
{
	struct vt_head again;
	struct vt_str str;
	struct vt_err err;

	vt_str_init(&str);
	vt_head_begin(&str);
	for (size_t i = 0; i < head->count; i++)
		write_member(&str, &head->members[i]);
	REQUIRE(vt_head_end(&str, &err) == 0);
	REQUIRE(vt_head_parse(str.text, str.len, &again, &err) == 0);
	REQUIRE(again.count == head->count);
	for (size_t i = 0; i < head->count; i++) {
		const struct vt_head_member *one = &head->members[i], *two = &again.members[i];

		REQUIRE(strcmp(one->name, two->name) == 0);
		REQUIRE(two->type == (one->type == VT_HEAD_REAL ? VT_HEAD_NULL : one->type));
		REQUIRE(one->type != VT_HEAD_TEXT || strcmp(one->text, two->text) == 0);
		REQUIRE(one->type != VT_HEAD_INT || one->whole == two->whole);
		REQUIRE(one->type != VT_HEAD_FLAG || one->flag == two->flag);
	}
	vt_str_done(&str);
}

/* Any bytes as a text to write: whatever they are, what is written can be read. */
static void write_bytes(const uint8_t *data, size_t size)
{
	struct vt_head head;
	struct vt_str str;
	struct vt_err err;
	size_t len = 0;

	vt_str_init(&str);
	vt_head_begin(&str);
	vt_head_add_text(&str, "bytes", (const char *)data, size);
	REQUIRE(vt_head_end(&str, &err) == 0);
	REQUIRE(vt_head_parse(str.text, str.len, &head, &err) == 0 && head.count == 1);
	const char *text = vt_head_text(&head, "bytes", &len);

	REQUIRE(text);
	check_text(text, len);
	vt_str_done(&str);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_error_t error;
	struct vt_head head;
	struct vt_err err = { 0 };
	char *text = malloc(size ? size : 1);

	REQUIRE(text);
	memcpy(text, data, size);
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	int status = vt_head_parse(text, size, &head, &err);

	if (root && is_head(root, data, size))
		REQUIRE(status == 0 && head.count == json_object_size(root));
	else
		REQUIRE(status < 0 ||
			(!root && json_error_code(&error) == json_error_numeric_overflow));
	if (status < 0) {
		REQUIRE(status == -EBADMSG && err.num == EBADMSG && err.step == VT_STEP_WIRE);
		for (const char *at = err.what; *at; at++)
			REQUIRE(!iscntrl((unsigned char)*at));
		REQUIRE(*err.what && head.count == 0);
	}
	for (size_t i = 0; i < head.count; i++)
		check_member(&head, &head.members[i], json_object_get(root, head.members[i].name));
	write_again(&head);
	write_bytes(data, size);
	json_decref(root);
	free(text);
	return 0;
}
