/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fake_test.h"

struct asked {
	vitro_toolhost *host;
	vitro_question *questions[2000];
	int count;
	char tool[64], arguments[256];
	int over;
	enum vitro_status status;
};

static void on_call(void *user, vitro_question *question, const char *tool, const char *arguments)
{
	struct asked *asked = user;

	(void)snprintf(asked->tool, sizeof(asked->tool), "%s", tool);
	(void)snprintf(asked->arguments, sizeof(asked->arguments), "%s", arguments);
	asked->questions[asked->count++] = question;
}

static void on_done(void *user, vitro_result *result)
{
	struct asked *asked = user;

	asked->over++;
	asked->status = vitro_result_status(result);
	vitro_result_free(result);
}

static struct asked *begin(const char *arguments)
{
	struct asked *asked = calloc(1, sizeof(*asked));

	assert_non_null(asked);
	asked->host = FAKE_HOST("ask", "echo", "error", "hang", "late");
	struct vitro_request request = {
		.tool = "ask",
		.arguments = arguments,
		.user = asked,
		.on_call = on_call,
	};
	assert_int_equal(vitro_submit(asked->host, &request, on_done), 0);
	return asked;
}

static void end(struct asked *asked)
{
	vitro_toolhost_free(asked->host);
	free(asked);
}

/* What a call asks for by name, the client calls for it. */
static void test_tool_of_the_host(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("ask", "echo", "error");
	struct vitro_request request = { .tool = "ask", .arguments = "{\"ask\":\"echo\"}" };
	vitro_result *result = vitro_call(host, &request);

	assert_int_equal(vitro_result_status(result), VITRO_OK);
	assert_string_equal(vitro_result_value(result, NULL), "{\"ask\":\"echo\"}");
	vitro_result_free(result);
	request.arguments = "{\"ask\":\"error\"}";
	result = vitro_call(host, &request);
	assert_int_equal(vitro_result_status(result), VITRO_ERROR);
	assert_string_equal(vitro_result_error(result), "the sentence");
	vitro_result_free(result);
	request.arguments = "{\"ask\":\"echo\",\"times\":300}";
	result = vitro_call(host, &request);
	assert_int_equal(vitro_result_status(result), VITRO_OK);
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

static void assert_told(vitro_toolhost *host, const char *tool, const char *arguments,
			const char *sentence)
{
	vitro_result *result = vitro_call(
		host, &(struct vitro_request){ .tool = tool, .arguments = arguments });

	assert_int_equal(vitro_result_status(result), VITRO_ERROR);
	assert_string_equal(vitro_result_error(result), sentence);
	vitro_result_free(result);
}

static void test_only_what_it_may(void **state)
{
	(void)state;
	static const char *const some[] = { "other", NULL };
	static const char *const echo[] = { "other", "echo", NULL };
	const char *schema = "{\"type\":\"object\",\"properties\":{\"ask\":{\"const\":1}}}";
	struct vitro_tool tools[] = {
		{ .name = "ask", .function = fake_function, .may_call = some },
		{ .name = "echo", .function = fake_function },
		{ 0 },
	};
	vitro_toolhost *host;

	assert_int_equal(vitro_toolhost_new(&host, tools, NULL, NULL), 0);
	assert_told(host, "ask", "{\"ask\":\"echo\"}", "this tool may not call that one");
	assert_told(host, "ask", "{\"ask\":\"other\"}", "there is no such tool");
	tools[0].may_call = NULL;
	assert_int_equal(vitro_toolhost_add(host, &tools[0], NULL), 0);
	assert_told(host, "ask", "{\"ask\":\"echo\"}", "this tool may not call that one");
	/* What it asks for is checked as anybody's call is. */
	tools[0].may_call = echo;
	tools[1].schema = schema;
	assert_int_equal(vitro_toolhost_add(host, &tools[0], NULL), 0);
	assert_int_equal(vitro_toolhost_add(host, &tools[1], NULL), 0);
	assert_told(host, "ask", "{\"ask\":\"echo\"}",
		    "echo: arguments.ask: want 1, found \"echo\"");
	vitro_toolhost_free(host);
}

static void test_question_to_the_program(void **state)
{
	(void)state;
	struct asked *asked = begin("{\"ask\":\"mine\"}");

	while (asked->count < 1)
		(void)fake_turn(asked->host);
	assert_string_equal(asked->tool, "mine");
	assert_string_equal(asked->arguments, "{\"ask\":\"mine\"}");
	assert_int_equal(asked->over, 0);
	vitro_question_answer(asked->questions[0], "[1]", NULL);
	while (asked->over < 1)
		(void)fake_turn(asked->host);
	assert_int_equal(asked->status, VITRO_OK);
	end(asked);
}

static void test_answers_that_are_errors(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct asked *asked = begin("{\"ask\":\"mine\"}");

		while (asked->count < 1)
			(void)fake_turn(asked->host);
		vitro_question_answer(asked->questions[0], i == 0 ? "no json" : NULL,
				      i == 1 ? "no" : NULL);
		while (asked->over < 1)
			(void)fake_turn(asked->host);
		assert_int_equal(asked->status, VITRO_ERROR);
		end(asked);
	}
}

/* A call that is over leaves its questions: they are answered in vain, and so after the tool host.
 */
static void test_question_of_a_call_that_is_over(void **state)
{
	(void)state;
	struct asked *asked = begin("{\"ask\":\"mine\",\"times\":3}");

	while (asked->count < 3)
		(void)fake_turn(asked->host);
	vitro_question_answer(asked->questions[1], "1", NULL);
	vitro_cancel_all(asked->host);
	while (asked->over < 1)
		(void)fake_turn(asked->host);
	assert_int_equal(asked->status, VITRO_CANCELLED);
	vitro_question_answer(asked->questions[0], "1", NULL);
	vitro_question *last = asked->questions[2];

	end(asked);
	vitro_question_answer(last, "1", NULL);
}

static void test_question_of_a_host_that_is_gone(void **state)
{
	(void)state;
	struct asked *asked = begin("{\"ask\":\"mine\"}");

	while (asked->count < 1)
		(void)fake_turn(asked->host);
	vitro_question *question = asked->questions[0];

	end(asked);
	vitro_question_answer(question, "1", NULL);
}

/* Calls that were made for a call end with it; nobody is told of them. */
static void test_nested_calls_end_with_theirs(void **state)
{
	(void)state;
	struct asked *asked = begin("{\"ask\":\"hang\",\"times\":10}");

	while (!vitro_is_running(asked->host, "c11"))
		(void)fake_turn(asked->host);
	assert_int_equal(vitro_cancel(asked->host, "c1"), 0);
	while (vitro_is_running(asked->host, NULL))
		(void)fake_turn(asked->host);
	assert_int_equal(vitro_dispatch(asked->host), 0);
	assert_int_equal(asked->over, 1);
	assert_int_equal(asked->status, VITRO_CANCELLED);
	end(asked);
	/* And where the tool host goes before them. */
	asked = begin("{\"ask\":\"hang\",\"times\":10}");
	while (!vitro_is_running(asked->host, "c11"))
		(void)fake_turn(asked->host);
	end(asked);
}

/* A call that lives on for a moment does not reach the program by one that is over. */
static void test_nested_call_that_asks_late(void **state)
{
	(void)state;
	struct asked *asked = begin("{\"ask\":\"late\"}");

	while (!vitro_is_running(asked->host, "c2"))
		(void)fake_turn(asked->host);
	assert_int_equal(vitro_cancel(asked->host, "c1"), 0);
	while (vitro_is_running(asked->host, NULL))
		(void)fake_turn(asked->host);
	(void)vitro_dispatch(asked->host);
	assert_int_equal(asked->over, 1);
	assert_int_equal(asked->count, 0);
	end(asked);
}

static void test_too_many_questions(void **state)
{
	(void)state;
	struct asked *asked = begin("{\"ask\":\"mine\",\"times\":1500}");

	for (int i = 0; asked->count < 1024 && i < 10000; i++)
		(void)fake_turn(asked->host);
	assert_int_equal(asked->count, 1024);
	/* Those that came too early were told so; answers make room for those that come now. */
	for (int next = 0; asked->over < 1; (void)fake_turn(asked->host))
		while (next < asked->count)
			vitro_question_answer(asked->questions[next++], "1", NULL);
	end(asked);
}

/* A tool that calls itself comes to an end. */
static void test_too_deep(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("ask");
	struct vitro_counts counts;

	assert_told(host, "ask", "{\"ask\":\"ask\"}", "calls within calls are too deep");
	vitro_toolhost_count(host, &counts);
	assert_int_equal(counts.calls, 17);
	vitro_toolhost_free(host);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(test_tool_of_the_host),
		FAKE_TEST(test_only_what_it_may),
		FAKE_TEST(test_question_to_the_program),
		FAKE_TEST(test_answers_that_are_errors),
		FAKE_TEST(test_question_of_a_call_that_is_over),
		FAKE_TEST(test_question_of_a_host_that_is_gone),
		FAKE_TEST(test_nested_calls_end_with_theirs),
		FAKE_TEST(test_nested_call_that_asks_late),
		FAKE_TEST(test_too_many_questions),
		FAKE_TEST(test_too_deep),
	};

	fake_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
