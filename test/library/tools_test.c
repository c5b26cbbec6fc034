/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What vitro.h promises, through a real supervisor: every kind of tool, and what becomes of a call.
 * The program is linked with the library as others are. argv: the shared object with tools.
 */
#include "library_test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

static const char *object; /* the plugin */

/* ---- tools of the program ------------------------------------------------------------------ */

static int echo(vitro_task *task)
{
	return vitro_task_return(task, vitro_task_arguments(task, NULL));
}

/* An error with a type and a sentence that are longer than most. */
static int fail_at_length(vitro_task *task)
{
	char type[101], text[9001];

	memset(type, 'T', 100);
	type[100] = '\0';
	for (int i = 0; i < 9000; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[9000] = '\0';
	return vitro_task_fail(task, type, text);
}

static int give(vitro_task *task)
{
	size_t len = (size_t)atoi(strchr(vitro_task_arguments(task, NULL), ':') + 1);
	char *value = malloc(len);

	if (!value)
		return -ENOMEM;
	memset(value, ' ', len);
	value[0] = '1';
	return vitro_task_return_bytes(task, value, len);
}

static volatile sig_atomic_t told;

static void on_term(int number)
{
	(void)number;
	told = 1;
}

/* Says so when it is told to end, and tries to give a result all the same. */
static int linger(vitro_task *task)
{
	struct sigaction action = { .sa_handler = on_term };

	(void)sigaction(SIGTERM, &action, NULL);
	while (!told)
		(void)usleep(1000);
	(void)!write(1, "told", 4);
	return vitro_task_return(task, "1");
}

static int sleep_long(vitro_task *task)
{
	while (!told)
		(void)pause();
	return vitro_task_return(task, "null");
}

static const struct vitro_tool own[] = {
	{ .name = "echo", .function = echo },        { .name = "fail", .function = fail_at_length },
	{ .name = "give", .function = give },        { .name = "linger", .function = linger },
	{ .name = "sleep", .function = sleep_long }, { 0 },
};

/* ---- the tests' side ----------------------------------------------------------------------- */

#define COMMAND(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- commands ------------------------------------------------------------------------------ */

static void test_value_of_a_command(void **state)
{
	(void)state;
	const struct vitro_tool tools[] = {
		{ .name = "cat", .command = COMMAND("cat") },
		{ .name = "reopen", .command = COMMAND("cat", "/dev/stdin", "/dev/stdin") },
		{ .name = "words", .command = COMMAND("printf", "<%s>", "{a}", "{b...}") },
		{ .name = "env", .command = COMMAND("env") },
		{ .name = "where", .command = COMMAND("sh", "-c", "pwd; ls -A; id -u; echo $$") },
		{ 0 },
	};
	vitro_toolhost *host = host_of(tools, NULL);
	vitro_result *result;

	/* Standard input is the arguments, and JSON that is printed is the value. */
	assert_value(host, "cat", "{\"x\": [1, 2.50]}", "{\"x\": [1, 2.50]}");
	assert_value(host, "cat", NULL, "{}");
	assert_value(host, "reopen", "{\"x\": 1}", "\"{\\\"x\\\": 1}{\\\"x\\\": 1}\"");
	/* Else it is text. No shell reads the words. */
	assert_value(host, "words", "{\"a\": \"$(id) ;\", \"b\": [\"*\", \"\", 7]}",
		     "\"<$(id) ;><*><><7>\"");
	if (has_namespaces(host)) {
		assert_value(
			host, "env", "{}",
			"\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\\n"
			"HOME=/tmp\\nLANG=C.UTF-8\\n\"");
		assert_value(host, "where", "{}", "\"/tmp\\n1000\\n2\\n\"");
	}
	result = call(host, "cat", "{}");
	assert_int_equal(vitro_result_exit_code(result), 0);
	assert_non_null(strstr(vitro_result_isolation(result), "\"processes\": \""));
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

static void test_large_input_of_a_command(void **state)
{
	(void)state;
	const struct vitro_tool tools[] = { { .name = "count", .command = COMMAND("wc", "-c") },
					    { 0 } };
	vitro_policy *policy = policy_of("limits.file_mb", "0");
	vitro_toolhost *host = host_of(tools, &(struct vitro_options){ .policy = policy });
	size_t len = (size_t)3 << 20;
	char *arguments = malloc(len + 1);

	vitro_policy_free(policy);
	memset(arguments, ' ', len);
	arguments[0] = '{';
	arguments[len - 1] = '}';
	arguments[len] = '\0';
	assert_value(host, "count", arguments, "3145728");
	free(arguments);
	vitro_toolhost_free(host);
}

static void test_failures_of_a_command(void **state)
{
	(void)state;
	const struct vitro_tool tools[] = {
		{ .name = "exit",
		  .command = COMMAND("sh", "-c",
				     "echo out; echo first >&2; echo why >&2; exit 3") },
		{ .name = "quiet", .command = COMMAND("false") },
		{ .name = "signal", .command = COMMAND("sh", "-c", "kill -SEGV 0") },
		{ .name = "forever", .command = COMMAND("sleep", "100") },
		{ .name = "flood", .command = COMMAND("head", "-c", "3000000", "/dev/zero") },
		{ 0 },
	};
	vitro_toolhost *host = host_of(tools, NULL);
	struct vitro_error error;
	vitro_result *result;

	assert_error(host, "exit", "{}", "ExitCode", "exited with code 3: first\nwhy");
	assert_error(host, "quiet", "{}", "ExitCode", "exited with code 1");
	result = call(host, "exit", "{}");
	assert_int_equal(vitro_result_exit_code(result), 3);
	assert_null(vitro_result_value(result, NULL));
	assert_string_equal(vitro_result_output(result, VITRO_STDOUT, NULL), "out\n");
	vitro_result_free(result);
	result = call(host, "signal", "{}");
	assert_status(result, VITRO_CRASHED);
	assert_int_equal(vitro_result_signal(result), SIGSEGV);
	vitro_result_free(result);
	result = vitro_call(host, &(struct vitro_request){ .tool = "forever", .wall_ms = 100 });
	assert_status(result, VITRO_TIMEOUT);
	assert_int_equal(vitro_result_signal(result), SIGKILL);
	vitro_result_free(result);
	/* Output that was cut could be other JSON than what was printed. */
	result = call(host, "flood", "{}");
	assert_status(result, VITRO_RESULT_LIMIT);
	assert_int_equal(vitro_result_dropped(result, VITRO_STDOUT), 3000000 - (1 << 20));
	vitro_result_free(result);
	/* A program that is not there shows when the tool is added. */
	assert_int_equal(
		vitro_toolhost_add(host,
				   &(struct vitro_tool){ .name = "none",
							 .command = COMMAND("no-such-program") },
				   &error),
		-ENOENT);
	assert_non_null(strstr(error.text, "no-such-program"));
	vitro_toolhost_free(host);
}

/* One that is removed, or changed, after that. */
static void test_program_that_is_gone(void **state)
{
	(void)state;
	char folder[] = "/var/tmp/library-test-XXXXXX", path[64], other[64];
	vitro_policy *policy;
	FILE *file;

	if (!mkdtemp(folder))
		SKIP("nothing can be written in the folder of this case");
	assert_int_equal(chmod(folder, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/tool", folder);
	(void)snprintf(other, sizeof(other), "%s/other", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	(void)fputs("#!/bin/sh\nprintf '[\"%s\"]' \"$0\"\n", file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0755), 0);
	policy = policy_of("files.read", folder);
	const struct vitro_tool tools[] = {
		{ .name = "tool", .command = COMMAND(path), .policy = policy }, { 0 }
	};
	vitro_toolhost *host = host_of(tools, NULL);
	char wanted[128];

	(void)snprintf(wanted, sizeof(wanted), "[\"%s\"]", path);
	assert_value(host, "tool", "{}", wanted);
	assert_int_equal(chmod(path, 0644), 0);
	assert_error(host, "tool", "{}", "CannotExecute", "cannot execute");
	assert_int_equal(rename(path, other), 0);
	vitro_result *result = call(host, "tool", "{}");

	assert_status(result, VITRO_ERROR);
	assert_string_equal(vitro_result_error_type(result), "NotFound");
	assert_int_equal(vitro_result_exit_code(result), 127);
	vitro_result_free(result);
	vitro_toolhost_free(host);
	vitro_policy_free(policy);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* Nothing of a command is left when its result is there, nor in the next call. */
static void test_commands_leave_nothing(void **state)
{
	(void)state;
	char folder[] = "/tmp/library-test-XXXXXX", left[64];
	struct stat st;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0777), 0); /* a cell's user may be anybody */
	vitro_policy *policy = policy_of("files.write", folder);
	char script[256];

	(void)snprintf(left, sizeof(left), "%s/left", folder);
	(void)snprintf(script, sizeof(script),
		       "(exec >/dev/null 2>&1; sleep 0.3; : >%s) & echo gone", left);
	const struct vitro_tool tools[] = {
		{ .name = "leave", .command = COMMAND("sh", "-c", script), .policy = policy },
		{ .name = "hold", .command = COMMAND("sh", "-c", "sleep 100 & echo held") },
		{ .name = "tmp", .command = COMMAND("sh", "-c", "ls -A; : >left") },
		{ 0 },
	};
	vitro_toolhost *host = host_of(tools, NULL);

	assert_value(host, "leave", "{}", "\"gone\\n\"");
	/* Its child has the pipe; nobody waits for it. */
	assert_value(host, "hold", "{}", "\"held\\n\"");
	assert_value(host, "tmp", "{}", "\"\"");
	assert_value(host, "tmp", "{}", "\"\"");
	(void)usleep(500000);
	assert_int_equal(stat(left, &st), -1);
	vitro_toolhost_free(host);
	vitro_policy_free(policy);
	assert_int_equal(rmdir(folder), 0);
}

/* What the policy does not give is not there, as for `vitro run`. */
static void test_commands_are_sealed(void **state)
{
	(void)state;
	const struct vitro_tool tools[] = {
		{ .name = "home", .command = COMMAND("sh", "-c", "ls /home /root; true") },
		{ .name = "write", .command = COMMAND("sh", "-c", "touch /usr/bin/x") },
		{ .name = "fds",
		  .command = COMMAND("sh", "-c", "ls /proc/self/fd | tr '\\n' ' '") },
		{ .name = "input", .command = COMMAND("sh", "-c", "echo x 1<>/proc/self/fd/0") },
		{ .name = "net",
		  .command = COMMAND("python3", "-c", "import socket; socket.socket()") },
		{ 0 },
	};
	vitro_toolhost *host = host_of(tools, NULL);
	vitro_result *result = call(host, "home", "{}");

	assert_status(result, VITRO_OK);
	assert_string_equal(vitro_result_value(result, NULL), "\"\"");
	vitro_result_free(result);
	assert_error(host, "write", "{}", "ExitCode", "exited with code 1: touch: cannot touch");
	if (has_namespaces(host))
		assert_value(host, "fds", "{}", "\"0 1 2 3 \""); /* 3 is what ls reads */
	assert_error(host, "input", "{}", "ExitCode", "code 1");
	assert_error(host, "net", "{}", "ExitCode", "Address family not supported");
	vitro_toolhost_free(host);
}

/* ---- shared objects ------------------------------------------------------------------------ */

static void test_functions_of_an_object(void **state)
{
	(void)state;
	const struct vitro_tool tools[] = {
		{ .name = "twice", .object = object, .symbol = "plugin_twice" },
		{ .name = "count", .object = object, .symbol = "plugin_count" },
		{ .name = "look", .object = object, .symbol = "plugin_surroundings" },
		{ .name = "none", .object = object, .symbol = "plugin_none" },
		{ 0 },
	};
	vitro_toolhost *host = host_of(tools, NULL);
	struct vitro_error error;

	assert_value(host, "twice", "{\"n\": 21}", "42");
	assert_error(host, "twice", "{\"n\": null}", "ValueError", "n must be a number");
	assert_value(host, "count", "{}", "1");
	assert_value(host, "count", "{}", "1");
	/* Its constructor saw what a cell sees, and not what is there. */
	assert_int_equal(access("/var/lib/dpkg/status", R_OK), 0);
	if (has_namespaces(host))
		assert_value(host, "look", "{}", "{\"shadow\": 0, \"host\": 0}");
	assert_error(host, "none", "{}", "NotFound", "no function of that name");
	assert_int_equal(vitro_toolhost_add(host,
					    &(struct vitro_tool){ .name = "x",
								  .object = "/no/such/object.so",
								  .symbol = "x" },
					    &error),
			 -ENOENT);
	vitro_toolhost_free(host);
}

static void test_object_that_is_none(void **state)
{
	(void)state;
	const struct vitro_tool tools[] = {
		{ .name = "x", .object = "/usr/bin/env", .symbol = "main" }, { 0 }
	};
	vitro_policy *writing = policy_of("files.write", "/var/tmp");
	vitro_toolhost *host = host_of(tools, NULL);

	assert_error(host, "x", "{}", "CannotExecute", "cannot load '/usr/bin/env'");
	vitro_toolhost_free(host);
	/* Without namespaces, it is the call that loads it here. */
	host = host_of(tools, &(struct vitro_options){ .policy = writing });
	vitro_policy_free(writing);
	assert_error(host, "x", "{}", "CannotExecute", "cannot load '/usr/bin/env'");
	vitro_toolhost_free(host);
}

/* ---- what holds ---------------------------------------------------------------------------- */

static void test_capabilities_without_a_tool(void **state)
{
	(void)state;
	const struct vitro_tool any[] = { { .name = "any", .command = COMMAND("true") }, { 0 } };

	vitro_toolhost_free(host_of(any, NULL)); /* or there are no pools at all */
	vitro_policy *policy = policy_of("network", "host");
	vitro_toolhost *host = host_of(NULL, &(struct vitro_options){ .policy = policy });
	struct vitro_counts counts;

	for (int i = 0; i < 2; i++) {
		char *text = vitro_toolhost_capabilities(host, NULL);

		assert_non_null(text);
		assert_non_null(strstr(text, "\"network\": \"host\""));
		free(text);
	}
	/* Nothing was started for it. */
	vitro_toolhost_count(host, &counts);
	assert_int_equal(counts.ready + counts.refilling + counts.cells_made, 0);
	vitro_toolhost_free(host);
	vitro_policy_free(policy);
}

/* ---- limits -------------------------------------------------------------------------------- */

static void test_error_of_a_tool_is_whole(void **state)
{
	(void)state;
	vitro_toolhost *host = host_of(own, NULL);
	vitro_result *result = call(host, "fail", "{}");

	assert_status(result, VITRO_ERROR);
	assert_int_equal(strlen(vitro_result_error_type(result)), 100);
	/* 8 KB of it, and no half of a character. */
	assert_int_equal(strlen(vitro_result_error(result)), 8192);
	assert_string_equal(vitro_result_error(result) + 8190, "\xc3\xa9");
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

static void test_result_limit(void **state)
{
	(void)state;
	vitro_policy *policy = policy_of("limits.result_mb", "2");
	vitro_toolhost *host = host_of(own, &(struct vitro_options){ .policy = policy });
	vitro_result *result = call(host, "give", "{\"bytes\": 2097152}");

	vitro_policy_free(policy);
	assert_status(result, VITRO_OK);
	vitro_result_free(result);
	result = call(host, "give", "{\"bytes\": 2097153}");
	assert_status(result, VITRO_RESULT_LIMIT);
	assert_non_null(strstr(vitro_result_error(result), "limits.result_mb (2 MB)"));
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

/* One that waits in vain came to no cell, and nothing held it. */
static void test_queue_limit(void **state)
{
	(void)state;
	vitro_policy *policy = policy_of("limits.queue_ms", "200");
	vitro_toolhost *host = host_of(own,
				       &(struct vitro_options){ .policy = policy, .live_max = 1 });
	vitro_result *result = call(host, "echo", "{}"), *first = NULL;

	vitro_policy_free(policy);
	assert_status(result, VITRO_OK);
	assert_non_null(vitro_result_isolation(result));
	vitro_result_free(result);
	assert_int_equal(vitro_submit(host,
				      &(struct vitro_request){
					      .tool = "sleep", .call_id = "s", .user = &first },
				      keep),
			 0);
	result = call(host, "echo", "{}");
	assert_status(result, VITRO_TIMEOUT);
	assert_non_null(strstr(vitro_result_error(result), "limits.queue_ms"));
	assert_null(vitro_result_isolation(result));
	assert_non_null(strstr(vitro_result_json(result), "\"isolation\": null"));
	vitro_result_free(result);
	assert_int_equal(vitro_cancel(host, "s"), 0);
	while (!first)
		turn(host);
	assert_status(first, VITRO_CANCELLED);
	assert_non_null(vitro_result_isolation(first));
	vitro_result_free(first);
	vitro_toolhost_free(host);
}

/* Where the caller may write only small files, that is said; the supervisor does not die of it. */
static void test_caller_with_a_file_limit(void **state)
{
	(void)state;
	struct rlimit before, small;
	struct vitro_error error = { 0 };
	vitro_toolhost *host = NULL;

	vitro_toolhost_free(host_of(own, NULL));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){ .rlim_cur = 65536, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int status = vitro_toolhost_new(&host, own, NULL, &error);

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	vitro_toolhost_free(host);
	if (status < 0) {
		assert_int_equal(status, -EFBIG);
		assert_non_null(strstr(error.text, "File too large"));
	}
}

static void skip_without_namespaces(vitro_toolhost *host)
{
	if (has_namespaces(host))
		return;
	vitro_toolhost_free(host);
	SKIP("a bare cell's occupant cannot be told to end");
}

/* With a grace period a tool is told to end first; what it gives then is too late. */
static void test_grace(void **state)
{
	(void)state;
	vitro_policy *policy = policy_of("limits.grace_ms", "5s");
	const struct vitro_tool tools[] = {
		{ .name = "linger", .function = linger },
		{ .name = "trap",
		  .command = COMMAND(
			  "sh", "-c",
			  "trap 'echo told; exit 0' TERM; while :; do sleep 0.01; done") },
		{ 0 },
	};
	vitro_toolhost *host = host_of(tools, &(struct vitro_options){ .policy = policy });

	vitro_policy_free(policy);
	skip_without_namespaces(host);
	for (size_t i = 0; i < 2; i++) {
		vitro_result *result = vitro_call(
			host, &(struct vitro_request){ .tool = tools[i].name, .wall_ms = 300 });
		struct vitro_usage usage;

		assert_status(result, VITRO_TIMEOUT);
		assert_memory_equal(vitro_result_output(result, VITRO_STDOUT, NULL), "told", 4);
		vitro_result_usage(result, &usage);
		assert_in_range((uintmax_t)usage.wall_ms, 300, 4000);
		vitro_result_free(result);
	}
	vitro_toolhost_free(host);
}

static void test_grace_ends(void **state)
{
	(void)state;
	vitro_policy *policy = policy_of("limits.grace_ms", "300");
	const struct vitro_tool tools[] = {
		{ .name = "deaf", .command = COMMAND("sh", "-c", "trap '' TERM; sleep 100") }, { 0 }
	};
	vitro_toolhost *host = host_of(tools, &(struct vitro_options){ .policy = policy });
	vitro_result *result = NULL;
	struct vitro_counts counts;
	struct vitro_usage usage;

	vitro_policy_free(policy);
	skip_without_namespaces(host);
	assert_int_equal(vitro_submit(host,
				      &(struct vitro_request){
					      .tool = "deaf", .call_id = "d", .user = &result },
				      keep),
			 0);
	do { /* until it runs, and then until it is deaf */
		vitro_toolhost_count(host, &counts);
		(void)usleep(200000);
	} while (counts.live == 0);
	assert_int_equal(vitro_cancel(host, "d"), 0);
	while (!result)
		turn(host);
	assert_status(result, VITRO_CANCELLED);
	vitro_result_usage(result, &usage);
	assert_in_range((uintmax_t)usage.wall_ms, 300, 5000);
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

/* ---- pools --------------------------------------------------------------------------------- */

static void await_ready(vitro_toolhost *host, unsigned wanted)
{
	struct vitro_counts counts = { 0 };

	for (int i = 0; i < 500 && counts.ready != wanted; i++) {
		(void)usleep(10000);
		vitro_toolhost_count(host, &counts);
	}
	assert_int_equal(counts.ready, wanted);
}

/* Commands under one policy share their cells, and what nobody uses any more goes. */
static void test_pools_come_and_go(void **state)
{
	(void)state;
	const struct vitro_tool tools[] = {
		{ .name = "cat", .command = COMMAND("cat") },
		{ .name = "wc", .command = COMMAND("wc") },
		{ .name = "echo", .function = echo },
		{ 0 },
	};
	vitro_toolhost *host = host_of(tools, NULL);
	vitro_policy *policy = policy_of("limits.wall_ms", "7s");
	struct vitro_tool tool = { .name = "echo", .function = echo, .policy = policy };
	vitro_result *result = NULL;
	struct vitro_counts counts;

	await_ready(host, 4); /* two of the program, two of commands */
	assert_int_equal(vitro_toolhost_add(host, &tool, NULL), 0);
	vitro_policy_free(policy);
	await_ready(host, 4); /* those under the old policy are gone */
	assert_value(host, "echo", "{}", "{}");
	assert_int_equal(vitro_toolhost_remove(host, "cat", NULL), 0);
	assert_value(host, "wc", "{}", "\"0 1 2\\n\"");
	/* A call goes on when its tool is removed. */
	tool = (struct vitro_tool){ .name = "late",
				    .command = COMMAND("sh", "-c", "sleep 0.3; echo 5") };
	assert_int_equal(vitro_toolhost_add(host, &tool, NULL), 0);
	assert_int_equal(vitro_submit(host,
				      &(struct vitro_request){ .tool = "late", .user = &result },
				      keep),
			 0);
	assert_int_equal(vitro_toolhost_remove(host, "late", NULL), 0);
	assert_int_equal(vitro_toolhost_remove(host, "wc", NULL), 0);
	while (!result)
		turn(host);
	assert_status(result, VITRO_OK);
	assert_string_equal(vitro_result_value(result, NULL), "5");
	vitro_result_free(result);
	await_ready(host, 2);
	/* What was begun and made was, whoever is gone since. */
	vitro_toolhost_count(host, &counts);
	assert_int_equal(counts.calls, 3);
	assert_true(counts.cells_made >= 6);
	vitro_toolhost_free(host);
}

int main(int argc, char **argv)
{
	vitro_host_main(argc, argv, own);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_value_of_a_command),
		cmocka_unit_test(test_large_input_of_a_command),
		cmocka_unit_test(test_failures_of_a_command),
		cmocka_unit_test(test_program_that_is_gone),
		cmocka_unit_test(test_commands_leave_nothing),
		cmocka_unit_test(test_commands_are_sealed),
		cmocka_unit_test(test_functions_of_an_object),
		cmocka_unit_test(test_object_that_is_none),
		cmocka_unit_test(test_capabilities_without_a_tool),
		cmocka_unit_test(test_error_of_a_tool_is_whole),
		cmocka_unit_test(test_result_limit),
		cmocka_unit_test(test_queue_limit),
		cmocka_unit_test(test_caller_with_a_file_limit),
		cmocka_unit_test(test_grace),
		cmocka_unit_test(test_grace_ends),
		cmocka_unit_test(test_pools_come_and_go),
	};

	if (argc < 3 || setenv("VITRO_BINARY", argv[1], 1) < 0 ||
	    setenv("LANG", "C.UTF-8", 1) < 0 || unsetenv("LC_ALL") < 0 || unsetenv("TZ") < 0)
		return 2;
	object = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
