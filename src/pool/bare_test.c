/* SPDX-License-Identifier: Apache-2.0 */
/* A pool without a hull, whose cells are bare, with each way of ending them that there is here. */
#include "pool/learn_test.h"

/* What an occupant tells of itself. */
struct self {
	pid_t init, daemon;
	uid_t uid;
	char home[128], cwd[128];
};

static void read_self(const char *text, struct self *self)
{
	if (sscanf(text, "%d %d %u %127s %127s", &self->init, &self->daemon, &self->uid, self->home,
		   self->cwd) != 5)
		fail_msg("it says: %s", text);
}

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static bool is_alive(pid_t pid)
{
	return kill(pid, 0) == 0;
}

static void await_removal(struct watched *w, const char *path)
{
	for (int ms = 0; is_there(path); ms += 5) {
		if (ms > PATIENCE_MS)
			fail_msg("'%s' stays", path);
		run_for(w, 5);
	}
}

static void await_log(struct watched *w, struct made *made)
{
	for (int ms = 0; !made->log[0]; ms += 5) {
		if (ms > PATIENCE_MS)
			fail_msg("it says nothing");
		run_for(w, 5);
	}
}

static void test_cells_have_their_own(void **state)
{
	struct self self[3];
	struct watched w;

	(void)state;
	start_watched(&w);
	for (int i = 0; i < 3; i++) {
		read_self(call_one(&w, "self", "")->value, &self[i]);
		assert_string_equal(self[i].home, self[i].cwd);
		assert_int_equal(strlen(self[i].home), strlen(w.stage.scratch));
		assert_int_equal(
			strncmp(self[i].home, w.stage.scratch, strlen(w.stage.scratch) - 12), 0);
		assert_true(is_there(self[i].home));
		assert_true(is_alive(self[i].daemon));
		assert_int_equal(self[i].uid, w.stage.plan.own_ids
						      ? w.stage.plan.id_base + (uid_t)self[i].init
						      : geteuid());
		for (int j = 0; j < i; j++)
			assert_string_not_equal(self[i].home, self[j].home);
	}
	for (int i = 0; i < 3; i++) {
		await_removal(&w, self[i].home);
		assert_false(is_alive(self[i].daemon));
	}
	assert_false(is_there(w.stage.scratch));
	end_watched(&w);
}

static void test_cells_end_alone(void **state)
{
	static struct made made;
	struct self self, other;
	struct watched w;

	(void)state;
	start_watched(&w);
	submit(&w, &made, "self and wait", "");
	read_self(call_one(&w, "self", "")->value, &other);
	await_removal(&w, other.home);
	assert_false(is_alive(other.daemon));
	await_log(&w, &made);
	read_self(made.log, &self);
	assert_false(made.over);
	assert_true(is_alive(self.daemon) && is_there(self.home));
	end_watched(&w);
	assert_int_equal(made.verdict.status, VT_STATUS_CANCELLED);
	assert_false(is_alive(self.daemon) || is_there(self.home));
}

/* Nobody of it is left when the result is there. */
static void test_ends_with_its_deadline(void **state)
{
	struct self self;
	struct watched w;
	struct made *made;

	(void)state;
	start_watched(&w);
	w.stage.plan.wall_ms = 300;
	made = call_one(&w, "self and wait", "");
	assert_int_equal(made->verdict.status, VT_STATUS_TIMEOUT);
	assert_false(made->unreaped);
	read_self(made->log, &self);
	assert_false(is_alive(self.daemon));
	await_removal(&w, self.home);
	end_watched(&w);
}

static void kill_init(struct made *made)
{
	struct self self;

	read_self(made->log, &self);
	assert_int_equal(kill(self.init, SIGKILL), 0);
}

/* With an id of its own the cell is ended all the same; else the result says that it may not be. */
static void test_init_is_killed(void **state)
{
	static struct made made;
	struct self self;
	struct watched w;

	(void)state;
	start_watched(&w);
	submit(&w, &made, "self and wait", "");
	made.at_log = kill_init;
	run_until(&w, 1);
	assert_int_equal(made.verdict.status, VT_STATUS_LOST);
	read_self(made.log, &self);
	assert_int_equal(made.unreaped, geteuid() != 0);
	if (geteuid() != 0) {
		assert_int_equal(kill(self.daemon, SIGKILL), 0);
		assert_int_equal(rmdir(self.home), 0);
	}
	assert_false(is_there(self.home));
	assert_string_equal(call_one(&w, "echo", "next")->value, "next");
	end_watched(&w);
	while (is_alive(self.daemon)) /* of somebody else to reap */
		(void)usleep(1000);
}

/* It is the first that the pool started, as long as it is not renewed. */
static void kill_zygote(struct made *made)
{
	char text[16] = "";
	AUTO_CLOSE int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

	(void)made;
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_int_equal(kill(atoi(text), SIGKILL), 0);
}

static void test_zygote_is_killed(void **state)
{
	static struct made made;
	struct self self;
	struct watched w;

	(void)state;
	start_watched(&w);
	submit(&w, &made, "self and wait", "");
	made.at_log = kill_zygote; /* before it is renewed */
	await_log(&w, &made);
	for (int i = 0; i < 10; i++)
		assert_string_equal(call_one(&w, "echo", "next")->value, "next");
	read_self(made.log, &self);
	assert_true(is_alive(self.daemon));
	vt_pool_cancel(&made.call);
	run_until(&w, 11);
	assert_int_equal(made.verdict.status, VT_STATUS_CANCELLED);
	assert_false(is_alive(self.daemon));
	end_watched(&w);
}

static void stop_init(struct made *made)
{
	struct self self;

	read_self(made->log, &self);
	assert_int_equal(kill(self.init, SIGSTOP), 0);
}

/* The result says that it may be there; and nobody waits without end, or buries it. */
static void test_init_is_stopped(void **state)
{
	static struct made made;
	struct self self;
	struct watched w;

	(void)state;
	start_watched(&w);
	w.stage.plan.wall_ms = 300;
	submit(&w, &made, "self and wait", "");
	made.at_log = stop_init;
	run_until(&w, 1);
	assert_int_equal(made.verdict.status, VT_STATUS_TIMEOUT);
	assert_true(made.unreaped);
	read_self(made.log, &self);
	assert_true(is_there(self.home));
	if (geteuid() != 0)
		assert_int_equal(kill(self.init, SIGCONT), 0);
	await_removal(&w, self.home);
	end_watched(&w);
	while (is_alive(self.daemon)) /* of somebody else to reap */
		(void)usleep(1000);
}

/* What fails while a call is submitted ends it, but not before whoever submits it knows it. */
static void test_refusal_comes_later(void **state)
{
	static struct made made;
	struct rlimit usual;
	struct watched w;

	(void)state;
	start_watched(&w);
	while (w.pool->count[VT_WARM_PARKED] < w.pool->target || vt_pool_under_way(w.pool))
		run_for(&w, 5);
	while (w.pool->warm[VT_WARM_PARKED])
		vt_warm_kill(w.pool->warm[VT_WARM_PARKED]);
	w.pool->failures = 2; /* one more is too many */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, usual.rlim_max }), 0);
	submit(&w, &made, "echo", "");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_false(made.over);
	run_until(&w, 1);
	assert_non_null(strstr(made.verdict.message, "Too many open files"));
	end_watched(&w);
}

static int heir; /* hears of the dead supervisor's cell */

static void die_telling(struct made *made)
{
	(void)!write(heir, made->log, strlen(made->log));
	(void)raise(SIGKILL);
}

static void test_supervisor_is_killed(void **state)
{
	static struct made made;
	struct watched w;
	struct self self;
	char text[256] = "";
	int ends[2], status;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	heir = ends[1];
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		start_watched(&w);
		submit(&w, &made, "self and wait", "");
		made.at_log = die_telling;
		run_until(&w, 1);
		_exit(1);
	}
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	read_self(text, &self);
	for (int ms = 0; is_there(self.home) || is_alive(self.daemon); ms++) {
		if (ms > PATIENCE_MS)
			fail_msg("it stays");
		(void)usleep(1000);
	}
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
		LEARN_TESTS,
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_kill_of_a_whole_cgroup_is_its_memorys),
		cmocka_unit_test(test_cells_have_their_own),
		cmocka_unit_test(test_cells_end_alone),
		cmocka_unit_test(test_ends_with_its_deadline),
		cmocka_unit_test(test_init_is_killed),
		cmocka_unit_test(test_init_is_stopped),
		cmocka_unit_test(test_zygote_is_killed),
		cmocka_unit_test(test_refusal_comes_later),
		cmocka_unit_test(test_supervisor_is_killed),
	};
	enum vt_sweep ways[3];
	size_t count = list_ways(ways);
	int failed = 0;

	if (getenv("VITRO_ZYGOTE") && argc > 1 && strcmp(argv[1], "learner") == 0)
		be_learner(argv + 2);
	if (getenv("VITRO_ZYGOTE"))
		be_zygote(argc > 1 ? argv[1] : "");
	bare = true;
	for (size_t i = 0; i < count; i++) {
		sweep = ways[i];
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
