/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/clock.h"
#include "serve/turns.h"

/* A call: it says by a letter when it begins, and ends by itself or not. */
struct one {
	struct vt_turn turn;
	char letter;
};

static char said[64];
static struct vt_loop loop;
static struct vt_turns turns;

static void say(struct vt_turn *turn, bool expired)
{
	const struct one *one = (struct one *)turn;
	size_t len = strlen(said);

	said[len] = expired ? '!' : one->letter;
	said[len + 1] = '\0';
}

static void begin(struct vt_turn *turn)
{
	say(turn, false);
}

static void expire(struct vt_turn *turn)
{
	say(turn, true);
}

static bool ask(struct vt_turner *turner, struct one *one, char letter, int64_t due)
{
	*one = (struct one){ .turn = { .begin = begin, .expire = expire }, .letter = letter };
	return vt_turn_ask(turner, &one->turn, due);
}

static void stop(struct vt_timer *timer)
{
	struct vt_loop *running = timer->owner;

	running->over = true;
}

/* What is due happens. */
static void turn_loop(int64_t ns)
{
	struct vt_timer timer = { .fire = stop, .owner = &loop };
	struct vt_err err;

	loop.over = false;
	vt_loop_add_timer(&loop, &timer);
	vt_timer_set(&timer, vt_clock_now() + ns);
	assert_int_equal(vt_loop_run(&loop, &err), 0);
	vt_loop_remove_timer(&loop, &timer);
}

static int set_up(void **state)
{
	struct vt_err err;

	(void)state;
	said[0] = '\0';
	return vt_loop_init(&loop, &err);
}

static int tear_down(void **state)
{
	(void)state;
	vt_turns_done(&turns, &loop);
	vt_loop_done(&loop);
	return 0;
}

/* Two clients that wait take turns, however many calls one of them has. */
static void test_turns(void **state)
{
	struct vt_turner a, b;
	struct one as[6], bs[2];

	(void)state;
	vt_turns_init(&turns, &loop, 2);
	vt_turner_init(&a, &turns, 2);
	vt_turner_init(&b, &turns, 2);
	assert_true(ask(&a, &as[0], 'a', INT64_MAX));
	assert_true(ask(&a, &as[1], 'a', INT64_MAX));
	for (int i = 2; i < 6; i++)
		assert_false(ask(&a, &as[i], 'a', INT64_MAX));
	for (int i = 0; i < 2; i++)
		assert_false(ask(&b, &bs[i], 'b', INT64_MAX));
	assert_int_equal(turns.waiting, 6);
	turn_loop(VT_NS_PER_MS);
	assert_string_equal(said, ""); /* nothing is over */
	vt_turn_end(&as[0].turn);
	turn_loop(VT_NS_PER_MS);
	assert_string_equal(said, "a");
	vt_turn_end(&as[1].turn);
	turn_loop(VT_NS_PER_MS);
	assert_string_equal(said, "ab");
	vt_turn_end(&as[2].turn);
	vt_turn_end(&bs[0].turn);
	turn_loop(VT_NS_PER_MS);
	assert_string_equal(said, "abab");
	vt_turn_end(&as[3].turn);
	vt_turn_end(&bs[1].turn);
	turn_loop(VT_NS_PER_MS);
	assert_string_equal(said, "ababaa");
	vt_turn_end(&as[4].turn);
	vt_turn_end(&as[5].turn);
	assert_int_equal(turns.live, 0);
	assert_int_equal(turns.waiting, 0);
}

/* One client has no more than its share, though there is more. */
static void test_share(void **state)
{
	struct vt_turner a, b;
	struct one as[2], bs;

	(void)state;
	vt_turns_init(&turns, &loop, 2);
	vt_turner_init(&a, &turns, 1);
	vt_turner_init(&b, &turns, 1);
	assert_true(ask(&a, &as[0], 'a', INT64_MAX));
	assert_false(ask(&a, &as[1], 'a', INT64_MAX));
	assert_true(ask(&b, &bs, 'b', INT64_MAX));
	vt_turn_end(&as[0].turn);
	turn_loop(VT_NS_PER_MS);
	assert_string_equal(said, "a");
	vt_turn_end(&as[1].turn);
	vt_turn_end(&bs.turn);
	assert_int_equal(turns.live, 0);
}

/* However many take all that they can, the next has one. */
static void test_greedy(void **state)
{
	enum { CLIENTS = 4, LIVE = 64 };
	static const unsigned wanted[CLIENTS] = { 48, 12, 3, 1 };
	static struct one all[CLIENTS][LIVE];
	struct vt_turner clients[CLIENTS];

	(void)state;
	vt_turns_init(&turns, &loop, LIVE);
	for (int i = 0; i < CLIENTS; i++) {
		unsigned count = 0;

		vt_turner_init(&clients[i], &turns, LIVE);
		while (ask(&clients[i], &all[i][count], 'x', INT64_MAX))
			count++;
		assert_int_equal(count, wanted[i]);
		vt_turn_end(&all[i][count].turn); /* it does not wait */
	}
	for (int i = 0; i < CLIENTS; i++)
		for (unsigned j = 0; j < wanted[i]; j++)
			vt_turn_end(&all[i][j].turn);
	assert_int_equal(turns.live, 0);
}

static void test_expiry(void **state)
{
	struct vt_turner a;
	struct one as[3];

	(void)state;
	vt_turns_init(&turns, &loop, 1);
	vt_turner_init(&a, &turns, 1);
	assert_true(ask(&a, &as[0], 'a', INT64_MAX));
	assert_false(ask(&a, &as[1], 'x', vt_clock_now() + 5 * VT_NS_PER_MS));
	assert_false(ask(&a, &as[2], 'b', INT64_MAX));
	turn_loop(50 * VT_NS_PER_MS);
	assert_string_equal(said, "!");
	vt_turn_end(&as[1].turn); /* it is over already, which is fine */
	vt_turn_end(&as[0].turn);
	turn_loop(VT_NS_PER_MS);
	assert_string_equal(said, "!b");
	vt_turn_end(&as[2].turn);
	assert_int_equal(turns.live, 0);
}

/* Of a client that is gone, what waited waits no more; what runs counts until its end. */
static void test_client_gone(void **state)
{
	struct vt_turner b;
	struct vt_turner *a = test_malloc(sizeof(*a));
	struct one as[2], bs;

	(void)state;
	vt_turns_init(&turns, &loop, 1);
	vt_turner_init(a, &turns, 1);
	vt_turner_init(&b, &turns, 1);
	assert_true(ask(a, &as[0], 'a', INT64_MAX));
	assert_false(ask(a, &as[1], 'a', INT64_MAX));
	vt_turn_end(&as[1].turn);
	assert_false(ask(&b, &bs, 'b', INT64_MAX));
	vt_turn_end(&as[0].turn);
	test_free(a);
	turn_loop(VT_NS_PER_MS);
	assert_string_equal(said, "b");
	vt_turn_end(&bs.turn);
	assert_int_equal(turns.live, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_turns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_share, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_greedy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_expiry, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_client_gone, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
