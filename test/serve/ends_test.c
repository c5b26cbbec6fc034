/* SPDX-License-Identifier: Apache-2.0 */
/* How a server ends, told to or killed, and what becomes of its clients' calls. argv: vitro. */
#include "serve_test.h"

static int echo(vitro_task *task)
{
	return vitro_task_return(task, vitro_task_arguments(task, NULL));
}

/* As long as its argument says. */
static int wait_for(vitro_task *task)
{
	sleep_ms(atoi(strchr(vitro_task_arguments(task, NULL), ':') + 1));
	return vitro_task_return(task, "\"waited\"");
}

static const struct vitro_tool tools[] = {
	{ .name = "echo", .function = echo },
	{ .name = "wait", .function = wait_for },
	{ 0 },
};

struct batch {
	int total, ok, refused, lost, others;
};

static void count_one(void *user, vitro_result *result)
{
	struct batch *batch = user;
	enum vitro_status status = vitro_result_status(result);

	batch->total++;
	batch->ok += status == VITRO_OK;
	batch->refused += status == VITRO_REFUSED;
	batch->lost += status == VITRO_LOST;
	batch->others += status != VITRO_OK && status != VITRO_REFUSED && status != VITRO_LOST;
	vitro_result_free(result);
}

static void submit(vitro_toolhost *host, struct batch *batch, int ms)
{
	char arguments[32];

	(void)snprintf(arguments, sizeof(arguments), "{\"ms\":%d}", ms);
	assert_int_equal(vitro_submit(host,
				      &(struct vitro_request){ .tool = "wait",
							       .arguments = arguments,
							       .user = batch },
				      count_one),
			 0);
}

/* Until calls run, so many or more. */
static void await_live(vitro_toolhost *host, unsigned wanted)
{
	struct vitro_counts counts;

	for (int64_t until = now_ms() + 20000;; sleep_ms(5)) {
		vitro_toolhost_count(host, &counts);
		if (counts.live >= wanted)
			return;
		assert_true(now_ms() < until);
	}
}

static void finish(vitro_toolhost *host, const struct batch *batch, int total)
{
	while (batch->total < total)
		turn(host);
}

/* Calls that run end as they would; those that come then are refused, and none is lost. */
static void test_drain(void **state)
{
	struct server server;
	struct batch before = { 0 }, after = { 0 };

	(void)state;
	start_server(&server, NULL);
	vitro_toolhost *host = join_server(tools), *idle = join_server(tools);

	for (int i = 0; i < 8; i++)
		submit(host, &before, 1500);
	await_live(host, 8);
	assert_int_equal(kill(server.pid, SIGTERM), 0);
	while (access(socket_path, F_OK) == 0)
		sleep_ms(1);
	assert_true(connect_raw() < 0);
	for (int i = 0; i < 20; i++)
		submit(i % 2 ? idle : host, &after, 0);
	finish(host, &before, 8);
	while (after.total < 20) {
		(void)vitro_dispatch(host);
		(void)vitro_dispatch(idle);
		sleep_ms(1);
	}
	assert_int_equal(before.ok, 8);
	assert_int_equal(after.refused, 20);
	int status = await_server(&server, 10000);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	/* And so are those that come when it is gone. */
	vitro_result *result = call(idle, "echo", "{}");

	assert_status(result, VITRO_REFUSED);
	assert_non_null(strstr(vitro_result_error(result), "the server has ended"));
	vitro_result_free(result);
	vitro_toolhost_free(host);
	vitro_toolhost_free(idle);
}

/* One after the other, until the server takes no more: 0 where each was run or refused. */
static int call_until_refused(int told)
{
	vitro_toolhost *host;
	struct vitro_error error;
	int calls = 0;

	if (vitro_toolhost_new(&host, tools, &(struct vitro_options){ .socket = socket_path },
			       &error) < 0)
		return 1;
	for (;; calls++) {
		char arguments[32];

		(void)snprintf(arguments, sizeof(arguments), "{\"ms\":%d}", calls % 20);
		vitro_result *result = call(host, "wait", arguments);
		enum vitro_status status = vitro_result_status(result);

		if (status != VITRO_OK && status != VITRO_REFUSED)
			(void)fprintf(stderr, "# %s: %s\n", vitro_status_name(status),
				      vitro_result_error(result));
		vitro_result_free(result);
		if (calls == 0 && write(told, "", 1) != 1)
			return 2;
		if (status != VITRO_OK) {
			vitro_toolhost_free(host);
			return status == VITRO_REFUSED ? 0 : 3;
		}
	}
}

/* Whatever a client is at when the server is told to end, no call of it is lost. */
static void test_drain_under_load(void **state)
{
	enum { PROCESSES = 12 };
	struct server server;
	pid_t pids[PROCESSES];
	int told[2], status;
	char byte;

	(void)state;
	start_server(&server, NULL);
	assert_int_equal(pipe(told), 0);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(call_until_refused(told[1]));
	}
	for (int i = 0; i < PROCESSES; i++)
		assert_int_equal(read(told[0], &byte, 1), 1);
	sleep_ms(200);
	assert_int_equal(kill(server.pid, SIGTERM), 0);
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(await_server(&server, 20000), 0);
	(void)close(told[0]);
	(void)close(told[1]);
}

/* What runs for longer than that is cancelled; and a second signal waits for nothing. */
static void test_drain_is_bounded(void **state)
{
	struct server server;

	(void)state;
	for (int times = 1; times <= 2; times++) {
		struct batch batch = { 0 };

		start_server(&server, (const char *const[]){ "--drain",
							     times == 1 ? "300ms" : "20s", NULL });
		vitro_toolhost *host = join_server(tools);

		submit(host, &batch, 20000);
		await_live(host, 1);
		int64_t begun = now_ms();

		assert_int_equal(kill(server.pid, SIGTERM), 0);
		if (times == 2) {
			while (access(socket_path, F_OK) == 0)
				sleep_ms(1);
			assert_int_equal(kill(server.pid, SIGTERM), 0);
		}
		finish(host, &batch, 1);
		(void)await_server(&server, 10000);
		assert_true(now_ms() - begun < 8000);
		assert_int_equal(times == 1 ? batch.others : batch.lost, 1);
		vitro_toolhost_free(host);
	}
}

/* Whoever is killed takes all with it: every call is lost, and no process of it is left. */
static void test_killed(void **state)
{
	struct server server;
	struct batch batches[4] = { 0 };
	vitro_toolhost *hosts[4];
	char name[64];

	(void)state;
	(void)snprintf(name, sizeof(name), "serve-%d", (int)getpid());
	assert_int_equal(setenv("VARIABLE", name, 1), 0);
	start_server(&server, NULL);
	for (int i = 0; i < 4; i++) {
		hosts[i] = join_server(tools);
		for (int j = 0; j < 4; j++)
			submit(hosts[i], &batches[i], 20000);
	}
	await_live(hosts[0], 16);
	assert_true(count_processes(server.pid) > 16);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(kill(server.pid, SIGKILL), 0);
	for (int i = 0; i < 4; i++) {
		finish(hosts[i], &batches[i], 4);
		assert_int_equal(batches[i].lost, 4);
		vitro_toolhost_free(hosts[i]);
	}
	(void)await_server(&server, 5000);
	/* Its orphans are ours now: none of them lives on. */
	for (int64_t until = now_ms() + 10000;; sleep_ms(2)) {
		if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
			break;
		assert_true(now_ms() < until);
	}
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
	(void)unlink(socket_path);
	(void)snprintf(name, sizeof(name), "%s/socket.lock", folder);
	(void)unlink(name);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {
		TEST(test_drain),
		TEST(test_drain_under_load),
		TEST(test_drain_is_bounded),
		TEST(test_killed),
	};

	return RUN_TESTS(argc, argv, tools, all);
}
