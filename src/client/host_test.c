/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fake_test.h"

#include <pthread.h>

#include "client/host_private.h"

struct noted {
	char text[1024];
};

static void note(struct noted *noted, const char *fmt, ...)
{
	size_t used = strlen(noted->text);
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(noted->text + used, sizeof(noted->text) - used, fmt, args);
	va_end(args);
}

static void on_log(void *user, int level, const char *text)
{
	note(user, "log %d %s;", level, text);
}

static void on_watch(void *user, int event, const char *tool)
{
	note(user, "watch %d %s;", event, tool);
}

static void test_tools_come_and_go(void **state)
{
	(void)state;
	struct noted noted = { 0 };
	struct vitro_options options = { .log = on_log, .watch = on_watch, .user = &noted };
	struct vitro_tool tools[] = {
		{ .name = "echo", .description = "Says it again.", .function = fake_function },
		{ 0 },
	};
	struct vitro_tool more = { .name = "more", .function = fake_function };
	struct vitro_error error;
	vitro_toolhost *host;

	assert_int_equal(vitro_toolhost_new(&host, tools, &options, &error), 0);
	assert_string_equal(noted.text, "");
	(void)vitro_dispatch(host);
	assert_string_equal(noted.text, "log 4 hear me;");
	noted.text[0] = '\0';
	assert_int_equal(vitro_toolhost_add(host, &more, &error), 0);
	more.description = "Even more.";
	assert_int_equal(vitro_toolhost_add(host, &more, &error), 0);
	char *list = vitro_toolhost_list(host, "MORE");

	assert_string_equal(list, "[{\"name\":\"more\",\"description\":\"Even more.\","
				  "\"input_schema\":{\"type\":\"object\"}}]");
	free(list);
	assert_int_equal(vitro_toolhost_remove(host, "more", &error), 0);
	assert_int_equal(vitro_toolhost_remove(host, "more", &error), -ENOENT);
	assert_int_equal(error.num, ENOENT);
	assert_string_equal(noted.text, "watch 1 more;watch 3 more;watch 2 more;");
	noted.text[0] = '\0';
	more.schema = "{\"type\":\"object\",\"unheard\":1}";
	assert_int_equal(vitro_toolhost_add(host, &more, &error), 0);
	assert_memory_equal(noted.text, "watch 1 more;log 4 more: ", 25);
	vitro_toolhost_free(host);
}

/* A call under way is not affected by what becomes of its tool. */
static void test_remove_amid_a_call(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("hang", "echo");
	struct vitro_request request = { .tool = "hang" };

	assert_int_equal(vitro_submit(host, &request, NULL), 0);
	assert_int_equal(vitro_toolhost_remove(host, "hang", NULL), 0);
	vitro_cancel_all(host);
	while (vitro_is_running(host, NULL))
		(void)fake_turn(host);
	vitro_result *result = vitro_call(host, &request);

	assert_string_equal(vitro_result_error_type(result), "NoSuchTool");
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

static void test_wrong_tools(void **state)
{
	(void)state;
	static const char *const words[] = { "cat", "-{file}", NULL }, *const nobody[] = { "",
											   NULL };
	static char long_symbol[450];
	static const struct {
		struct vitro_tool tool;
		const char *text;
	} cases[] = {
		{ { .name = "x" }, "x: exactly one of" },
		{ { .name = "x", .python = "m:f", .command = words }, "x: exactly one" },
		{ { .name = "x", .python = "m" }, "x: python: want a module and its function" },
		{ { .name = "x", .python = "m:f", .folder = "here" },
		  "x: folder must be an absolute path" },
		{ { .name = "x", .python = "m:f", .interpreter = "" }, "x: interpreter is empty" },
		{ { .name = "x", .python = "m:f", .input = "{a}" }, "x: input is for commands" },
		{ { .name = "x", .command = words, .interpreter = "python3" },
		  "x: interpreter is for python" },
		{ { .name = "x", .function = fake_function, .command = words }, "x: exactly one" },
		{ { .name = "x", .symbol = "f" }, "x: object and symbol must" },
		{ { .name = "x", .function = fake_function, .object = "/o" }, "x: object and" },
		{ { .name = "x", .symbol = "f", .object = "o.so" }, "x: object must be an abs" },
		{ { .name = "x", .symbol = "", .object = "/o" }, "x: symbol is empty" },
		{ { .name = "x", .symbol = long_symbol, .object = "/o" }, "x: symbol has more" },
		{ { .name = "x", .function = fake_function, .may_call = nobody }, "x: may_call" },
		{ { .name = "x", .function = fake_function, .reserved = { [0] = (void *)1 } },
		  "x: reserved must be 0" },
		{ { .name = "x", .command = words }, "x: command[1]: " },
		{ { .name = "x y", .function = fake_function }, "x y: the name" },
		{ { .name = "x", .function = fake_function, .schema = "[" }, "x: schema" },
	};
	vitro_toolhost *host = FAKE_HOST("echo");
	struct vitro_error error;

	memset(long_symbol, 'f', sizeof(long_symbol) - 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vitro_tool table[] = { cases[i].tool, { 0 } };
		vitro_toolhost *other = NULL;

		assert_true(vitro_toolhost_add(host, &cases[i].tool, &error) < 0);
		assert_memory_equal(error.text, cases[i].text, strlen(cases[i].text));
		assert_true(vitro_toolhost_new(&other, table, NULL, &error) < 0);
		assert_memory_equal(error.text, cases[i].text, strlen(cases[i].text));
		assert_null(other);
	}
	struct vitro_tool twice[] = {
		{ .name = "a", .function = fake_function },
		{ .name = "a", .function = fake_function },
		{ 0 },
	};
	vitro_toolhost *other;

	assert_int_equal(vitro_toolhost_new(&other, twice, NULL, &error), -EEXIST);
	vitro_toolhost_free(host);
}

static long pool_of(vitro_toolhost *host, const char *tool)
{
	vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = tool });
	long pool = -1;

	assert_int_equal(sscanf(vitro_result_value(result, NULL), "{\"pool\":%ld", &pool), 1);
	vitro_result_free(result);
	return pool;
}

/* Tools share a pool where their program and their policy are the same, and only there. */
static void test_pools(void **state)
{
	(void)state;
	vitro_policy *tight = vitro_policy_new(), *same = vitro_policy_new();
	struct vitro_error error;
	struct vitro_counts counts;
	vitro_toolhost *host;

	assert_int_equal(vitro_policy_set(tight, "limits.wall_ms", "5s", &error), 0);
	assert_int_equal(vitro_policy_set(same, "limits.wall_ms", "5s", &error), 0);
	struct vitro_tool tools[] = {
		{ .name = "head", .function = fake_function },
		{ .name = "two", .function = fake_function, .policy = tight },
		{ .name = "three", .object = "/lib/x.so", .symbol = "head", .policy = tight },
		{ 0 },
	};

	assert_int_equal(vitro_toolhost_new(&host, tools, NULL, &error), 0);
	long first = pool_of(host, "head"), third = pool_of(host, "three");

	assert_true(first != third);
	vitro_toolhost_count(host, &counts);
	assert_int_equal(counts.ready, 6);
	assert_int_equal(counts.cold_calls, 0);
	assert_int_equal(counts.calls, 2);
	/* The tool host keeps nothing of what it was given. */
	vitro_policy_free(tight);
	tools[0].policy = same;
	assert_int_equal(vitro_toolhost_add(host, &tools[0], &error), 0);
	assert_true(pool_of(host, "head") != first);
	vitro_toolhost_count(host, &counts);
	assert_int_equal(counts.ready, 4); /* nobody has the first any more */
	vitro_policy_free(same);
	vitro_toolhost_free(host);
}

static void test_policy_that_cannot_be_enforced(void **state)
{
	(void)state;
	vitro_policy *policy = vitro_policy_new();
	struct vitro_options options = { .policy = policy };
	struct vitro_tool tool = { .name = "echo", .function = fake_function, .policy = policy };
	struct vitro_tool tools[] = { tool, { 0 } };
	struct vitro_error error;
	vitro_toolhost *host;

	assert_int_equal(vitro_policy_set(policy, "env.set", "A=refuse-me", &error), 0);
	assert_int_equal(vitro_toolhost_new(&host, tools, NULL, &error), -EPERM);
	assert_string_equal(error.text, "limits.cpus: cannot be enforced here");
	assert_int_equal(vitro_toolhost_new(&host, NULL, &options, &error), 0);
	assert_null(vitro_toolhost_capabilities(host, NULL));
	assert_int_equal(vitro_toolhost_add(host, &tool, &error), -EPERM);
	assert_null(vitro_toolhost_capabilities(host, "echo"));
	tool.policy = NULL;
	assert_int_equal(vitro_toolhost_add(host, &tool, &error), -EPERM);
	vitro_policy_free(policy);
	vitro_policy *fine = vitro_policy_new();

	tool.policy = fine;
	assert_int_equal(vitro_toolhost_add(host, &tool, &error), 0);
	vitro_policy_free(fine);
	char *text = vitro_toolhost_capabilities(host, "echo");

	assert_string_equal(text, FAKE_CAPABILITIES);
	free(text);
	vitro_toolhost_free(host);
}

static void test_capabilities_of_the_host(void **state)
{
	(void)state;
	vitro_toolhost *host;

	assert_int_equal(vitro_toolhost_new(&host, NULL, NULL, NULL), 0);
	for (int i = 0; i < 2; i++) {
		char *text = vitro_toolhost_capabilities(host, NULL);

		assert_string_equal(text, FAKE_CAPABILITIES);
		free(text);
	}
	assert_null(vitro_toolhost_capabilities(host, "none"));
	vitro_toolhost_free(host);
}

static void test_options(void **state)
{
	(void)state;
	struct vitro_options options = { .ready_min = 9, .ready_max = 3 };
	struct vitro_error error;
	vitro_toolhost *host;

	assert_int_equal(vitro_toolhost_new(&host, NULL, &options, &error), -EINVAL);
	options = (struct vitro_options){ .reserved = { [3] = (void *)1 } };
	assert_int_equal(vitro_toolhost_new(&host, NULL, &options, &error), -EINVAL);
	assert_non_null(strstr(error.text, "reserved"));
	/* One of the two is enough, on either side of the other's default. */
	options = (struct vitro_options){ .ready_max = 1 };
	assert_int_equal(vitro_toolhost_new(&host, NULL, &options, &error), 0);
	vitro_toolhost_free(host);
	options = (struct vitro_options){ .ready_min = 100 };
	assert_int_equal(vitro_toolhost_new(&host, NULL, &options, &error), 0);
	vitro_toolhost_free(host);
}

/* What must be there, and is not, is said where there is an errno value to say it by. */
static void test_null(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("echo");
	vitro_policy *policy = vitro_policy_new();
	struct vitro_error error;

	assert_int_equal(vitro_toolhost_new(NULL, NULL, NULL, &error), -EINVAL);
	assert_int_equal(vitro_toolhost_add(host, NULL, &error), -EINVAL);
	assert_int_equal(vitro_toolhost_remove(host, NULL, &error), -EINVAL);
	assert_int_equal(vitro_policy_load(policy, NULL, &error), -EINVAL);
	assert_int_equal(vitro_policy_load_json(policy, NULL, &error), -EINVAL);
	assert_int_equal(vitro_policy_set(policy, NULL, "1", &error), -EINVAL);
	assert_int_equal(vitro_policy_set(policy, "limits.pids", NULL, &error), -EINVAL);
	vitro_question_answer(NULL, "1", NULL);
	vitro_policy_free(policy);
	vitro_toolhost_free(host);
}

static int count_pools(vitro_toolhost *host)
{
	vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = "pools" });
	int count = atoi(vitro_result_value(result, NULL));

	vitro_result_free(result);
	return count;
}

static void free_result(void *user, vitro_result *result)
{
	(void)user;
	vitro_result_free(result);
}

/* The supervisor keeps nothing ready for tools that are gone, once their calls are over. */
static void test_pools_are_dropped(void **state)
{
	(void)state;
	static const char *const words[] = { "cat", NULL };
	vitro_toolhost *host = FAKE_HOST("pools");
	vitro_policy *policy = vitro_policy_new();
	struct vitro_tool tool = { .name = "hang", .function = fake_function, .policy = policy };
	struct vitro_request request = { .tool = "hang", .call_id = "h" };

	assert_int_equal(count_pools(host), 1);
	assert_int_equal(vitro_policy_set(policy, "limits.wall_ms", "5s", NULL), 0);
	assert_int_equal(vitro_toolhost_add(host, &tool, NULL), 0);
	tool.name = "other";
	assert_int_equal(vitro_toolhost_add(host, &tool, NULL), 0);
	assert_int_equal(count_pools(host), 2);
	assert_int_equal(vitro_submit(host, &request, free_result), 0);
	assert_int_equal(vitro_toolhost_remove(host, "other", NULL), 0);
	/* Another policy for the tool, and another kind; its call runs on under the old one. */
	tool.name = "hang";
	tool.policy = NULL;
	assert_int_equal(vitro_toolhost_add(host, &tool, NULL), 0);
	assert_int_equal(count_pools(host), 2);
	assert_int_equal(vitro_cancel(host, "h"), 0);
	while (vitro_is_running(host, "h"))
		(void)fake_turn(host);
	(void)vitro_dispatch(host);
	assert_int_equal(count_pools(host), 1);
	tool.function = NULL;
	tool.command = words;
	assert_int_equal(vitro_toolhost_add(host, &tool, NULL), 0);
	assert_int_equal(count_pools(host), 2);
	/* What is refused leaves nothing. */
	assert_int_equal(vitro_policy_set(policy, "env.set", "A=refuse-me", NULL), 0);
	tool.name = "third";
	tool.policy = policy;
	assert_int_equal(vitro_toolhost_add(host, &tool, NULL), -EPERM);
	assert_int_equal(count_pools(host), 2);
	vitro_policy_free(policy);
	vitro_toolhost_free(host);
}

/* What comes while an answer is waited for is told by the next dispatch, and not before. */
static void test_answers_overtake_nothing(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("echo", "print");
	struct vitro_counts counts;

	for (int i = 0; i < 20; i++)
		assert_int_equal(
			vitro_submit(host, &(struct vitro_request){ .tool = "print" }, NULL), 0);
	vitro_toolhost_count(host, &counts);
	assert_int_equal(vitro_is_running(host, NULL), 1);
	int over = 0;

	while (over < 20)
		over += fake_turn(host);
	vitro_toolhost_free(host);
}

static void *work(void *arg)
{
	(void)arg;
	vitro_toolhost *host = FAKE_HOST("echo");

	for (int i = 0; i < 50; i++) {
		vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = "echo" });

		assert_int_equal(vitro_result_status(result), VITRO_OK);
		vitro_result_free(result);
	}
	vitro_toolhost_free(host);
	return NULL;
}

static void test_threads(void **state)
{
	(void)state;
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* In a fork the handle can only be freed, and nothing that is done to it does the other anything.
 */
static void test_fork(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("echo", "hang");
	int status;

	assert_int_equal(vitro_submit(host, &(struct vitro_request){ .tool = "hang" }, NULL), 0);
	assert_ptr_not_equal(signal(SIGCHLD, SIG_DFL), SIG_ERR);
	pid_t pid = fork();

	if (pid == 0) {
		vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = "echo" });
		struct vitro_counts counts;

		if (vitro_result_status(result) != VITRO_LOST ||
		    !strstr(vitro_result_error(result), "is a fork of"))
			_exit(1);
		vitro_result_free(result);
		vitro_toolhost_count(host, &counts);
		if (vitro_submit(host, &(struct vitro_request){ .tool = "echo" }, NULL) < 0 ||
		    vitro_dispatch(host) != 1)
			_exit(2);
		vitro_toolhost_free(host);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_ptr_not_equal(signal(SIGCHLD, fake_on_child), SIG_ERR);
	(void)vitro_dispatch(host);
	struct pollfd poller = { .fd = vitro_toolhost_fd(host), .events = POLLIN };

	assert_int_equal(poll(&poller, 1, 0), 0);
	vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = "echo" });

	assert_int_equal(vitro_result_status(result), VITRO_OK);
	vitro_result_free(result);
	assert_int_equal(vitro_submit(host, &(struct vitro_request){ .tool = "echo" }, NULL), 0);
	assert_int_equal(fake_turn(host), 1);
	vitro_toolhost_free(host);
}

static void test_nothing_to_free(void **state)
{
	(void)state;
	vitro_toolhost_free(NULL);
	vitro_policy_free(NULL);
	vitro_result_free(NULL);
	assert_string_equal(vitro_version(), "0.1.0");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(test_tools_come_and_go),
		FAKE_TEST(test_remove_amid_a_call),
		FAKE_TEST(test_wrong_tools),
		FAKE_TEST(test_pools),
		FAKE_TEST(test_policy_that_cannot_be_enforced),
		FAKE_TEST(test_capabilities_of_the_host),
		FAKE_TEST(test_pools_are_dropped),
		FAKE_TEST(test_options),
		FAKE_TEST(test_null),
		FAKE_TEST(test_answers_overtake_nothing),
		FAKE_TEST(test_threads),
		FAKE_TEST(test_fork),
		FAKE_TEST(test_nothing_to_free),
	};

	fake_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
