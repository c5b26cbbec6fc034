/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fake_test.h"

static vitro_result *call(vitro_toolhost *host, const char *tool, const char *arguments)
{
	return vitro_call(host, &(struct vitro_request){ .tool = tool, .arguments = arguments });
}

static void test_call_gives_the_value(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("echo");
	vitro_result *result = call(host, "echo", "{\"a\": [1, 2]}");
	struct vitro_usage usage;
	size_t len;

	assert_int_equal(vitro_result_status(result), VITRO_OK);
	assert_string_equal(vitro_result_value(result, &len), "{\"a\": [1, 2]}");
	assert_int_equal(len, strlen("{\"a\": [1, 2]}"));
	assert_string_equal(vitro_result_call_id(result), "c1");
	assert_null(vitro_result_error(result));
	assert_null(vitro_result_error_type(result));
	assert_string_equal(vitro_result_isolation(result), FAKE_CAPABILITIES);
	assert_int_equal(vitro_result_exit_code(result), -1);
	vitro_result_usage(result, &usage);
	assert_true(usage.wall_ms == 1.25 && usage.cpu_ms == 0.5 && usage.peak_memory_kb == 100);
	vitro_toolhost_free(host);
	/* A result outlives its tool host. */
	assert_non_null(strstr(vitro_result_json(result), "\"value\": {\"a\":[1,2]}"));
	vitro_result_free(result);
}

static void test_request_reaches_the_supervisor(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("head");
	vitro_result *result = vitro_call(
		host, &(struct vitro_request){ .tool = "head", .call_id = "mine", .wall_ms = 500 });

	assert_string_equal(vitro_result_value(result, NULL),
			    "{\"pool\":1,\"id\":\"mine\",\"wall_ms\":500,\"stream\":false}");
	vitro_result_free(result);
	result = call(host, "head", NULL);
	assert_string_equal(vitro_result_value(result, NULL),
			    "{\"pool\":1,\"id\":\"c2\",\"wall_ms\":-1,\"stream\":false}");
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

/* Every status comes through as itself, with its error. */
static void test_each_status(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("error", "timeout", "cpu_limit", "memory_limit", "crashed",
					 "no_result", "result_limit", "cancelled", "refused",
					 "lost");

	for (int status = VITRO_ERROR; status <= VITRO_LOST; status++) {
		const char *name = vitro_status_name((enum vitro_status)status);
		vitro_result *result = call(host, name, NULL);

		assert_int_equal(vitro_result_status(result), status);
		assert_null(vitro_result_value(result, NULL));
		assert_string_equal(vitro_result_error_type(result), "Type");
		assert_string_equal(vitro_result_error(result), "the sentence");
		vitro_result_free(result);
	}
	assert_string_equal(vitro_status_name((enum vitro_status)99), "unknown");
	vitro_toolhost_free(host);
}

struct heard {
	char text[512];
	int over;
	vitro_result *result;
	vitro_question *question;
};

static void hear(struct heard *heard, const char *fmt, ...)
{
	size_t used = strlen(heard->text);
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(heard->text + used, sizeof(heard->text) - used, fmt, args);
	va_end(args);
}

static void on_output(void *user, int stream, const char *bytes, size_t len)
{
	hear(user, "%d:%zu:%.3s ", stream, len, bytes);
}

static void on_log(void *user, const char *level, const char *text)
{
	hear(user, "%s:%s ", level, text);
}

static void on_done(void *user, vitro_result *result)
{
	struct heard *heard = user;

	heard->over++;
	vitro_result_free(heard->result);
	heard->result = result;
}

static void test_output_and_logs_stream(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("print");
	struct heard heard = { 0 };
	vitro_result *result = vitro_call(host, &(struct vitro_request){
							.tool = "print",
							.user = &heard,
							.on_output = on_output,
							.on_log = on_log,
						});
	size_t len;

	assert_string_equal(heard.text, "1:4:one info:a \"line\"\xef\xbf\xbd 2:4:two ");
	assert_string_equal(vitro_result_value(result, NULL), "true");
	assert_memory_equal(vitro_result_output(result, VITRO_STDERR, &len), "two\0", 5);
	assert_int_equal(len, 4);
	assert_int_equal(vitro_result_dropped(result, VITRO_STDERR), 7);
	assert_string_equal(
		vitro_result_json(result),
		"{\"call_id\": \"c1\", \"ok\": true, \"status\": \"ok\", \"value\": true, "
		"\"error\": null, \"exit_code\": 0, \"signal\": null, \"stdout\": \"one\\n\", "
		"\"stderr\": \"two\\u0000\", \"dropped\": {\"stdout\": 0, \"stderr\": 7}, "
		"\"logs\": [{\"level\":\"info\",\"text\":\"a \\\"line\\\"\xef\xbf\xbd\"}], "
		"\"usage\": {\"wall_ms\": 12.3, \"cpu_ms\": 0.0, \"peak_memory_kb\": null, "
		"\"processes\": 3}, \"isolation\": " FAKE_CAPABILITIES
		", \"files\": {}, \"denials\": null, \"unreaped\": true}\n");
	vitro_result_free(result);
	/* Nobody has to listen. */
	result = call(host, "print", NULL);
	assert_int_equal(vitro_result_status(result), VITRO_OK);
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

static void test_value_that_is_not_json(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("oops");
	vitro_result *result = call(host, "oops", NULL);

	assert_int_equal(vitro_result_status(result), VITRO_NO_RESULT);
	assert_null(vitro_result_value(result, NULL));
	assert_string_equal(vitro_result_error_type(result), "NoResult");
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

static void test_large_value(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("large", "echo");
	vitro_result *result = call(host, "large", NULL);
	size_t len;
	const char *value = vitro_result_value(result, &len);

	assert_int_equal(vitro_result_status(result), VITRO_OK);
	assert_int_equal(len, 20 << 20);
	assert_int_equal(strlen(value), 20 << 20);
	assert_true(value[0] == '"' && value[1] == 'x' && value[len - 1] == '"');
	vitro_result_free(result);
	result = call(host, "echo", NULL);
	assert_string_equal(vitro_result_value(result, NULL), "{}");
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

/* What the client refuses itself: the supervisor hears nothing of it. */
static void test_refused_before_it_is_sent(void **state)
{
	(void)state;
	static const struct {
		struct vitro_request request;
		const char *type, *text;
	} cases[] = {
		{ { .tool = "none" }, "NoSuchTool", "there is no tool 'none'" },
		{ { .tool = NULL }, "NoSuchTool", "there is no tool ''" },
		{ { .tool = "add", .arguments = "{\"a\":\"x\"}" },
		  "InvalidArguments",
		  "add: arguments.a: " },
		{ { .tool = "add", .arguments = "{" }, "InvalidArguments", "add: arguments" },
		{ { .tool = "add", .arguments = "" }, "InvalidArguments", "add: arguments" },
		{ { .tool = "add", .arguments = "[]" }, "InvalidArguments", "add: arguments" },
		{ { .tool = "add", .wall_ms = -1 }, "InvalidRequest", "wall_ms" },
		{ { .tool = "add", .call_id = "" }, "InvalidRequest", "call_id must have" },
		{ { .tool = "add", .call_id = "\xff" }, "InvalidRequest", "call_id is not UTF-8" },
		{ { .tool = "add", .call_id = "a\nb" }, "InvalidRequest", "call_id has a control" },
		{ { .tool = "add", .call_id = "\x7f" }, "InvalidRequest", "call_id has a control" },
		{ { .tool = "add", .reserved = { [7] = (void *)1 } },
		  "InvalidRequest",
		  "reserved must be 0" },
	};
	struct vitro_tool tools[] = {
		{ .name = "add",
		  .function = fake_function,
		  .schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}" },
		{ 0 },
	};
	vitro_toolhost *host;
	struct vitro_counts counts;

	assert_int_equal(vitro_toolhost_new(&host, tools, NULL, NULL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		vitro_result *result = vitro_call(host, &cases[i].request);

		assert_int_equal(vitro_result_status(result), VITRO_REFUSED);
		assert_string_equal(vitro_result_error_type(result), cases[i].type);
		assert_memory_equal(vitro_result_error(result), cases[i].text,
				    strlen(cases[i].text));
		assert_null(vitro_result_isolation(result));
		/* It has an id, whatever the request's was. */
		assert_int_equal(vitro_result_call_id(result)[0], 'c');
		vitro_result_free(result);
	}
	vitro_result *result = vitro_call(host, NULL);

	assert_string_equal(vitro_result_error_type(result), "NoSuchTool");
	vitro_result_free(result);
	assert_int_equal(vitro_cancel(host, NULL), -EINVAL);
	vitro_toolhost_count(host, &counts);
	assert_int_equal(counts.calls, 0);
	vitro_toolhost_free(host);
}

/* Also where the client itself makes the result, it comes by a dispatch, and the descriptor says
 * so. */
static void test_submit_tells_later(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("echo");
	struct heard heard = { 0 };
	struct pollfd poller = { .fd = vitro_toolhost_fd(host), .events = POLLIN };
	struct vitro_request request = { .tool = "none", .user = &heard };

	/* The supervisor's log line was held back. */
	assert_int_equal(vitro_dispatch(host), 0);
	assert_int_equal(poll(&poller, 1, 0), 0);
	assert_int_equal(vitro_submit(host, &request, on_done), 0);
	assert_int_equal(heard.over, 0);
	assert_int_equal(vitro_is_running(host, NULL), 0);
	assert_int_equal(fake_turn(host), 1);
	assert_int_equal(heard.over, 1);
	assert_int_equal(vitro_result_status(heard.result), VITRO_REFUSED);
	assert_int_equal(poll(&poller, 1, 0), 0);
	assert_int_equal(vitro_dispatch(host), 0);
	request.tool = "echo";
	assert_int_equal(vitro_submit(host, &request, on_done), 0);
	assert_int_equal(vitro_is_running(host, "c2"), 1);
	while (heard.over < 2)
		(void)fake_turn(host);
	assert_int_equal(vitro_result_status(heard.result), VITRO_OK);
	assert_int_equal(vitro_is_running(host, "c2"), 0);
	/* Nobody wants this one. */
	assert_int_equal(vitro_submit(host, &request, NULL), 0);
	assert_int_equal(fake_turn(host), 1);
	vitro_result_free(heard.result);
	vitro_toolhost_free(host);
}

struct many {
	int over[600];
	vitro_toolhost *host;
	int again;
};

static void on_many(void *user, vitro_result *result)
{
	struct many *many = user;
	int at = atoi(vitro_result_call_id(result));

	assert_int_equal(vitro_result_status(result), VITRO_OK);
	many->over[at]++;
	vitro_result_free(result);
}

/* More than the socket takes at once: nothing blocks, all come back once. */
static void test_many_at_once(void **state)
{
	(void)state;
	static char arguments[100000];
	struct many *many = calloc(1, sizeof(*many));
	int over = 0;

	memset(arguments, 'x', sizeof(arguments) - 1);
	memcpy(arguments, "{\"a\":\"", 6);
	memcpy(arguments + sizeof(arguments) - 3, "\"}", 3);
	many->host = FAKE_HOST("echo");
	for (int i = 0; i < 600; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "%d", i);
		assert_int_equal(vitro_submit(many->host,
					      &(struct vitro_request){ .tool = "echo",
								       .arguments = arguments,
								       .call_id = id,
								       .user = many },
					      on_many),
				 0);
	}
	assert_int_equal(vitro_is_running(many->host, "599"), 1);
	while (over < 600)
		over += fake_turn(many->host);
	for (int i = 0; i < 600; i++)
		assert_int_equal(many->over[i], 1);
	assert_int_equal(vitro_is_running(many->host, NULL), 0);
	vitro_toolhost_free(many->host);
	free(many);
}

/* A call-back that begins what is over at once does not keep a dispatch going for ever. */
static void on_again(void *user, vitro_result *result)
{
	struct many *many = user;

	vitro_result_free(result);
	many->again++;
	(void)vitro_submit(many->host, &(struct vitro_request){ .tool = "none", .user = many },
			   on_again);
}

static void test_dispatch_ends(void **state)
{
	(void)state;
	struct many *many = calloc(1, sizeof(*many));

	many->host = FAKE_HOST("echo");
	assert_int_equal(vitro_submit(many->host,
				      &(struct vitro_request){ .tool = "none", .user = many },
				      on_again),
			 0);
	assert_int_equal(fake_turn(many->host), 1);
	assert_int_equal(fake_turn(many->host), 1);
	assert_int_equal(many->again, 2);
	vitro_toolhost_free(many->host);
	free(many);
}

static void test_cancel(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("hang");
	struct heard heard = { 0 };
	struct vitro_request request = { .tool = "hang", .call_id = "h", .user = &heard };

	assert_int_equal(vitro_cancel(host, "h"), -ENOENT);
	assert_int_equal(vitro_submit(host, &request, on_done), 0);
	/* The same id twice is two calls that cannot be told apart. */
	vitro_result *result = vitro_call(host, &request);

	assert_int_equal(vitro_result_status(result), VITRO_REFUSED);
	vitro_result_free(result);
	assert_int_equal(vitro_is_running(host, "h"), 1);
	assert_int_equal(vitro_cancel(host, "h"), 0);
	assert_int_equal(vitro_cancel(host, "h"), 0);
	while (heard.over < 1)
		(void)fake_turn(host);
	assert_int_equal(vitro_result_status(heard.result), VITRO_CANCELLED);
	assert_int_equal(vitro_cancel(host, "h"), -ENOENT);
	request.call_id = NULL;
	for (int i = 0; i < 5; i++)
		assert_int_equal(vitro_submit(host, &request, on_done), 0);
	vitro_cancel_all(host);
	while (heard.over < 6)
		(void)fake_turn(host);
	vitro_result_free(heard.result);
	vitro_toolhost_free(host);
}

/* An id that was made is not one that the program uses. */
static void test_made_ids_differ(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("hang", "echo");

	assert_int_equal(vitro_submit(host,
				      &(struct vitro_request){ .tool = "hang", .call_id = "c2" },
				      NULL),
			 0);
	vitro_result *result = call(host, "echo", NULL);

	assert_int_equal(vitro_result_status(result), VITRO_OK);
	assert_string_equal(vitro_result_call_id(result), "c2.1");
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

static void on_call_within(void *user, vitro_result *result)
{
	struct many *many = user;

	vitro_result_free(result);
	result = call(many->host, "echo", "{\"within\":1}");
	assert_string_equal(vitro_result_value(result, NULL), "{\"within\":1}");
	vitro_result_free(result);
	many->again++;
}

/* A call-back may call, and wait; what was submitted is told meanwhile. */
static void test_call_within_a_call_back(void **state)
{
	(void)state;
	struct many *many = calloc(1, sizeof(*many));

	many->host = FAKE_HOST("echo");
	for (int i = 0; i < 50; i++)
		assert_int_equal(
			vitro_submit(many->host,
				     &(struct vitro_request){ .tool = "echo", .user = many },
				     on_call_within),
			0);
	while (many->again < 50)
		(void)fake_turn(many->host);
	vitro_toolhost_free(many->host);
	free(many);
}

static void test_command(void **state)
{
	(void)state;
	static const char *const words[] = { "wc", "-l", "--", "{file}", "{more...}", NULL };
	struct vitro_tool tools[] = {
		{ .name = "count", .command = words },
		{ .name = "cut", .command = words },
		{ .name = "fail", .command = words },
		{ 0 },
	};
	vitro_toolhost *host;

	assert_int_equal(vitro_toolhost_new(&host, tools, NULL, NULL), 0);
	/* The words and the input are no JSON together: a text. */
	vitro_result *result = call(host, "count", "{\"file\":\"a \\\"b\"}");

	assert_int_equal(vitro_result_status(result), VITRO_OK);
	assert_string_equal(vitro_result_value(result, NULL),
			    "\"wc\\u0000-l\\u0000--\\u0000"
			    "a \\\"b\\u0000{\\\"file\\\":\\\"a \\\\\\\"b\\\"}\"");
	vitro_result_free(result);
	result = call(host, "count", "{}");
	assert_int_equal(vitro_result_status(result), VITRO_REFUSED);
	vitro_result_free(result);
	result = call(host, "cut", "{\"file\":\"a\"}");
	assert_int_equal(vitro_result_status(result), VITRO_RESULT_LIMIT);
	assert_null(vitro_result_value(result, NULL));
	vitro_result_free(result);
	/* What went wrong is what it said last. */
	result = call(host, "fail", "{\"file\":\"first\\nlast\"}");
	assert_int_equal(vitro_result_status(result), VITRO_ERROR);
	assert_int_equal(vitro_result_exit_code(result), 3);
	assert_string_equal(vitro_result_error(result),
			    "no: wc -l -- first\nlast {\"file\":\"first\\nlast\"}");
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

/* A long tail begins with a line. */
static void test_last_words_of_a_command(void **state)
{
	(void)state;
	static const char *const words[] = { "wc", NULL };
	struct vitro_tool tools[] = { { .name = "fail", .command = words }, { 0 } };
	char arguments[8192];
	vitro_toolhost *host;

	assert_int_equal(vitro_toolhost_new(&host, tools, NULL, NULL), 0);
	/* What is read is what comes back as standard error, spaces and all. */
	memset(arguments, ' ', sizeof(arguments));
	memcpy(arguments, "{\n", 2);
	memcpy(arguments + 6500, "\n\"a\": 1\n}\n", 11);
	arguments[6511] = '\0';
	vitro_result *result = call(host, "fail", arguments);

	assert_string_equal(vitro_result_error(result), "no: \"a\": 1\n}");
	assert_int_equal(vitro_result_exit_code(result), 3);
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

/* Calls that are not over when the tool host is freed get no result, and leave nothing. */
static void test_free_amid_calls(void **state)
{
	(void)state;
	vitro_toolhost *host = FAKE_HOST("hang", "echo");
	struct heard heard = { 0 };
	struct vitro_request request = { .tool = "hang", .user = &heard };

	for (int i = 0; i < 10; i++)
		assert_int_equal(vitro_submit(host, &request, on_done), 0);
	request.tool = "none";
	assert_int_equal(vitro_submit(host, &request, on_done), 0);
	vitro_toolhost_free(host);
	assert_int_equal(heard.over, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(test_call_gives_the_value),
		FAKE_TEST(test_request_reaches_the_supervisor),
		FAKE_TEST(test_each_status),
		FAKE_TEST(test_output_and_logs_stream),
		FAKE_TEST(test_value_that_is_not_json),
		FAKE_TEST(test_large_value),
		FAKE_TEST(test_refused_before_it_is_sent),
		FAKE_TEST(test_submit_tells_later),
		FAKE_TEST(test_many_at_once),
		FAKE_TEST(test_dispatch_ends),
		FAKE_TEST(test_cancel),
		FAKE_TEST(test_made_ids_differ),
		FAKE_TEST(test_call_within_a_call_back),
		FAKE_TEST(test_command),
		FAKE_TEST(test_last_words_of_a_command),
		FAKE_TEST(test_free_amid_calls),
	};

	fake_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
