/* SPDX-License-Identifier: Apache-2.0 */
/* How long a session waits for its client; of what is asked and told, test/serve. */
#include "serve/session.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

#define FRAME_NS (200 * VT_NS_PER_MS)
#define HELLO_NS (300 * VT_NS_PER_MS)

static const char hello[] = "\x1a\0\0\0\x1a\0\0\0{\"do\":\"hello\",\"version\":1}";
static const char count[] = "\x0e\0\0\0\x0e\0\0\0{\"do\":\"count\"}";

/* A server's session, and its client, who does one step each time. */
struct meeting {
	struct vt_loop loop;
	struct vt_commons commons;
	struct vt_session *session;
	struct vt_timer timer;
	int fd;
	int step;
	bool said; /* all that it has to say; then it waits for a second */
	int64_t begun;
	bool (*go_on)(struct meeting *meeting); /* false: it has nothing more to do */
	int64_t ended;                          /* after so long; 0: it has not */
};

static void session_ended(void *user, struct vt_session *session)
{
	struct meeting *meeting = user;

	(void)session;
	meeting->ended = vt_clock_now() - meeting->begun;
	meeting->loop.over = true;
}

static void timer_fires(struct vt_timer *timer)
{
	struct meeting *meeting = timer->owner;

	if (meeting->said) {
		meeting->loop.over = true;
		return;
	}
	meeting->said = !meeting->go_on(meeting);
	meeting->step++;
	vt_timer_set(timer, vt_clock_now() + (meeting->said ? 1000 : 50) * VT_NS_PER_MS);
}

static bool say_over(struct meeting *meeting)
{
	(void)meeting;
	return false;
}

/* What the client heard last is in text. */
static int64_t meet(bool (*go_on)(struct meeting *meeting), char *text, size_t size)
{
	static const struct vt_room room = { 8, 8, 8, 8, 8, 64 };
	struct meeting meeting = { .go_on = go_on, .begun = vt_clock_now() };
	struct vt_host host = { 0 };
	struct vt_err err;
	int pair[2];

	assert_int_equal(vt_loop_init(&meeting.loop, &err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	vt_commons_init(&meeting.commons, &meeting.loop, &host);
	vt_commons_share(&meeting.commons, &room);
	meeting.commons.limits.frame_ns = FRAME_NS;
	meeting.commons.limits.hello_ns = HELLO_NS;
	meeting.commons.user = &meeting;
	meeting.commons.ended = session_ended;
	meeting.fd = pair[0];
	const struct vt_session_peer peer = { .fd = pair[1], .program_fd = -1 };

	assert_int_equal(vt_session_new(&meeting.commons, &peer, &meeting.session, &err), 0);
	meeting.timer = (struct vt_timer){ .fire = timer_fires, .owner = &meeting };
	vt_loop_add_timer(&meeting.loop, &meeting.timer);
	vt_timer_set(&meeting.timer, 0);
	assert_int_equal(vt_loop_run(&meeting.loop, &err), 0);
	ssize_t len = recv(meeting.fd, text, size - 1, MSG_DONTWAIT);

	for (ssize_t i = 0; i < len; i++)
		text[i] = text[i] ? text[i] : '.';
	text[len > 0 ? len : 0] = '\0';
	vt_loop_remove_timer(&meeting.loop, &meeting.timer);
	vt_session_free(meeting.session);
	vt_commons_done(&meeting.commons);
	vt_loop_done(&meeting.loop);
	(void)close(meeting.fd);
	return meeting.ended;
}

static void say(const struct meeting *meeting, const char *bytes, size_t len)
{
	(void)send(meeting->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT); /* it may be over */
}

static void assert_ended(int64_t ns, int64_t from, const char *text, const char *why)
{
	if (ns < from || ns > from + VT_NS_PER_S)
		fail_msg("it ended after %lld ms", (long long)(ns / VT_NS_PER_MS));
	if (!strstr(text, why))
		fail_msg("'%s' is not in: %s", why, text);
}

static void test_silence(void **state)
{
	char text[4096];

	(void)state;
	assert_ended(meet(say_over, text, sizeof(text)), HELLO_NS, text, "hear a hello");
}

/* Byte by byte: a hello that never ends is none. */
static bool say_hello_slowly(struct meeting *meeting)
{
	say(meeting, hello + meeting->step, 1);
	return meeting->step < 20;
}

static void test_slow_hello(void **state)
{
	char text[4096];

	(void)state;
	assert_ended(meet(say_hello_slowly, text, sizeof(text)), HELLO_NS, text, "hear a hello");
}

static bool say_half(struct meeting *meeting)
{
	if (meeting->step == 0)
		say(meeting, hello, sizeof(hello) - 1);
	else
		say(meeting, count, 10);
	return meeting->step < 1;
}

static void test_half_a_frame(void **state)
{
	char text[4096];

	(void)state;
	assert_ended(meet(say_half, text, sizeof(text)), FRAME_NS, text, "has not come whole");
}

/* A byte now and then gives no further time. */
static bool say_slowly(struct meeting *meeting)
{
	if (meeting->step == 0)
		say(meeting, hello, sizeof(hello) - 1);
	else
		say(meeting, count + meeting->step - 1, 1);
	return meeting->step < 16;
}

static void test_a_byte_now_and_then(void **state)
{
	char text[4096];

	(void)state;
	assert_ended(meet(say_slowly, text, sizeof(text)), FRAME_NS, text, "has not come whole");
}

/* Whole frames, each with the beginning of the next, for longer than one may take; and then
 * nothing. */
static bool say_on(struct meeting *meeting)
{
	if (meeting->step == 0) {
		say(meeting, hello, sizeof(hello) - 1);
		say(meeting, count, 4);
	} else {
		say(meeting, count + 4, sizeof(count) - 5);
		say(meeting, count, meeting->step < 10 ? 4 : 0);
	}
	return meeting->step < 10;
}

static void test_who_goes_on(void **state)
{
	char text[8192];

	(void)state;
	assert_int_equal(meet(say_on, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "\"is\":\"count\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silence),      cmocka_unit_test(test_slow_hello),
		cmocka_unit_test(test_half_a_frame), cmocka_unit_test(test_a_byte_now_and_then),
		cmocka_unit_test(test_who_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
