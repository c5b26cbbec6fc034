/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for the zygotes of pools, be their cells bare or those of a hull. */
#pragma once

#include "pool/stage_test.h"

#include "pool/pool_private.h"

/* A zygote is replaced while calls go on: none of them notices, and the next ones have another's
 * memory. */
static void test_zygotes_are_renewed(void **state)
{
	struct watched w;
	unsigned changes = 0;
	char last[16];

	(void)state;
	logged = 0;
	start_watched(&w);
	for (int i = 0; i < 60; i++) {
		struct made *made = call_one(&w, "canary", "");

		assert_int_equal(made->verdict.status, VT_STATUS_OK);
		assert_int_equal(made->value_len, sizeof(last));
		changes += i > 0 && memcmp(last, made->value, sizeof(last)) != 0;
		memcpy(last, made->value, sizeof(last));
	}
	assert_true(changes >= 2);
	assert_int_equal(logged, 0); /* no cell failed, and no zygote */
	end_watched(&w);
}

/* A program that never comes to where it is to be ready. */
static void test_zygote_hangs(void **state)
{
	struct watched w;
	struct made *made;

	(void)state;
	told = 0;
	to_be_told = "it takes longer than 0.2 s to begin (it said: waiting)";
	start_ms = 200;
	start_watched_as(&w, "hang");
	run_until_told(&w, 1); /* without any call */
	made = call_one(&w, "echo", "");
	assert_int_equal(made->verdict.status, VT_STATUS_ERROR);
	assert_non_null(strstr(made->verdict.message, to_be_told));
	end_watched(&w);
	start_ms = 0;
}

/* What a program says may be anybody's words: a log is read on terminals. */
static void test_what_a_zygote_says_is_escaped(void **state)
{
	struct watched w;

	(void)state;
	told = 0;
	to_be_told = "red \\u001b[31m";
	start_watched_as(&w, "fail");
	run_until_told(&w, 1);
	end_watched(&w);
}

/* An interpreter that never says anything is not waited for as long as one that loads something. */
static void test_silent_zygote(void **state)
{
	struct watched w;

	(void)state;
	told = 0;
	to_be_told = "it takes longer than 0.5 s to begin";
	start_ms = 2000;
	advice = "";
	start_watched_as(&w, "hang");
	run_until_told(&w, 1);
	end_watched(&w);
	start_ms = 0;
	advice = NULL;
}

/* The one that is to take another's place never comes: that is tried again. */
static void test_next_zygote_hangs(void **state)
{
	static char mode[8];
	struct watched w;
	char first[16];

	(void)state;
	told = 0;
	to_be_told = "goes on: cannot keep";
	start_ms = 2000;
	strcpy(mode, "");
	start_watched_as(&w, mode);
	memcpy(first, call_one(&w, "canary", "")->value, sizeof(first));
	strcpy(mode, "hang");
	for (int i = 0; i < 10; i++)
		assert_memory_equal(call_one(&w, "canary", "")->value, first, sizeof(first));
	run_until_told(&w, 1);
	strcpy(mode, "");
	const int64_t until = vt_clock_now() + PATIENCE_MS * VT_NS_PER_MS;

	while (memcmp(call_one(&w, "canary", "")->value, first, sizeof(first)) == 0) {
		assert_true(vt_clock_now() < until);
		run_for(&w, 20); /* for two seconds: not as many calls as there is time for */
	}
	end_watched(&w);
	start_ms = 0;
}

static void signal_zygote(const struct vt_pool_zygote *zygote, int number)
{
	assert_true(zygote->child.pid > 0);
	assert_int_equal(kill(zygote->child.pid, number), 0);
}

/* One that was retired ends while there is no other, as none can be started: that is no failure. */
static void test_retired_zygote_ends_alone(void **state)
{
	struct vt_pool_zygote *retired;
	struct rlimit usual;
	struct watched w;

	(void)state;
	told = 0;
	to_be_told = "ended, and is started anew";
	start_watched(&w);
	(void)call_one(&w, "echo", "");
	while (w.pool->count[VT_WARM_PARKED] < w.pool->target || vt_pool_under_way(w.pool))
		run_for(&w, 5);
	retired = w.pool->zygote;
	signal_zygote(retired, SIGSTOP);
	w.pool->forks = w.pool->options.forks_max;
	vt_pool_wake_by(w.pool, 0);
	while (!retired->retired)
		run_for(&w, 5);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, usual.rlim_max }), 0);
	signal_zygote(w.pool->zygote, SIGKILL);
	run_until_told(&w, 1);
	assert_int_equal(w.pool->zygote->child.pid, 0);
	signal_zygote(retired, SIGKILL);
	while (retired->child.pid)
		run_for(&w, 5);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(told, 1);
	end_watched(&w);
}
