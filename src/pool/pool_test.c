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

static void test_when_there_is_time(void **state)
{
	struct vt_plan plan = { .cpus = 1 };
	struct vt_pool pool = { .plan = &plan, .quiet = 5, .last_call = 100, .last_run = 140 };

	(void)state;
	/* One that has waited runs, or its caller is told. */
	assert_int_equal(vt_pool_calm_at(&pool), 145);
	plan.cpus = 2;
	assert_int_equal(vt_pool_calm_at(&pool), 105);
	pool.count[VT_WARM_RUNNING] = 2;
	assert_int_equal(vt_pool_calm_at(&pool), 145);
	pool.last_call = 150;
	assert_int_equal(vt_pool_calm_at(&pool), 155);
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
		cmocka_unit_test(test_end_is_not_drowned),
		cmocka_unit_test(test_nothing_of_a_call_is_left_for_the_next),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_zygotes_are_renewed),
		cmocka_unit_test(test_zygote_hangs),
		cmocka_unit_test(test_next_zygote_hangs),
		cmocka_unit_test(test_retired_zygote_ends_alone),
		cmocka_unit_test(test_what_nobody_waits_for_is_made_where_there_is_a_cpu),
		cmocka_unit_test(test_when_there_is_time),
		LEARN_TESTS,
		cmocka_unit_test(test_spawner_hangs),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_occupants_that_nobody_knows_are_reaped),
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
