/* SPDX-License-Identifier: Apache-2.0 */
/* What a tool in C can do from within its cell, through a real supervisor. argv: vitro. */
#include "library_test.h"

#include <fcntl.h>
#include <sys/resource.h>

enum { ANSWER = 16 << 20 };

/* ---- the tools ----------------------------------------------------------------------------- */

static int return_number(vitro_task *task, int number)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%d", number);
	return vitro_task_return(task, text);
}

static int tell_id(vitro_task *task)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "\"%s\"", vitro_task_call_id(task));
	return vitro_task_return(task, text);
}

static int tell_arguments(vitro_task *task)
{
	size_t len;
	const char *arguments = vitro_task_arguments(task, &len);

	return len == strlen(arguments) ? vitro_task_return(task, arguments)
					: vitro_task_fail(task, "Length", "is wrong");
}

static int log_lines(vitro_task *task)
{
	static char level[1024];
	int r = vitro_task_log(task, "info", "one");

	if (r == 0)
		r = vitro_task_log(task, "error", "two\nlines");
	memset(level, 'l', sizeof(level) - 1);
	if (r == 0 && vitro_task_log(task, level, "never") != -ENAMETOOLONG)
		r = -EPROTO;
	return return_number(task, r);
}

/* The first result counts, and what is printed before it belongs to it. */
static int give_twice(vitro_task *task)
{
	(void)printf("printed");
	int first = vitro_task_return(task, "\"first\"");
	int second = vitro_task_return(task, "\"second\""), third = vitro_task_fail(task, "T", "t");

	return first == 0 && second == -EALREADY && third == -EALREADY ? 0 : -EPROTO;
}

static int give_nothing(vitro_task *task)
{
	(void)task;
	return 0;
}

/* What it speaks with the supervisor over is gone: it cannot be heard, and must not be waited for.
 */
static int lose_socket(vitro_task *task)
{
	(void)close(3);
	return vitro_task_return(task, "1") == -EBADF ? vitro_task_fail(task, "T", "t") : 0;
}

static int cover_socket(vitro_task *task)
{
	int r = dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 3);

	return r == 3 ? vitro_task_return(task, "1") : r;
}

static int give_nested(vitro_task *task)
{
	char text[1200];

	memset(text, '[', 600);
	memset(text + 600, ']', 600);
	return vitro_task_return_bytes(task, text, sizeof(text));
}

/* What must be there, and is not, ends nothing. */
static int give_null(vitro_task *task)
{
	char *value;
	uint64_t ticket;
	int all = vitro_task_return(task, NULL) & vitro_task_return_bytes(task, NULL, 1) &
		  vitro_task_fail(task, NULL, "x") & vitro_task_fail(task, "x", NULL) &
		  vitro_task_log(task, NULL, "x") & vitro_task_log(task, "x", NULL) &
		  vitro_task_call(task, NULL, NULL, &value) &
		  vitro_task_call(task, "x", NULL, NULL) &
		  vitro_task_submit(task, NULL, NULL, &ticket);

	return return_number(task, all == -EINVAL);
}

static int fail_with(vitro_task *task)
{
	return vitro_task_fail(task, "ValueError", "that will not do");
}

/* {"tool": "NAME"}: calls it with the same arguments, and gives what it gave. */
static int call_other(vitro_task *task)
{
	const char *arguments = vitro_task_arguments(task, NULL);
	char name[64] = "", *value = NULL;

	(void)sscanf(arguments, "{\"tool\": \"%63[^\"]", name);
	int r = vitro_task_call(task, name, arguments, &value);

	if (r == 0)
		r = vitro_task_return(task, value);
	else
		r = vitro_task_fail(task, strerrorname_np(-r), value ? value : "no reason");
	free(value);
	return r;
}

/* Three questions at once, whose answers are taken in another order than they come in. */
static int ask_many(vitro_task *task)
{
	uint64_t tickets[3], any = 0;
	char *value = NULL, text[128] = "";
	int r = 0;

	for (int i = 0; r == 0 && i < 3; i++)
		r = vitro_task_submit(task, "mine", i == 1 ? NULL : "[1]", &tickets[i]);
	if (r == 0)
		r = vitro_task_await(task, tickets[2], NULL, &value);
	(void)snprintf(text, sizeof(text), "[%s", r == 0 ? value : "null");
	free(value);
	value = NULL;
	for (int i = 0; r == 0 && i < 2; i++) {
		r = vitro_task_await(task, 0, &any, &value);
		if (any != tickets[0] && any != tickets[1])
			r = -EPROTO;
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), ", %s",
			       r == 0 ? value : "null");
		free(value);
		value = NULL;
	}
	/* There are no more. */
	if (r == 0 && (vitro_task_await(task, 0, NULL, &value) != -ENOENT ||
		       vitro_task_await(task, tickets[0], NULL, &value) != -ENOENT))
		r = -EPROTO;
	(void)strcat(text, "]");
	return r < 0 ? vitro_task_fail(task, "Error", strerrorname_np(-r))
		     : vitro_task_return(task, text);
}

/* An answer that is too large for the memory that is left is lost, and not waited for once more. */
static int ask_for_much(vitro_task *task)
{
	struct rlimit usual;
	char *value = NULL;
	uint64_t ticket;
	int r = vitro_task_submit(task, "mine", NULL, &ticket);

	if (r < 0 || getrlimit(RLIMIT_DATA, &usual) < 0 ||
	    setrlimit(RLIMIT_DATA, &(struct rlimit){ ANSWER + ANSWER / 2, usual.rlim_max }) < 0)
		return vitro_task_fail(task, "Error", "cannot begin");
	int first = vitro_task_await(task, ticket, NULL, &value);

	if (setrlimit(RLIMIT_DATA, &usual) < 0)
		return vitro_task_fail(task, "Error", "cannot go on");
	if (first != -ENOMEM)
		return return_number(task, first);
	return return_number(task, vitro_task_await(task, ticket, NULL, &value) == -ENOENT);
}

/* What is too long for a question ends neither this call, nor its other questions. */
static int ask_at_length(vitro_task *task)
{
	const size_t most = 1 << 20;
	char *text = malloc(most + 2), *value = NULL;

	if (!text)
		return -ENOMEM;
	memset(text, ' ', most + 1);
	memcpy(text, "{}", 2);
	text[most + 1] = '\0';
	int longer = vitro_task_call(task, "arguments", text, &value);

	text[most] = '\0';
	int r = vitro_task_call(task, "arguments", text, &value);
	size_t len = r == 0 ? strlen(value) : 0;

	return longer == -EMSGSIZE ? return_number(task, len == most) : return_number(task, longer);
}

static int wait_for_ever(vitro_task *task)
{
	while (pause() < 0)
		;
	return vitro_task_return(task, "1");
}

static const char *const all[] = { "*", NULL };
static const char *const one[] = { "id", NULL };

static const struct vitro_tool tools[] = {
	{ .name = "id", .function = tell_id },
	{ .name = "arguments", .function = tell_arguments },
	{ .name = "log", .function = log_lines },
	{ .name = "twice", .function = give_twice },
	{ .name = "nothing", .function = give_nothing },
	{ .name = "lose", .function = lose_socket },
	{ .name = "cover", .function = cover_socket },
	{ .name = "null", .function = give_null },
	{ .name = "nested", .function = give_nested },
	{ .name = "fail", .function = fail_with },
	{ .name = "call", .function = call_other, .may_call = all },
	{ .name = "call-one", .function = call_other, .may_call = one },
	{ .name = "many", .function = ask_many },
	{ .name = "much", .function = ask_for_much },
	{ .name = "length", .function = ask_at_length, .may_call = all },
	{ .name = "wait", .function = wait_for_ever },
	{ 0 },
};

/* ---- the tests ----------------------------------------------------------------------------- */

static void test_what_a_task_knows(void **state)
{
	(void)state;
	vitro_toolhost *host = host_of(tools, NULL);
	vitro_result *result = vitro_call(
		host, &(struct vitro_request){ .tool = "id", .call_id = "mine \xc3\xa9" });

	assert_status(result, VITRO_OK);
	assert_string_equal(vitro_result_value(result, NULL), "\"mine \xc3\xa9\"");
	assert_string_equal(vitro_result_call_id(result), "mine \xc3\xa9");
	vitro_result_free(result);
	assert_value(host, "arguments", "{ \"a\": [1.50] }", "{ \"a\": [1.50] }");
	assert_value(host, "arguments", NULL, "{}");
	vitro_toolhost_free(host);
}

static void add_line(void *user, const char *level, const char *text)
{
	char *lines = user;

	(void)sprintf(lines + strlen(lines), "%s:%s;", level, text);
}

static void test_log(void **state)
{
	(void)state;
	vitro_toolhost *host = host_of(tools, NULL);
	char lines[256] = "";
	vitro_result *result = vitro_call(
		host, &(struct vitro_request){ .tool = "log", .user = lines, .on_log = add_line });

	assert_status(result, VITRO_OK);
	assert_string_equal(vitro_result_value(result, NULL), "0");
	assert_string_equal(lines, "info:one;error:two\nlines;");
	assert_non_null(strstr(vitro_result_json(result),
			       "\"logs\": [{\"level\":\"info\",\"text\":\"one\"}, "
			       "{\"level\":\"error\",\"text\":\"two\\nlines\"}]"));
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

static void add_output(void *user, int stream, const char *bytes, size_t len)
{
	char *text = user;

	(void)sprintf(text + strlen(text), "%d:%.*s;", stream, (int)len, bytes);
}

static void test_results(void **state)
{
	(void)state;
	vitro_toolhost *host = host_of(tools, NULL);
	char text[256] = "";
	vitro_result *result = vitro_call(
		host,
		&(struct vitro_request){ .tool = "twice", .user = text, .on_output = add_output });

	assert_status(result, VITRO_OK);
	assert_string_equal(vitro_result_value(result, NULL), "\"first\"");
	assert_string_equal(vitro_result_output(result, VITRO_STDOUT, NULL), "printed");
	assert_string_equal(text, "1:printed;");
	assert_int_equal(vitro_result_exit_code(result), -1);
	vitro_result_free(result);
	static const char *const without[] = { "nothing", "lose", "cover" };

	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		result = call(host, without[i], NULL);
		assert_status(result, VITRO_NO_RESULT);
		assert_int_equal(vitro_result_exit_code(result), 0);
		vitro_result_free(result);
	}
	result = call(host, "nested", NULL);
	assert_status(result, VITRO_NO_RESULT);
	assert_non_null(strstr(vitro_result_error(result), "nested deeper than 512 levels"));
	vitro_result_free(result);
	assert_value(host, "null", NULL, "1");
	assert_error(host, "fail", NULL, "ValueError", "that will not do");
	vitro_toolhost_free(host);
}

/* No cell is made in a millisecond, on most machines. */
static void test_deadline_that_is_too_short(void **state)
{
	(void)state;
	vitro_toolhost_free(host_of(tools, NULL)); /* which is skipped where all is refused */
	vitro_policy *policy = policy_of("limits.wall_ms", "1");
	const struct vitro_options options = { .policy = policy };
	struct vitro_error error;
	vitro_toolhost *host = NULL;

	if (vitro_toolhost_new(&host, tools, &options, &error) < 0) {
		assert_int_equal(error.num, EPERM);
		assert_non_null(strstr(error.text, "limits.wall_ms is too short"));
	}
	vitro_toolhost_free(host);
	vitro_policy_free(policy);
}

static void test_tools_call_tools(void **state)
{
	(void)state;
	vitro_toolhost *host = host_of(tools, NULL);

	assert_value(host, "call", "{\"tool\": \"arguments\"}", "{\"tool\": \"arguments\"}");
	assert_error(host, "call", "{\"tool\": \"fail\"}", "EREMOTEIO", "that will not do");
	assert_error(host, "call", "{\"tool\": \"none\"}", "EREMOTEIO", "there is no such tool");
	assert_error(host, "call-one", "{\"tool\": \"fail\"}", "EREMOTEIO",
		     "this tool may not call that one");
	/* The id of a call within a call is its own. */
	vitro_result *result = vitro_call(
		host, &(struct vitro_request){ .tool = "call-one",
					       .arguments = "{\"tool\": \"id\"}",
					       .call_id = "outer" });

	assert_status(result, VITRO_OK);
	assert_null(strstr(vitro_result_value(result, NULL), "outer"));
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

struct asked {
	vitro_question *questions[3];
	int count;
};

/* Kept until there are three, and answered from the last to the first. */
static void take_question(void *user, vitro_question *question, const char *tool,
			  const char *arguments)
{
	struct asked *asked = user;
	char value[16];

	assert_string_equal(tool, "mine");
	assert_string_equal(arguments, asked->count == 1 ? "{}" : "[1]");
	asked->questions[asked->count++] = question;
	while (asked->count == 3 && asked->questions[0]) {
		int last = asked->questions[2] ? 2 : asked->questions[1] ? 1 : 0;

		(void)snprintf(value, sizeof(value), "%d", last);
		vitro_question_answer(asked->questions[last], value, NULL);
		asked->questions[last] = NULL;
	}
}

static void test_many_questions(void **state)
{
	(void)state;
	vitro_toolhost *host = host_of(tools, NULL);
	struct asked asked = { 0 };
	vitro_result *result = vitro_call(
		host, &(struct vitro_request){
			      .tool = "many", .user = &asked, .on_call = take_question });

	assert_status(result, VITRO_OK);
	/* Of those that are left, either may be first. */
	if (strcmp(vitro_result_value(result, NULL), "[2, 1, 0]") != 0)
		assert_string_equal(vitro_result_value(result, NULL), "[2, 0, 1]");
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

static void test_question_that_is_too_long(void **state)
{
	(void)state;
	vitro_policy *policy = policy_of("limits.result_mb", "1");
	vitro_toolhost *host = host_of(tools, &(struct vitro_options){ .policy = policy });

	assert_value(host, "length", NULL, "1");
	vitro_toolhost_free(host);
	vitro_policy_free(policy);
}

static void give_much(void *user, vitro_question *question, const char *tool, const char *arguments)
{
	char *value = malloc(ANSWER + 1); /* not in what each occupant has of this program */

	(void)user, (void)tool, (void)arguments;
	assert_non_null(value);
	memset(value, ' ', ANSWER);
	value[0] = '1';
	value[ANSWER] = '\0';
	vitro_question_answer(question, value, NULL);
	free(value);
}

static void test_answer_without_memory(void **state)
{
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	SKIP("the sanitizer has memory of its own");
#endif
	vitro_toolhost *host = host_of(tools, NULL);
	vitro_result *result = vitro_call(
		host,
		&(struct vitro_request){ .tool = "much", .on_call = give_much, .wall_ms = 8000 });

	assert_status(result, VITRO_OK);
	assert_string_equal(vitro_result_value(result, NULL), "1");
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

static void test_ending(void **state)
{
	(void)state;
	vitro_toolhost *host = host_of(tools, NULL);
	vitro_result *results[3] = { NULL };
	char id[] = "w0";

	for (int i = 0; i < 3; i++, id[1]++)
		assert_int_equal(vitro_submit(host,
					      &(struct vitro_request){ .tool = "wait",
								       .call_id = id,
								       .user = &results[i] },
					      keep),
				 0);
	assert_int_equal(vitro_is_running(host, NULL), 1);
	assert_int_equal(vitro_cancel(host, "w1"), 0);
	while (!results[1])
		turn(host);
	assert_status(results[1], VITRO_CANCELLED);
	assert_int_equal(vitro_is_running(host, "w1"), 0);
	assert_int_equal(vitro_is_running(host, "w2"), 1);
	assert_int_equal(vitro_cancel(host, "w1"), -ENOENT);
	vitro_cancel_all(host);
	while (!results[0] || !results[2])
		turn(host);
	assert_int_equal(vitro_is_running(host, NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_status(results[i], VITRO_CANCELLED);
		vitro_result_free(results[i]);
	}
	vitro_toolhost_free(host);
}

int main(int argc, char **argv)
{
	vitro_host_main(argc, argv, tools);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_task_knows),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_results),
		cmocka_unit_test(test_tools_call_tools),
		cmocka_unit_test(test_many_questions),
		cmocka_unit_test(test_question_that_is_too_long),
		cmocka_unit_test(test_answer_without_memory),
		cmocka_unit_test(test_ending),
		cmocka_unit_test(test_deadline_that_is_too_short),
	};

	if (argc < 2 || setenv("VITRO_BINARY", argv[1], 1) < 0)
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
