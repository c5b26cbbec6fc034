/* SPDX-License-Identifier: Apache-2.0 */
/* Two hundred clients of one server at once. argv: vitro. */
#include "serve_test.h"

static int echo(vitro_task *task)
{
	return vitro_task_return(task, vitro_task_arguments(task, NULL));
}

static const struct vitro_tool tools[] = { { .name = "echo", .function = echo }, { 0 } };

#ifdef __SANITIZE_ADDRESS__
enum { CLIENTS = 200, CALLS = 4 }; /* each of whose cells takes five times as long to make */
#else
enum { CLIENTS = 200, CALLS = 15 };
#endif

/* One client: 0 where each call had its own result. */
static int be_client(int number, int told)
{
	vitro_toolhost *host;
	struct vitro_error error;
	char arguments[64];

	if (vitro_toolhost_new(&host, tools, &(struct vitro_options){ .socket = socket_path },
			       &error) < 0) {
		(void)fprintf(stderr, "# client %d: %s\n", number, error.text);
		return 1;
	}
	for (int i = 0; i < CALLS; i++) {
		(void)snprintf(arguments, sizeof(arguments), "{\"client\":%d,\"call\":%d}", number,
			       i);
		vitro_result *result = call(host, "echo", arguments);
		const char *value = vitro_result_value(result, NULL);

		if (!value || strcmp(value, arguments) != 0) {
			(void)fprintf(stderr, "# client %d, call %d: %s: %s\n", number, i,
				      vitro_status_name(vitro_result_status(result)),
				      vitro_result_error(result));
			return 2;
		}
		vitro_result_free(result);
		if (write(told, "", 1) != 1)
			return 3;
	}
	vitro_toolhost_free(host);
	return 0;
}

/* Says how far they are: it takes its time. */
static void follow(int told)
{
	char bytes[256];
	int calls = 0, shown = 0;
	ssize_t got;

	while ((got = read(told, bytes, sizeof(bytes))) > 0) {
		calls += (int)got;
		if (calls - shown < 200)
			continue;
		shown = calls;
		print_message("%d calls\n", calls);
		(void)fflush(stdout);
	}
}

static void test_many_clients(void **state)
{
	struct server server;
	pid_t pids[CLIENTS];
	int status, failed = 0, told[2];

	(void)state;
	start_server(&server, NULL);
	int64_t begun = now_ms();

	assert_int_equal(pipe(told), 0);
	for (int i = 0; i < CLIENTS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(be_client(i, told[1]));
		assert_true(pids[i] > 0);
	}
	(void)close(told[1]);
	follow(told[0]);
	(void)close(told[0]);
	for (int i = 0; i < CLIENTS; i++)
		failed += waitpid(pids[i], &status, 0) != pids[i] || status != 0;
	print_message("%d clients, %d calls each: %d s\n", CLIENTS, CALLS,
		      (int)((now_ms() - begun) / 1000));
	assert_int_equal(failed, 0);
	stop_server(&server);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = { TEST(test_many_clients) };

	return RUN_TESTS(argc, argv, tools, all);
}
