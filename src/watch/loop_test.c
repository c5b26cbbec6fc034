/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "watch/loop.h"

/* What happened, as letters in order. */
struct tale {
	struct vt_loop loop;
	struct vt_err err;
	char text[64];
	struct vt_watch a, b;
	struct vt_timer first, second, last;
	int pipe_a[2], pipe_b[2];
};

static void tell(struct tale *tale, char what)
{
	size_t len = strlen(tale->text);

	assert_true(len < sizeof(tale->text) - 1);
	tale->text[len] = what;
}

static void first_fires(struct vt_timer *timer)
{
	tell(timer->owner, '1');
}

static void second_fires(struct vt_timer *timer)
{
	tell(timer->owner, '2');
}

static void last_fires(struct vt_timer *timer)
{
	struct tale *tale = timer->owner;

	tell(tale, '.');
	tale->loop.over = true;
}

static void a_ready(struct vt_watch *source, uint32_t events)
{
	char byte;

	(void)events;
	tell(source->owner, 'a');
	assert_int_equal(read(source->fd, &byte, 1), 1);
}

static void b_ready(struct vt_watch *source, uint32_t events)
{
	char byte;

	(void)events;
	tell(source->owner, 'b');
	assert_int_equal(read(source->fd, &byte, 1), 1);
}

static int begin(void **state)
{
	static struct tale tale;

	tale = (struct tale){
		.first = { .fire = first_fires, .owner = &tale },
		.second = { .fire = second_fires, .owner = &tale },
		.last = { .fire = last_fires, .owner = &tale },
	};
	*state = &tale;
	if (vt_loop_init(&tale.loop, &tale.err) < 0 || pipe2(tale.pipe_a, O_CLOEXEC) < 0 ||
	    pipe2(tale.pipe_b, O_CLOEXEC) < 0)
		return -1;
	tale.a = (struct vt_watch){ .fd = tale.pipe_a[0], .ready = a_ready, .owner = &tale };
	tale.b = (struct vt_watch){ .fd = tale.pipe_b[0], .ready = b_ready, .owner = &tale };
	vt_loop_add_timer(&tale.loop, &tale.first);
	vt_loop_add_timer(&tale.loop, &tale.second);
	vt_loop_add_timer(&tale.loop, &tale.last);
	return 0;
}

static int end(void **state)
{
	struct tale *tale = *state;

	vt_loop_done(&tale->loop);
	assert_int_equal(tale->loop.epoll_fd, -1);
	(void)close(tale->pipe_a[0]);
	(void)close(tale->pipe_a[1]);
	(void)close(tale->pipe_b[0]);
	(void)close(tale->pipe_b[1]);
	return 0;
}

static int64_t after_ms(int64_t ms)
{
	return vt_clock_now() + ms * VT_NS_PER_MS;
}

static void run(struct tale *tale)
{
	tale->loop.over = false;
	assert_int_equal(vt_loop_run(&tale->loop, &tale->err), 0);
}

/* In the order of their times, each once, and not before. */
static void test_timers(void **state)
{
	struct tale *tale = *state;
	int64_t start = vt_clock_now();

	vt_timer_set(&tale->last, after_ms(60));
	vt_timer_set(&tale->second, after_ms(30));
	vt_timer_set(&tale->first, after_ms(5));
	run(tale);
	assert_string_equal(tale->text, "12.");
	assert_true(vt_clock_now() - start >= 60 * VT_NS_PER_MS);
	assert_true(tale->first.when == INT64_MAX && tale->last.when == INT64_MAX);
}

/* One that is not set never fires; set again, it fires again; set in the past, at once. */
static void test_timers_again(void **state)
{
	struct tale *tale = *state;

	vt_timer_set(&tale->first, after_ms(-1000));
	vt_timer_set(&tale->last, after_ms(10));
	run(tale);
	vt_timer_set(&tale->first, 0);
	vt_timer_set(&tale->last, after_ms(10));
	run(tale);
	assert_string_equal(tale->text, "1.1.");
}

static void repeats(struct vt_timer *timer)
{
	struct tale *tale = timer->owner;

	tell(tale, 'r');
	if (strlen(tale->text) < 3)
		vt_timer_set(timer, after_ms(1));
	else
		tale->loop.over = true;
}

static void test_timer_sets_itself(void **state)
{
	struct tale *tale = *state;

	tale->first.fire = repeats;
	vt_timer_set(&tale->first, after_ms(1));
	run(tale);
	assert_string_equal(tale->text, "rrr");
}

enum { MANY = 1000 };

struct many {
	struct vt_timer timers[MANY], last;
	struct vt_loop loop;
	int64_t when[MANY], before;
	int fired;
};

static void one_of_many_fires(struct vt_timer *timer)
{
	struct many *many = timer->owner;
	int64_t when = many->when[timer - many->timers];

	assert_true(when >= many->before && when <= vt_clock_now());
	assert_true(timer->when == INT64_MAX);
	many->before = when;
	many->fired++;
}

static void many_are_over(struct vt_timer *timer)
{
	struct many *many = timer->owner;

	many->loop.over = true;
}

/* In order whatever the order they were set in, moved and forgotten; no two at the same time. */
static void test_many_timers(void **state)
{
	static struct many many;
	unsigned seed = 1;
	int kept = 0;

	(void)state;
	many = (struct many){ .last = { .fire = many_are_over, .owner = &many } };
	struct vt_err err;

	assert_int_equal(vt_loop_init(&many.loop, &err), 0);
	int64_t start = vt_clock_now();

	for (int i = 0; i < MANY; i++) {
		many.timers[i] = (struct vt_timer){ .fire = one_of_many_fires, .owner = &many };
		vt_loop_add_timer(&many.loop, &many.timers[i]);
	}
	for (int i = 0; i < 5 * MANY; i++) {
		seed = seed * 1103515245 + 12345;
		int which = (int)(seed >> 8) % MANY;

		many.when[which] = start + (int64_t)(seed >> 4) % (30 * VT_NS_PER_MS);
		vt_timer_set(&many.timers[which], many.when[which]);
	}
	for (int i = 0; i < MANY; i += 3) {
		vt_timer_set(&many.timers[i], INT64_MAX);
		if (i % 2)
			vt_loop_remove_timer(&many.loop, &many.timers[i]);
	}
	for (int i = 1; i < MANY; i += 3) {
		many.when[i] = start + i;
		vt_timer_hasten(&many.timers[i], many.when[i]);
		vt_timer_hasten(&many.timers[i], start + VT_NS_PER_S); /* it is set to less */
	}
	for (int i = 0; i < MANY; i++)
		kept += many.timers[i].when != INT64_MAX;
	vt_loop_add_timer(&many.loop, &many.last);
	vt_timer_set(&many.last, start + 40 * VT_NS_PER_MS);
	assert_int_equal(vt_loop_run(&many.loop, &err), 0);
	assert_true(kept > MANY / 2);
	assert_int_equal(many.fired, kept);
	vt_loop_done(&many.loop);
}

static void sets_itself_at_once(struct vt_timer *timer)
{
	tell(timer->owner, 'r');
	vt_timer_set(timer, 0);
}

/* Whoever is always due leaves others their turn. */
static void test_timer_is_always_due(void **state)
{
	struct tale *tale = *state;

	tale->first.fire = sets_itself_at_once;
	vt_timer_set(&tale->first, 0);
	vt_timer_set(&tale->last, 1);
	run(tale);
	assert_string_equal(tale->text, "r.");
}

static void forgets_second(struct vt_timer *timer)
{
	struct tale *tale = timer->owner;

	tell(tale, 'f');
	vt_loop_remove_timer(&tale->loop, &tale->second);
	vt_timer_set(&tale->last, after_ms(5));
}

/* Two others are due with it: one is forgotten, and one is put off. */
static void test_changed_before_its_turn(void **state)
{
	struct tale *tale = *state;

	tale->first.fire = forgets_second;
	vt_timer_set(&tale->first, 1);
	vt_timer_set(&tale->second, 2);
	vt_timer_set(&tale->last, 3);
	run(tale);
	assert_string_equal(tale->text, "f.");
}

/* Where there is no timerfd. */
static void test_without_a_clock(void **state)
{
	struct tale *tale = *state;
	int64_t start = vt_clock_now();

	assert_true(tale->loop.clock_fd >= 0);
	assert_int_equal(close(tale->loop.clock_fd), 0);
	tale->loop.clock_fd = -1;
	vt_timer_set(&tale->first, after_ms(5));
	vt_timer_set(&tale->last, after_ms(20));
	run(tale);
	assert_string_equal(tale->text, "1.");
	assert_true(vt_clock_now() - start >= 20 * VT_NS_PER_MS);
}

static void test_sources(void **state)
{
	struct tale *tale = *state;

	assert_int_equal(vt_loop_add(&tale->loop, &tale->a, EPOLLIN, &tale->err), 0);
	assert_int_equal(vt_loop_add(&tale->loop, &tale->a, EPOLLIN, &tale->err), 0); /* is there */
	assert_int_equal(vt_loop_add(&tale->loop, &tale->b, EPOLLIN, &tale->err), 0);
	assert_int_equal(write(tale->pipe_a[1], "xx", 2), 2);
	assert_int_equal(write(tale->pipe_b[1], "xx", 2), 2);
	vt_timer_set(&tale->last, after_ms(30));
	run(tale);
	/* nobody is served twice before the other was served once */
	assert_true(strcmp(tale->text, "abab.") == 0 || strcmp(tale->text, "baba.") == 0);
}

static void sees_the_end(struct vt_watch *source, uint32_t events)
{
	struct tale *tale = source->owner;

	tell(tale, events & EPOLLHUP ? 'h' : '?');
	tale->loop.over = true;
}

static void test_hang_up(void **state)
{
	struct tale *tale = *state;

	assert_int_equal(vt_loop_add(&tale->loop, &tale->a, EPOLLIN, &tale->err), 0);
	assert_int_equal(close(tale->pipe_a[1]), 0);
	tale->pipe_a[1] = -1;
	tale->a.ready = sees_the_end;
	run(tale);
	assert_string_equal(tale->text, "h");
}

static void test_remove(void **state)
{
	struct tale *tale = *state;

	vt_loop_remove(&tale->loop, &tale->a); /* never added */
	assert_int_equal(vt_loop_add(&tale->loop, &tale->a, EPOLLIN, &tale->err), 0);
	assert_int_equal(write(tale->pipe_a[1], "x", 1), 1);
	vt_loop_remove(&tale->loop, &tale->a);
	assert_false(tale->a.added);
	vt_timer_set(&tale->last, after_ms(20));
	run(tale);
	assert_string_equal(tale->text, ".");
	assert_int_equal(vt_loop_add(&tale->loop, &tale->a, EPOLLIN, &tale->err), 0);
	vt_timer_set(&tale->last, after_ms(20));
	run(tale);
	assert_string_equal(tale->text, ".a.");
}

static void notes(struct vt_watch *source, uint32_t events)
{
	tell(source->owner, events == EPOLLIN ? 'n' : '?');
}

/* Told without an event, once, and before what is due; but not where nobody watches it any more. */
static void test_try(void **state)
{
	struct tale *tale = *state;

	tale->a.ready = notes;
	vt_loop_try(&tale->loop, &tale->a); /* never added */
	assert_int_equal(vt_loop_add(&tale->loop, &tale->a, EPOLLIN, &tale->err), 0);
	vt_timer_set(&tale->last, 0);
	run(tale);
	assert_string_equal(tale->text, ".");
	vt_loop_try(&tale->loop, &tale->a);
	vt_timer_set(&tale->last, after_ms(5));
	run(tale);
	assert_string_equal(tale->text, ".n.");
	vt_loop_try(&tale->loop, &tale->a);
	vt_loop_remove(&tale->loop, &tale->a);
	vt_timer_set(&tale->last, after_ms(5));
	run(tale);
	assert_string_equal(tale->text, ".n..");
}

/* Both are ready; whoever comes first takes the other away, which must not be called then. */
static void takes_other_away(struct vt_watch *source, uint32_t events)
{
	struct tale *tale = source->owner;

	(void)events;
	tell(tale, 'x');
	vt_loop_remove(&tale->loop, source == &tale->a ? &tale->b : &tale->a);
	vt_loop_remove(&tale->loop, source);
}

static void test_remove_in_a_call_back(void **state)
{
	struct tale *tale = *state;

	tale->a.ready = takes_other_away;
	tale->b.ready = takes_other_away;
	assert_int_equal(vt_loop_add(&tale->loop, &tale->a, EPOLLIN, &tale->err), 0);
	assert_int_equal(vt_loop_add(&tale->loop, &tale->b, EPOLLIN, &tale->err), 0);
	assert_int_equal(write(tale->pipe_a[1], "x", 1), 1);
	assert_int_equal(write(tale->pipe_b[1], "x", 1), 1);
	vt_timer_set(&tale->last, after_ms(20));
	run(tale);
	assert_string_equal(tale->text, "x.");
}

/* A source that is always ready does not keep a deadline waiting. */
static void never_done(struct vt_watch *source, uint32_t events)
{
	(void)source;
	(void)events;
}

static void test_busy_source(void **state)
{
	struct tale *tale = *state;

	tale->a.ready = never_done;
	assert_int_equal(vt_loop_add(&tale->loop, &tale->a, EPOLLIN, &tale->err), 0);
	assert_int_equal(write(tale->pipe_a[1], "x", 1), 1);
	vt_timer_set(&tale->last, after_ms(20));
	run(tale);
	assert_string_equal(tale->text, ".");
}

/* No timer fires after a source has ended the loop. */
static void ends_it(struct vt_watch *source, uint32_t events)
{
	struct tale *tale = source->owner;

	(void)events;
	tell(tale, 'e');
	vt_timer_set(&tale->last, 0);
	tale->loop.over = true;
}

static void test_over(void **state)
{
	struct tale *tale = *state;

	tale->a.ready = ends_it;
	assert_int_equal(vt_loop_add(&tale->loop, &tale->a, EPOLLIN, &tale->err), 0);
	assert_int_equal(write(tale->pipe_a[1], "x", 1), 1);
	run(tale);
	assert_string_equal(tale->text, "e");
}

static void on_alarm(int number)
{
	(void)number;
}

/* A signal that somebody handles is no reason to fail. */
static void test_interrupted(void **state)
{
	const struct sigaction handler = { .sa_handler = on_alarm };
	const struct itimerval often = { { 0, 3000 }, { 0, 3000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct tale *tale = *state;
	struct sigaction old;

	assert_int_equal(sigaction(SIGALRM, &handler, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	vt_timer_set(&tale->last, after_ms(40));
	run(tale);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
	assert_string_equal(tale->text, ".");
}

static void test_failures(void **state)
{
	struct tale *tale = *state;
	struct vt_watch closed = { .fd = -1, .ready = a_ready, .owner = tale };

	assert_int_equal(vt_loop_add(&tale->loop, &closed, EPOLLIN, &tale->err), -EBADF);
	assert_int_equal(tale->err.step, VT_STEP_WATCH);
	assert_false(closed.added);
	vt_loop_done(&tale->loop);
	assert_int_equal(vt_loop_run(&tale->loop, &tale->err), -EBADF);
}

#define STAGED(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGED(test_timers),
		STAGED(test_timers_again),
		STAGED(test_timer_sets_itself),
		cmocka_unit_test(test_many_timers),
		STAGED(test_timer_is_always_due),
		STAGED(test_changed_before_its_turn),
		STAGED(test_without_a_clock),
		STAGED(test_sources),
		STAGED(test_hang_up),
		STAGED(test_remove),
		STAGED(test_try),
		STAGED(test_remove_in_a_call_back),
		STAGED(test_busy_source),
		STAGED(test_over),
		STAGED(test_interrupted),
		STAGED(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
