/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test/wire/vectors.json, which every implementation of the wire has to pass, against the readers
 * of frames and heads, the supervisor's session, and the client. docs/wire.md explains the file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/frame.h"
#include "base/head.h"
#include "base/json.h"
#include "fed.h"
#include "serve/private.h"
#include <vitro.h>

static json_t *vectors;

/* ---- reading the file ----------------------------------------------------------------------- */

/* Bytes as the file writes them: a text; {"hex"}; {"repeat", "times"}; or an array of those. */
static void add_bytes(struct vt_str *str, const json_t *what)
{
	const char *hex = json_string_value(json_object_get(what, "hex"));
	const json_t *repeat = json_object_get(what, "repeat"), *part;
	unsigned byte;
	size_t i;

	if (json_is_string(what)) {
		vt_str_addn(str, json_string_value(what), json_string_length(what));
	} else if (json_is_array(what)) {
		json_array_foreach(what, i, part) add_bytes(str, part);
	} else if (hex) {
		assert_int_equal(strlen(hex) % 2, 0);
		for (; *hex; hex += 2) {
			assert_int_equal(sscanf(hex, "%2x", &byte), 1);
			vt_str_addn(str, &(char){ (char)byte }, 1);
		}
	} else {
		assert_non_null(repeat);
		for (json_int_t times = json_integer_value(json_object_get(what, "times"));
		     times > 0; times--)
			add_bytes(str, repeat);
	}
	assert_true(vt_str_ok(str));
}

static struct vt_str bytes_at(const json_t *from, const char *name)
{
	const json_t *what = json_object_get(from, name);
	struct vt_str str;

	vt_str_init(&str);
	if (what)
		add_bytes(&str, what);
	return str;
}

static const char *text_at(const json_t *from, const char *name)
{
	const char *text = json_string_value(json_object_get(from, name));

	return text ? text : "";
}

/* A key that a test does not look at would assert nothing. */
static void check_keys(const json_t *vector, const char *known)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)vector, key, value)
	{
		const char *at = strstr(known, key);
		size_t len = strlen(key);

		if (!at || (at > known && at[-1] != ' ') || (at[len] && at[len] != ' '))
			fail_msg("%s: nobody looks at '%s'", text_at(vector, "name"), key);
	}
}

#define FOR_EACH(vector, group)                                            \
	size_t index_;                                                     \
	json_t *vector;                                                    \
	assert_true(json_array_size(json_object_get(vectors, group)) > 0); \
	json_array_foreach(json_object_get(vectors, group), index_, vector)

/* ---- frames --------------------------------------------------------------------------------- */

/* Sends so many bytes of the stream, from *at on. */
static void send_some(int fd, const struct vt_str *stream, size_t *at, size_t most)
{
	size_t left = stream->len - *at;
	ssize_t sent = left ? send(fd, stream->text + *at, left < most ? left : most, MSG_DONTWAIT)
			    : 0;

	assert_true(sent >= 0);
	*at += (size_t)sent;
}

static const char *read_frames(struct vt_frames_in *in, const int ends[2],
			       const struct vt_str *stream, size_t piece, const json_t *frames)
{
	size_t sent = 0, came = 0, taken = 0;
	const char *name = NULL;

	for (size_t i = 0;;) {
		struct vt_frame frame;
		struct vt_err err;
		int status = vt_frames_next(in, &frame, &err);

		if (status < 0) {
			assert_true(status == -EBADMSG || status == -EMSGSIZE);
			name = "refused";
		} else if (status > 0) {
			const json_t *want = json_array_get(frames, i++);

			assert_int_equal(frame.head_len,
					 json_integer_value(json_array_get(want, 0)));
			assert_int_equal(frame.body_len,
					 json_integer_value(json_array_get(want, 1)));
			taken += VT_FRAME_PREFIX;
			assert_memory_equal(frame.head, stream->text + taken,
					    frame.head_len + frame.body_len);
			taken += frame.head_len + frame.body_len;
			continue;
		} else if (came == stream->len) {
			name = taken == stream->len ? "end" : "more";
		}
		if (name) {
			assert_int_equal(i, json_array_size(frames));
			return name;
		}
		send_some(ends[0], stream, &sent, piece);
		ssize_t got = vt_frames_read(in, ends[1], &err);

		assert_true(got > 0);
		came += (size_t)got;
	}
}

static void test_frames(void **state)
{
	static const size_t pieces[] = { 1, 7, 1 << 16 };

	(void)state;
	FOR_EACH(vector, "frames")
	{
		struct vt_str stream = bytes_at(vector, "bytes");

		check_keys(vector, "name bytes frames then");
		for (size_t i = stream.len > 1000 ? 2 : 0; i < 3; i++) {
			struct vt_frames_in in;
			int ends[2];

			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
			vt_frames_in_init(&in, VT_FRAME_MAX);
			const char *then = read_frames(&in, ends, &stream, pieces[i],
						       json_object_get(vector, "frames"));

			if (strcmp(then, text_at(vector, "then")) != 0)
				fail_msg("%s: %s", text_at(vector, "name"), then);
			vt_frames_in_done(&in);
			close(ends[0]);
			close(ends[1]);
		}
		vt_str_done(&stream);
	}
}

/* ---- heads ---------------------------------------------------------------------------------- */

/* A member as the file writes it: its name, its kind, and its value as text. */
static void describe(const struct vt_head_member *member, const char **ret_kind,
		     struct vt_str *ret_value)
{
	static const char *const kinds[] = { "null", "flag", "integer", "number", "text" };

	*ret_kind = kinds[member->type];
	if (member->type == VT_HEAD_FLAG)
		vt_str_add(ret_value, member->flag ? "true" : "false");
	else if (member->type == VT_HEAD_INT)
		vt_str_addf(ret_value, "%" PRId64, member->whole);
	else if (member->type != VT_HEAD_NULL)
		vt_str_addn(ret_value, member->text, member->len);
}

static void check_members(const struct vt_head *head, const json_t *vector)
{
	const json_t *members = json_object_get(vector, "members");

	assert_int_equal(head->count, json_array_size(members));
	for (size_t i = 0; i < head->count; i++) {
		const json_t *want = json_array_get(members, i);
		struct vt_str value, wanted;
		const char *kind;

		vt_str_init(&value);
		vt_str_init(&wanted);
		add_bytes(&wanted, json_array_get(want, 2));
		describe(&head->members[i], &kind, &value);
		assert_string_equal(head->members[i].name,
				    json_string_value(json_array_get(want, 0)));
		assert_string_equal(kind, json_string_value(json_array_get(want, 1)));
		assert_int_equal(value.len, wanted.len);
		assert_memory_equal(value.len ? value.text : "", wanted.len ? wanted.text : "",
				    value.len);
		vt_str_done(&value);
		vt_str_done(&wanted);
	}
}

static void test_heads(void **state)
{
	(void)state;
	FOR_EACH(vector, "heads")
	{
		struct vt_str text = bytes_at(vector, "text");
		bool refused = json_is_true(json_object_get(vector, "refused"));
		char *copy = malloc(text.len + 1); /* of its exact size, for sanitizers */
		struct vt_head head;
		struct vt_err err;

		check_keys(vector, "name text members refused");
		assert_non_null(copy);
		if (text.len)
			memcpy(copy, text.text, text.len);
		int status = vt_head_parse(copy, text.len, &head, &err);

		if (status != (refused ? -EBADMSG : 0))
			fail_msg("%s: %d, %s", text_at(vector, "name"), status,
				 status < 0 ? err.what : "it was taken");
		if (status == 0)
			check_members(&head, vector);
		free(copy);
		vt_str_done(&text);
	}
}

static void test_written(void **state)
{
	(void)state;
	FOR_EACH(vector, "written")
	{
		const json_t *member;
		struct vt_str str;
		struct vt_err err;
		size_t i;

		check_keys(vector, "name members text");
		vt_str_init(&str);
		vt_head_begin(&str);
		json_array_foreach(json_object_get(vector, "members"), i, member)
		{
			const char *name = json_string_value(json_array_get(member, 0));
			const char *kind = json_string_value(json_array_get(member, 1));
			const char *value = json_string_value(json_array_get(member, 2));

			if (strcmp(kind, "text") == 0)
				vt_head_add_text(&str, name, value, strlen(value));
			else if (strcmp(kind, "integer") == 0)
				vt_head_add_int(&str, name, strtoll(value, NULL, 10));
			else if (strcmp(kind, "flag") == 0)
				vt_head_add_flag(&str, name, strcmp(value, "true") == 0);
			else
				vt_head_add_text(&str, name, NULL, 0);
		}
		assert_int_equal(vt_head_end(&str, &err), 0);
		assert_string_equal(str.text, text_at(vector, "text"));
		vt_str_done(&str);
	}
}

/* ---- the supervisor's session --------------------------------------------------------------- */

/* What is said in a vector, as one stream: frames of a head and a body, or bytes. */
static struct vt_str stream_of(const json_t *says)
{
	struct vt_str stream;
	const json_t *one;
	size_t i;

	vt_str_init(&stream);
	json_array_foreach(says, i, one)
	{
		struct vt_str head = bytes_at(one, "head"), body = bytes_at(one, "body");
		const uint32_t prefix[] = { (uint32_t)(head.len + body.len), (uint32_t)head.len };

		check_keys(one, "head body bytes");
		if (json_object_get(one, "head")) {
			vt_str_addn(&stream, (const char *)prefix, sizeof(prefix));
			vt_str_addn(&stream, head.text, head.len);
			vt_str_addn(&stream, body.text, body.len);
		} else {
			add_bytes(&stream, json_object_get(one, "bytes"));
		}
		vt_str_done(&head);
		vt_str_done(&body);
	}
	return stream;
}

/* One member of a message that was heard is as the vector has it. */
static void check_heard(const struct vt_head *head, const char *name, const json_t *want)
{
	const struct vt_head_member *member = vt_head_find(head, name);

	assert_non_null(member);
	if (json_is_string(want)) {
		assert_int_equal(member->type, VT_HEAD_TEXT);
		assert_string_equal(member->text, json_string_value(want));
	} else if (json_is_integer(want)) {
		assert_int_equal(member->type, VT_HEAD_INT);
		assert_int_equal(member->whole, json_integer_value(want));
	} else {
		assert_int_equal(member->type, VT_HEAD_FLAG);
		assert_int_equal(member->flag, json_is_true(want));
	}
}

/* The next message that was heard; false: there is none. Its body is there until the next. */
static bool hear(struct vt_frames_in *in, int fd, struct vt_head *ret_head)
{
	struct vt_frame frame;
	struct vt_err err;
	int status;

	while ((status = vt_frames_next(in, &frame, &err)) == 0)
		if (vt_frames_read(in, fd, &err) == -EPIPE)
			return false;
	assert_int_equal(status, 1);
	assert_int_equal(vt_head_parse(frame.head, frame.head_len, ret_head, &err), 0);
	return true;
}

static void check_session(const json_t *vector, int fd)
{
	bool ends = json_is_true(json_object_get(vector, "ends")), ended = false;
	const json_t *hears = json_object_get(vector, "hears"), *want;
	struct vt_frames_in in;
	struct vt_head head;
	const char *name;
	size_t i;

	vt_frames_in_init(&in, VT_FRAME_MAX);
	json_array_foreach(hears, i, want)
	{
		json_t *value;

		if (!hear(&in, fd, &head))
			fail_msg("%s: answer %zu is missing", text_at(vector, "name"), i + 1);
		json_object_foreach((json_t *)want, name, value) check_heard(&head, name, value);
	}
	/* Why it ended is the last that it says. */
	while (hear(&in, fd, &head)) {
		assert_string_equal(vt_head_text(&head, "is", NULL), "log");
		ended = vt_head_int(&head, "level", -1) == 3;
	}
	if (ended != ends)
		fail_msg("%s: it %s", text_at(vector, "name"), ended ? "ends" : "does not end");
	vt_frames_in_done(&in);
}

static void test_sessions(void **state)
{
	(void)state;
	FOR_EACH(vector, "sessions")
	{
		struct vt_str stream = stream_of(json_object_get(vector, "says"));
		struct vt_host host = { 0 };
		struct vt_loop loop;
		struct vt_err err;
		int ends[2];

		check_keys(vector, "name says hears ends");
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		assert_int_equal(send(ends[0], stream.text, stream.len, MSG_DONTWAIT), stream.len);
		assert_int_equal(shutdown(ends[0], SHUT_WR), 0);
		assert_int_equal(vt_loop_init(&loop, &err), 0);
		assert_int_equal(vt_serve_private(&loop, &host, ends[1], -1, &err), 0);
		vt_loop_done(&loop);
		check_session(vector, ends[0]);
		close(ends[0]);
		vt_str_done(&stream);
	}
}

/* ---- the client ----------------------------------------------------------------------------- */

/* What is known of the one call. */
struct told {
	vitro_result *result;
	struct vt_str output; /* each stream's number, and its bytes */
};

static void on_output(void *user, int stream, const char *bytes, size_t len)
{
	struct told *told = user;

	if (len) {
		vt_str_addf(&told->output, "%d:", stream);
		vt_str_addn(&told->output, bytes, len);
	}
}

static void on_done(void *user, vitro_result *result)
{
	struct told *told = user;

	assert_null(told->result);
	told->result = result;
}

/* Whether all that is wanted is there, and as it should be. */
static bool is_like(const json_t *want, const json_t *got)
{
	const char *name;
	json_t *value;

	if (!json_is_object(want))
		return json_equal(want, got);
	json_object_foreach((json_t *)want, name,
			    value) if (!is_like(value, json_object_get(got, name))) return false;
	return true;
}

static void check_output(const json_t *vector, const struct vt_str *output)
{
	const json_t *piece;
	struct vt_str want;
	size_t i;

	vt_str_init(&want);
	json_array_foreach(json_object_get(vector, "output"), i, piece)
	{
		vt_str_addf(&want, "%d:", (int)json_integer_value(json_array_get(piece, 0)));
		add_bytes(&want, json_array_get(piece, 1));
	}
	assert_int_equal(output->len, want.len);
	assert_memory_equal(want.len ? output->text : "", want.len ? want.text : "", want.len);
	vt_str_done(&want);
}

static int unused(vitro_task *task)
{
	(void)task;
	return 0;
}

/* One call, number 1, of the id c1, is under way; then the supervisor says this, and is gone. */
static void check_message(const json_t *vector)
{
	static const struct vitro_tool tools[] = { { .name = "tool", .function = unused }, { 0 } };
	struct vt_str stream = stream_of(json_object_get(vector, "says"));
	struct told told = { 0 };
	struct vitro_request request = {
		.tool = "tool", .call_id = "c1", .user = &told, .on_output = on_output
	};
	vitro_toolhost *host = NULL;

	check_keys(vector, "name says result output");
	vt_str_init(&told.output);
	assert_int_equal(vitro_toolhost_new(&host, tools, NULL, NULL), 0);
	assert_int_equal(vitro_submit(host, &request, on_done), 0);
	assert_true(!stream.len || fed_say(stream.text, stream.len));
	assert_int_equal(shutdown(fed_fd, SHUT_WR), 0);
	while (!told.result)
		(void)vitro_dispatch(host);
	AUTO_JSON json_t *got = json_loads(vitro_result_json(told.result), 0, NULL);

	assert_non_null(got);
	if (!is_like(json_object_get(vector, "result"), got))
		fail_msg("%s: %s", text_at(vector, "name"), vitro_result_json(told.result));
	check_output(vector, &told.output);
	vitro_result_free(told.result);
	vitro_toolhost_free(host);
	vt_str_done(&told.output);
	vt_str_done(&stream);
}

static void test_messages(void **state)
{
	(void)state;
	FOR_EACH(vector, "messages")
	check_message(vector);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),   cmocka_unit_test(test_heads),
		cmocka_unit_test(test_written),  cmocka_unit_test(test_sessions),
		cmocka_unit_test(test_messages),
	};
	json_error_t error;

	vectors = argc == 2 ? json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error) : NULL;
	if (!vectors) {
		printf("Bail out! usage: vectors FILE, which is JSON\n");
		return 1;
	}
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	json_decref(vectors);
	return failed;
}
