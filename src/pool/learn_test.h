/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for zygotes that learn, be their cells bare or those of a hull. */
#pragma once

#include "pool/makers_test.h"

/* ---- the zygote ---------------------------------------------------------------------------- */

static char known[256]; /* names, each with a space behind it */

static void know(const char *name)
{
	strcat(strcat(known, name), " ");
}

static void obey_lesson(struct vt_zygote *zygote, const char *name)
{
	struct vt_err err;
	bool bad = strcmp(name, "bad") == 0;

	if (strcmp(name, "end") == 0)
		_exit(7);
	if (!bad)
		know(name);
	if (vt_zygote_tell(zygote, VT_NOTE_LEARNED, bad ? ENOEXEC : 0,
			   bad ? "bad: passed over" : "", &err) < 0)
		_exit(4);
}

/* One that another has learned without harm, and that ends who starts with it. */
static void begin_with(struct vt_zygote *zygote, const char *word)
{
	struct vt_err err;

	if (*word != '+')
		return;
	if (vt_zygote_tell(zygote, VT_NOTE_LOADS, 0, word + 1, &err) < 0 ||
	    strcmp(word, "+grim") == 0)
		_exit(7);
	know(word + 1);
}

/* words are those of the program, behind its mode. */
static _Noreturn void be_learner(char **words)
{
	struct vt_zygote zygote;
	struct vt_zygote_order order;
	struct vt_talk talk;
	struct vt_err err;
	int r = vt_zygote_join(&zygote, 3, &err);

	while (r == 0 && *words)
		begin_with(&zygote, *words++);
	if (r == 0)
		r = vt_zygote_ready(&zygote, &err) < 0 ? -1 : 1;
	while (r > 0) {
		if (vt_zygote_take(&zygote, &order, &err) < 0)
			_exit(4);
		if (order.note.kind == VT_NOTE_LEARN)
			obey_lesson(&zygote, order.note.err.what);
		else
			r = vt_zygote_enter(&zygote, &order, &err);
	}
	vt_talk_in_init(&heard, 256 << 20);
	if (r < 0 || vt_zygote_park(&err) < 0)
		_exit(5);
	hear(&talk);
	if (strcmp(talk.name, "known") == 0)
		say(VT_TALK_RESULT, 0, "", known, strlen(known));
	be_tool(talk.name, talk.body, talk.body_len);
}

/* ---- the tests ----------------------------------------------------------------------------- */

static bool all_are_fresh(const struct watched *w)
{
	return w->pool->learned && !w->pool->zygote->lesson &&
	       !vt_lessons_next(&w->pool->lessons) && !vt_pool_has_stale(w->pool) &&
	       !vt_pool_under_way(w->pool);
}

/* Until every cell knows what the zygote does; meanwhile there are as many as there are to be. */
static void run_until_fresh(struct watched *w)
{
	for (int ms = 0; !all_are_fresh(w); ms++) {
		if (ms > PATIENCE_MS)
			fail_msg("cells of before are not replaced");
		if (w->pool->count[VT_WARM_PARKED] < w->pool->target)
			fail_msg("%u of %u cells are ready", w->pool->count[VT_WARM_PARKED],
				 w->pool->target);
		run_for(w, 1);
	}
}

static void run_until_ready(struct watched *w)
{
	while (w->pool->count[VT_WARM_PARKED] < w->pool->target || vt_pool_under_way(w->pool))
		run_for(w, 5);
}

static void start_learner(struct watched *w, const char *tells)
{
	logged = told = 0;
	to_be_told = tells;
	start_watched_as(w, "learner");
	run_until_ready(w);
}

static void test_cells_learn(void **state)
{
	struct watched w;
	uint64_t made;

	(void)state;
	start_learner(&w, NULL);
	assert_string_equal(call_one(&w, "known", "")->value, "");
	run_until_ready(&w);
	made = w.pool->counts.cells_made;
	vt_pool_learn(w.pool, "one");
	vt_pool_learn(w.pool, "two");
	vt_pool_learn(w.pool, "one");
	run_until_fresh(&w);
	assert_true(w.pool->counts.cells_made >= made + w.pool->target);
	assert_string_equal(call_one(&w, "known", "")->value, "one two ");
	run_until_ready(&w);
	made = w.pool->counts.cells_made;
	vt_pool_learn(w.pool, "two");
	run_for(&w, 50);
	assert_int_equal(w.pool->counts.cells_made, made); /* it was known */
	assert_int_equal(logged, 0);
	end_watched(&w);
}

/* Those that are there serve calls until others are, and others come first then. */
static void test_new_cells_come_first(void **state)
{
	struct watched w;
	bool fresh = false;

	(void)state;
	start_learner(&w, NULL);
	vt_pool_learn(w.pool, "one");
	assert_string_equal(call_one(&w, "known", "")->value, "");
	for (int i = 0; i < 20; i++) {
		bool has = strcmp(call_one(&w, "known", "")->value, "one ") == 0;

		assert_true(has || !fresh);
		fresh = has;
		run_for(&w, 5);
	}
	assert_true(fresh);
	end_watched(&w);
}

/* Of six forks each: every one knows what the first has learned, before it is ready. */
static void test_next_zygotes_know(void **state)
{
	struct watched w;
	unsigned changes = 0;
	char last[16];

	(void)state;
	start_learner(&w, NULL);
	vt_pool_learn(w.pool, "one");
	vt_pool_learn(w.pool, "two");
	run_until_fresh(&w);
	for (int i = 0; i < 40; i++) {
		struct made *made = call_one(&w, "canary", "");

		changes += i > 0 && memcmp(last, made->value, sizeof(last)) != 0;
		memcpy(last, made->value, sizeof(last));
		assert_string_equal(call_one(&w, "known", "")->value, "one two ");
	}
	assert_true(changes >= 2);
	assert_int_equal(logged, 0);
	end_watched(&w);
}

static void test_what_cannot_be_learned(void **state)
{
	struct watched w;

	(void)state;
	start_learner(&w, "bad: passed over");
	vt_pool_learn(w.pool, "bad");
	vt_pool_learn(w.pool, "one");
	run_until_fresh(&w);
	assert_int_equal(told, 1);
	assert_string_equal(call_one(&w, "known", "")->value, "one ");
	vt_pool_learn(w.pool, "bad"); /* it may have become better */
	run_until_told(&w, 2);
	assert_string_equal(call_one(&w, "known", "")->value, "one ");
	end_watched(&w);
}

/* It is asked once, and the next zygote knows the others. */
static void test_lesson_ends_the_zygote(void **state)
{
	struct watched w;

	(void)state;
	start_learner(&w, "'end' is not imported ahead of calls");
	vt_pool_learn(w.pool, "one");
	run_until_fresh(&w);
	vt_pool_learn(w.pool, "end");
	run_until_told(&w, 1);
	for (int i = 0; i < 5; i++)
		assert_string_equal(call_one(&w, "known", "")->value, "one ");
	assert_int_equal(told, 1);
	end_watched(&w);
}

/* What is loaded when a zygote dies before it is ready is left out by the next: no call notices. */
static void test_what_ends_zygotes_is_left_out(void **state)
{
	struct watched w;

	(void)state;
	start_learner(&w, "'grim' is not imported ahead of calls from now on");
	vt_pool_learn(w.pool, "one");
	vt_pool_learn(w.pool, "grim");
	run_until_fresh(&w);
	assert_string_equal(call_one(&w, "known", "")->value, "one grim ");
	signal_zygote(w.pool->zygote, SIGKILL);
	run_until_told(&w, 1);
	for (int i = 0; i < 20; i++)
		assert_int_equal(call_one(&w, "known", "")->verdict.status, VT_STATUS_OK);
	assert_string_equal(call_one(&w, "known", "")->value, "one ");
	assert_int_equal(told, 1);
	end_watched(&w);
}

/* Where nothing can be learned, nothing happens. */
static void test_others_do_not_learn(void **state)
{
	struct watched w;

	(void)state;
	logged = 0;
	start_watched(&w);
	vt_pool_learn(w.pool, "one");
	assert_string_equal(call_one(&w, "echo", "1")->value, "1");
	assert_int_equal(w.pool->lessons.count, 0);
	assert_int_equal(logged, 0);
	end_watched(&w);
}

/* clang-format off */
#define LEARN_TESTS \
	cmocka_unit_test(test_cells_learn), \
	cmocka_unit_test(test_new_cells_come_first), \
	cmocka_unit_test(test_next_zygotes_know), \
	cmocka_unit_test(test_what_cannot_be_learned), \
	cmocka_unit_test(test_lesson_ends_the_zygote), \
	cmocka_unit_test(test_what_ends_zygotes_is_left_out), \
	cmocka_unit_test(test_others_do_not_learn)
/* clang-format on */
