/* SPDX-License-Identifier: Apache-2.0 */
/* A supervisor that dies, or talks nonsense, in each state: every call has one result, and none
 * hangs. */
#include "client/fake_test.h"

struct told {
	int over, lost;
};

static void on_done(void *user, vitro_result *result)
{
	struct told *told = user;

	told->over++;
	told->lost += vitro_result_status(result) == VITRO_LOST;
	assert_int_equal(!vitro_result_error(result), vitro_result_status(result) == VITRO_OK);
	vitro_result_free(result);
}

/* Three calls under way; the last one makes the supervisor do something wrong. */
static void lose_by(const char *how)
{
	vitro_toolhost *host = FAKE_HOST("hang", "echo", how);
	struct told told = { 0 };
	struct vitro_request request = { .tool = "hang", .user = &told };
	struct vitro_counts counts;

	assert_int_equal(vitro_submit(host, &request, on_done), 0);
	assert_int_equal(vitro_submit(host, &request, on_done), 0);
	request.tool = how;
	assert_int_equal(vitro_submit(host, &request, on_done), 0);
	while (told.over < 3)
		(void)fake_turn(host);
	if (told.lost != 3)
		fail_msg("%s: %d of 3 were lost", how, told.lost);
	assert_int_equal(vitro_dispatch(host), 0);
	assert_int_equal(vitro_is_running(host, NULL), 0);
	/* It stays so: calls end at once, and nothing else waits for an answer. */
	request.tool = "echo";
	vitro_result *result = vitro_call(host, &request);

	assert_int_equal(vitro_result_status(result), VITRO_LOST);
	vitro_result_free(result);
	assert_int_equal(vitro_submit(host, &request, on_done), 0);
	assert_int_equal(fake_turn(host), 1);
	assert_int_equal(told.over, 4);
	vitro_toolhost_count(host, &counts);
	assert_int_equal(counts.ready, 0);
	assert_null(vitro_toolhost_capabilities(host, NULL));
	/* Of a policy and program that it knew, too. */
	assert_int_equal(vitro_toolhost_add(
				 host,
				 &(struct vitro_tool){ .name = "other", .function = fake_function },
				 NULL),
			 -EPIPE);
	vitro_toolhost_free(host);
}

static void test_garbage(void **state)
{
	(void)state;
	for (int i = 0; i < FAKE_GARBAGE; i++)
		lose_by(fake_garbage[i].name);
	lose_by("lengths");
}

static void on_call(void *user, vitro_question *question, const char *tool, const char *arguments)
{
	(void)user;
	(void)tool;
	(void)arguments;
	vitro_question_answer(question, "1", NULL);
}

static void on_output(void *user, int stream, const char *bytes, size_t len)
{
	(void)user;
	assert_true(stream == VITRO_STDOUT || stream == VITRO_STDERR);
	assert_int_equal(bytes[len], '\0');
}

/* Whatever is said, in whatever order, each call is over once. */
static void test_rambling(void **state)
{
	(void)state;
	for (int seed = 0; seed < 200; seed++) {
		vitro_toolhost *host = FAKE_HOST("hang", "ramble");
		struct told told = { 0 };
		char arguments[32];
		struct vitro_request request = {
			.tool = "hang",
			.user = &told,
			.on_call = on_call,
			.on_output = on_output,
		};

		for (int i = 0; i < 4; i++)
			assert_int_equal(vitro_submit(host, &request, on_done), 0);
		(void)snprintf(arguments, sizeof(arguments), "{\"seed\":%d}", seed);
		request.tool = "ramble";
		request.arguments = arguments;
		assert_int_equal(vitro_submit(host, &request, on_done), 0);
		while (told.over < 5)
			(void)fake_turn(host);
		(void)vitro_dispatch(host);
		assert_int_equal(told.over, 5);
		vitro_toolhost_free(host);
	}
}

static void test_death(void **state)
{
	(void)state;
	lose_by("die");
	lose_by("half");
	lose_by("prefix");
}

static void test_death_while_waiting(void **state)
{
	(void)state;
	static const char *const hows[] = { "die", "half", "prefix", "no-json", "lengths" };

	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
		vitro_toolhost *host = FAKE_HOST(hows[i]);
		vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = hows[i] });

		assert_int_equal(vitro_result_status(result), VITRO_LOST);
		assert_string_equal(vitro_result_error_type(result), "Lost");
		assert_non_null(strstr(vitro_result_json(result), "\"status\": \"lost\""));
		vitro_result_free(result);
		vitro_toolhost_free(host);
	}
}

/* What was said before the end counts. */
static void test_results_before_death(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("echo", "die");
	struct told told = { 0 };
	struct vitro_request request = { .tool = "echo", .user = &told };

	for (int i = 0; i < 20; i++)
		assert_int_equal(vitro_submit(host, &request, on_done), 0);
	request.tool = "die";
	assert_int_equal(vitro_submit(host, &request, on_done), 0);
	/* These come to a dead one, or to none. */
	request.tool = "echo";
	usleep(50000);
	for (int i = 0; i < 20; i++)
		assert_int_equal(vitro_submit(host, &request, on_done), 0);
	vitro_cancel_all(host);
	while (told.over < 41)
		(void)fake_turn(host);
	assert_int_equal(told.lost, 21);
	vitro_toolhost_free(host);
}

/* A supervisor that is killed from outside, in the midst of many calls. */
static void test_killed(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("tell", "hang");
	struct told told = { 0 };
	vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = "tell" });
	int pid = 0;

	assert_int_equal(sscanf(vitro_result_value(result, NULL), "{\"pid\":%d", &pid), 1);
	vitro_result_free(result);
	for (int i = 0; i < 100; i++)
		assert_int_equal(
			vitro_submit(host, &(struct vitro_request){ .tool = "hang", .user = &told },
				     on_done),
			0);
	assert_true(pid > 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	while (told.over < 100)
		(void)fake_turn(host);
	assert_int_equal(told.lost, 100);
	vitro_toolhost_free(host);
}

static void fail_to_start(const char *mode, int num)
{
	struct vitro_tool tools[] = { { .name = "echo", .function = fake_function }, { 0 } };
	vitro_toolhost *host = NULL;
	struct vitro_error error = { 0 };

	assert_int_equal(setenv("FAKE_MODE", mode, 1), 0);
	int status = vitro_toolhost_new(&host, tools, NULL, &error);

	if (status != -num || error.num != num)
		fail_msg("%s: %d, %s", mode, status, error.text);
	assert_null(host);
	/* Which program that was. */
	if (strncmp(mode, "pool-", 5) != 0)
		assert_non_null(strstr(error.text, getenv("VITRO_BINARY")));
	assert_true(strlen(error.text) > 0);
	/* Who wants no details need not give room for them. */
	assert_int_equal(vitro_toolhost_new(&host, tools, NULL, NULL), -num);
	assert_int_equal(unsetenv("FAKE_MODE"), 0);
}

static void test_death_at_the_start(void **state)
{
	(void)state;
	fail_to_start("stillborn", EPIPE);
	fail_to_start("hello-die", EPIPE);
	fail_to_start("hello-half", EPIPE);
	fail_to_start("hello-no-json", EBADMSG);
	fail_to_start("hello-a-pool", EPROTO);
	fail_to_start("hello-lengths", EBADMSG);
	fail_to_start("newer", EPROTO);
	fail_to_start("other", EPROTO);
	fail_to_start("pool-die", EPIPE);
	fail_to_start("pool-half", EPIPE);
	fail_to_start("pool-no-is", EBADMSG);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(test_garbage),
		FAKE_TEST(test_rambling),
		FAKE_TEST(test_death),
		FAKE_TEST(test_death_while_waiting),
		FAKE_TEST(test_results_before_death),
		FAKE_TEST(test_killed),
		FAKE_TEST(test_death_at_the_start),
	};

	fake_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
