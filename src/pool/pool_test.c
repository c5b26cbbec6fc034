/* SPDX-License-Identifier: Apache-2.0 */
/* A pool with a real hull and a real zygote, which is this program started afresh. */
#include "pool/learn_test.h"

#include <linux/sched.h>
#include <sched.h>

#include "host/host.h"
#include "kernel/ns.h"
#include "kernel/pass.h"

/* One that is gone before it has told of the occupant that it made. */
static _Noreturn void be_silent_zygote(void)
{
	const struct vt_note ready = { .kind = VT_NOTE_READY };
	struct vt_zygote zygote;
	struct vt_note order;
	struct vt_err err;
	int fds[VT_NOTE_FDS], pidfd;

	if (vt_zygote_join(&zygote, 3, &err) < 0 ||
	    vt_pass_send(zygote.control_fd, &ready, sizeof(ready), NULL, 0, &err) < 0 ||
	    vt_pass_take(3, &order, sizeof(order), fds, VT_NOTE_FDS, 0, &err) < 0 ||
	    setns(fds[VT_ENTER_INIT_FD], CLONE_NEWPID) < 0)
		_exit(4);
	pid_t pid = vt_ns_clone(CLONE_PARENT, -1, &pidfd, &err);

	while (pid == 0)
		(void)pause();
	_exit(0);
}

static void test_occupants_that_nobody_knows_are_reaped(void **state)
{
	struct watched w;
	struct made *made;

	(void)state;
	start_watched_as(&w, "silent");
	made = call_one(&w, "echo", "");
	assert_int_equal(made->verdict.status, VT_STATUS_ERROR);
	assert_string_equal(made->verdict.type, "CannotExecute");
	end_watched(&w);
}

/* The control is the same with memory of its own. */
static void test_no_fork_of_what_shares_memory(void **state)
{
	struct watched w;

	(void)state;
	start_watched_as(&w, "map own");
	assert_int_equal(call_one(&w, "echo", "")->verdict.status, VT_STATUS_OK);
	end_watched(&w);
	start_watched_as(&w, "map shared");
	assert_non_null(strstr(call_one(&w, "echo", "")->verdict.message,
			       "memory that all calls would share, of '/dev/zero (deleted)'"));
	end_watched(&w);
}

/* The hull's init, which its maker has made beside itself. */
static pid_t find_init(void)
{
	char text[64] = "";
	const char *second = NULL;

	while (!second || !atoi(second)) {
		AUTO_CLOSE int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

		assert_true(read(fd, text, sizeof(text) - 1) > 0);
		second = strchr(text, ' ');
	}
	return atoi(second);
}

/* It may not have executed its program yet. */
static void test_spawner_hangs(void **state)
{
	struct watched w;

	(void)state;
	told = 0;
	to_be_told = "the hull is made anew: have the hull ready within 2 s";
	start_ms = 2000;
	start_watched(&w);
	assert_int_equal(kill(find_init(), SIGSTOP), 0);
	run_until_told(&w, 1);
	assert_string_equal(call_one(&w, "echo", "next")->value, "next");
	end_watched(&w);
	start_ms = 0;
}

/* A call that finds nothing ready, of a pool that is to have some: how many are made then. */
static unsigned count_made_for_one(struct watched *w, unsigned cpus)
{
	unsigned under_way, before = w->over;
	struct made made;

	while (w->pool->count[VT_WARM_PARKED] < w->pool->target || vt_pool_under_way(w->pool))
		run_for(w, 5);
	while (w->pool->warm[VT_WARM_PARKED])
		vt_warm_kill(w->pool->warm[VT_WARM_PARKED]);
	w->stage.plan.cpus = cpus;
	submit(w, &made, "echo", "");
	under_way = vt_pool_under_way(w->pool);
	run_until(w, before + 1);
	return under_way;
}

static void test_what_nobody_waits_for_is_made_where_there_is_a_cpu(void **state)
{
	struct watched w;

	(void)state;
	start_watched(&w);
	(void)call_one(&w, "echo", "");
	assert_int_equal(count_made_for_one(&w, 1), 1);
	assert_int_equal(count_made_for_one(&w, 2), 2);
	end_watched(&w);
}

/* To take it apart would take CPU from what makes the one that is waited for. */
static void test_cells_that_are_over_stay_while_a_call_waits(void **state)
{
	struct watched w;
	struct made made;

	(void)state;
	start_watched(&w);
	run_until_ready(&w);
	(void)call_one(&w, "echo", "");
	assert_int_equal(w.pool->count[VT_WARM_OVER], 1);
	w.pool->warm[VT_WARM_OVER]->since = INT64_MAX / 2; /* it never is for too long */
	assert_int_equal(kill(w.pool->zygote->child.pid, SIGSTOP), 0);
	while (w.pool->warm[VT_WARM_PARKED])
		vt_warm_kill(w.pool->warm[VT_WARM_PARKED]);
	submit(&w, &made, "echo", "");
	run_for(&w, 3 * VT_POOL_QUIET_MOST / VT_NS_PER_MS);
	assert_int_equal(w.pool->count[VT_WARM_OVER], 1);
	assert_int_equal(kill(w.pool->zygote->child.pid, SIGCONT), 0);
	run_until(&w, 2);
	run_for(&w, 3 * VT_POOL_QUIET_MOST / VT_NS_PER_MS);
	assert_int_equal(w.pool->count[VT_WARM_OVER], 0);
	end_watched(&w);
}

/* Whether a hull can be had at all; says why not. */
static bool has_namespaces(void)
{
	struct vt_host host;
	struct vt_err err;

	if (vt_host_probe(&host, &err) < 0)
		return true; /* the tests tell */
	int why = host.userns.err;

	if (why)
		printf("1..0 # SKIP there are no user namespaces for a hull: %s: %s\n",
		       host.userns.tried, strerror(why));
	vt_host_done(&host);
	return !why;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results),
		cmocka_unit_test(test_endings),
		cmocka_unit_test(test_one_that_hung_up_costs_nothing),
		cmocka_unit_test(test_what_a_zygote_says_is_escaped),
		cmocka_unit_test(test_end_is_not_drowned),
		cmocka_unit_test(test_nothing_of_a_call_is_left_for_the_next),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_zygotes_are_renewed),
		cmocka_unit_test(test_zygote_hangs),
		cmocka_unit_test(test_silent_zygote),
		cmocka_unit_test(test_next_zygote_hangs),
		cmocka_unit_test(test_retired_zygote_ends_alone),
		cmocka_unit_test(test_what_nobody_waits_for_is_made_where_there_is_a_cpu),
		cmocka_unit_test(test_cells_that_are_over_stay_while_a_call_waits),
		LEARN_TESTS,
		cmocka_unit_test(test_spawner_hangs),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_kill_of_a_whole_cgroup_is_its_memorys),
		cmocka_unit_test(test_occupants_that_nobody_knows_are_reaped),
		cmocka_unit_test(test_no_fork_of_what_shares_memory),
	};

	if (argc > 0 && strcmp(argv[0], "vitro-spawner") == 0)
		vt_spawner_run();
	if (getenv("VITRO_ZYGOTE") && argc > 1 && strcmp(argv[1], "silent") == 0)
		be_silent_zygote();
	if (getenv("VITRO_ZYGOTE") && argc > 1 && strcmp(argv[1], "learner") == 0)
		be_learner(argv + 2);
	if (getenv("VITRO_ZYGOTE"))
		be_zygote(argc > 1 ? argv[1] : "");
	if (!has_namespaces())
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
