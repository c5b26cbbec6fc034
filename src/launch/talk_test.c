/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/talk.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LARGE = 5 << 20 };

struct wire {
	int ends[2];
	struct vt_talk_in in;
	struct vt_err err;
};

static int set_up(void **state)
{
	static struct wire wire;

	vt_talk_in_init(&wire.in, LARGE);
	*state = &wire;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wire.ends);
}

static int tear_down(void **state)
{
	struct wire *wire = *state;

	vt_talk_in_done(&wire->in);
	return close(wire->ends[0]) + close(wire->ends[1]);
}

static int next(struct wire *wire, struct vt_talk *talk)
{
	return vt_talk_next(&wire->in, wire->ends[1], MSG_DONTWAIT, talk, &wire->err);
}

static void assert_talk(const struct vt_talk *talk, const char *name, const char *body)
{
	assert_int_equal(talk->name_len, strlen(name));
	assert_string_equal(talk->name, name);
	assert_int_equal(talk->body_len, strlen(body));
	assert_string_equal(talk->body, body);
}

/* Byte by byte, with every part empty or not. */
static void test_in_pieces(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" }, { "n", "" }, { "", "b" }, { "name", "body" }
	};
	struct wire *wire = *state;
	struct vt_talk talk;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct vt_talk_head head = { .kind = VT_TALK_ASK,
						   .id = 7 + i,
						   .name_len = (uint32_t)strlen(cases[i][0]),
						   .body_len = strlen(cases[i][1]) };
		char bytes[128];
		size_t len = sizeof(head);

		memcpy(bytes, &head, len);
		memcpy(bytes + len, cases[i][0], head.name_len);
		len += head.name_len;
		memcpy(bytes + len, cases[i][1], head.body_len);
		len += head.body_len;
		for (size_t at = 0; at < len; at++) {
			assert_int_equal(next(wire, &talk), 0);
			assert_int_equal(send(wire->ends[0], bytes + at, 1, 0), 1);
		}
		assert_int_equal(next(wire, &talk), 1);
		assert_int_equal(talk.id, 7 + i);
		assert_talk(&talk, cases[i][0], cases[i][1]);
	}
	assert_int_equal(next(wire, &talk), 0);
}

static void say(struct wire *wire, const char *name, const char *body)
{
	const struct vt_talk talk = { .kind = VT_TALK_LOG,
				      .name = (char *)name,
				      .name_len = strlen(name),
				      .body = (char *)body,
				      .body_len = strlen(body) };
	size_t at = 0;

	assert_int_equal(vt_talk_send(wire->ends[0], MSG_DONTWAIT, &talk, &at, &wire->err), 1);
}

static void test_many_at_once(void **state)
{
	struct wire *wire = *state;
	struct vt_talk talk;
	char long_text[3000];

	memset(long_text, 'x', sizeof(long_text));
	long_text[sizeof(long_text) - 1] = '\0';
	say(wire, "one", "1");
	say(wire, "", long_text);
	say(wire, "three", "");
	assert_int_equal(next(wire, &talk), 1);
	assert_talk(&talk, "one", "1");
	assert_int_equal(next(wire, &talk), 1);
	assert_talk(&talk, "", long_text);
	assert_int_equal(next(wire, &talk), 1);
	assert_talk(&talk, "three", "");
	assert_int_equal(next(wire, &talk), 0);
}

/* As much as is allowed, in what the socket holds at a time; and one byte more. */
static void test_large(void **state)
{
	struct wire *wire = *state;
	char *body = malloc(LARGE + 1), name[] = "value";
	struct vt_talk talk = { .kind = VT_TALK_RESULT,
				.name = name,
				.name_len = 5,
				.body = body,
				.body_len = LARGE },
		       heard;
	size_t at = 0;
	int r = 0;

	assert_non_null(body);
	for (size_t i = 0; i < LARGE; i++)
		body[i] = (char)(i * 13 >> 4);
	while (r == 0) {
		assert_true(vt_talk_send(wire->ends[0], MSG_DONTWAIT, &talk, &at, &wire->err) >= 0);
		r = next(wire, &heard);
		/* What was promised costs nothing before it came. */
		assert_true(wire->in.cap <= 4096 || wire->in.cap <= 8 * at);
	}
	assert_int_equal(r, 1);
	assert_string_equal(heard.name, "value");
	assert_int_equal(heard.body_len, LARGE);
	assert_memory_equal(heard.body, body, LARGE);
	assert_int_equal(heard.body[LARGE], '\0');
	talk.body_len = LARGE + 1;
	at = 0;
	assert_int_equal(vt_talk_send(wire->ends[0], MSG_DONTWAIT, &talk, &at, &wire->err), 0);
	assert_int_equal(next(wire, &heard), -EMSGSIZE);
	free(body);
}

static void test_refused(void **state)
{
	static const struct vt_talk_head heads[] = {
		{ .kind = 0 },
		{ .kind = 99 },
		{ .kind = VT_TALK_LOG, .reserved = 1 },
		{ .kind = VT_TALK_LOG, .name_len = VT_TALK_NAME_MAX + 1 },
	};
	struct wire *wire = *state;
	struct vt_talk talk;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		assert_int_equal(send(wire->ends[0], &heads[i], sizeof(heads[i]), 0),
				 sizeof(heads[i]));
		assert_int_equal(next(wire, &talk), -EBADMSG);
		vt_talk_in_done(&wire->in);
	}
	const struct vt_talk_head log = { .kind = VT_TALK_LOG, .body_len = VT_TALK_LOG_MAX + 1 };

	assert_int_equal(send(wire->ends[0], &log, sizeof(log), 0), sizeof(log));
	assert_int_equal(next(wire, &talk), -EMSGSIZE);
}

static void test_closed(void **state)
{
	struct wire *wire = *state;
	struct vt_talk talk;

	assert_int_equal(send(wire->ends[0], "x", 1, 0), 1);
	assert_int_equal(shutdown(wire->ends[0], SHUT_WR), 0);
	assert_int_equal(next(wire, &talk), -EPIPE);
}

#define WIRED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WIRED(test_in_pieces), WIRED(test_many_at_once), WIRED(test_large),
		WIRED(test_refused),   WIRED(test_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
