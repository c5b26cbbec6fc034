/* SPDX-License-Identifier: Apache-2.0 */
/* What a server promises to clients that behave. argv: vitro. */
#include "serve_test.h"

#include <grp.h>
#include <sys/file.h>

/* ---- tools ---------------------------------------------------------------------------------- */

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

static int call_echo(vitro_task *task)
{
	char *value = NULL;

	if (vitro_task_call(task, "echo", "{\"inner\": 1}", &value) < 0)
		return vitro_task_fail(task, "Inner", value ? value : "none");
	int status = vitro_task_return(task, value);

	free(value);
	return status;
}

static const char *const all_tools[] = { "*", NULL };
static const char *const print_variable[] = { "sh", "-c", "printf %s \"$VARIABLE\"", NULL };

static const struct vitro_tool tools[] = {
	{ .name = "echo", .function = echo },
	{ .name = "wait", .function = wait_for },
	{ .name = "inner", .function = call_echo, .may_call = all_tools },
	{ .name = "print", .command = print_variable },
	{ 0 },
};

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_calls(void **state)
{
	struct server server;
	struct stat st;

	(void)state;
	start_server(&server, NULL);
	assert_int_equal(stat(socket_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	vitro_toolhost *host = join_server(tools);

	assert_value(host, "echo", "{\"a\":1}", "{\"a\":1}");
	assert_value(host, "inner", "{}", "{\"inner\": 1}");
	assert_value(host, "print", "{}", "\"\"");
	vitro_toolhost_free(host);
	stop_server(&server);
}

/* Cells are made for the first, and the next has them; and nobody's environment is another's. */
static void test_cells_are_shared(void **state)
{
	struct server server;
	struct vitro_counts first, second;
	vitro_policy *policy = policy_of("env.pass", "VARIABLE");
	const struct vitro_options options = { .socket = socket_path, .policy = policy };

	(void)state;
	start_server(&server, NULL);
	assert_int_equal(setenv("VARIABLE", "one", 1), 0);
	vitro_toolhost *host = host_of(tools, &options);

	assert_value(host, "print", "{}", "\"one\"");
	assert_value(host, "echo", "{}", "{}");
	for (int i = 0; i < 500; i++) {
		vitro_toolhost_count(host, &first);
		if (first.ready >= 4)
			break;
		sleep_ms(20);
	}
	vitro_toolhost_free(host);

	host = host_of(tools, &options);
	assert_value(host, "print", "{}", "\"one\"");
	assert_value(host, "echo", "{}", "{}");
	vitro_toolhost_count(host, &second);
	assert_int_equal(first.cold_calls, second.cold_calls);
	vitro_toolhost_free(host);

	assert_int_equal(setenv("VARIABLE", "two", 1), 0);
	host = host_of(tools, &options);
	assert_value(host, "print", "{}", "\"two\"");
	vitro_toolhost_free(host);
	assert_int_equal(unsetenv("VARIABLE"), 0);
	vitro_policy_free(policy);
	stop_server(&server);
}

/* A folder that was made anew is another, though its name is the same. */
static void test_folder_that_is_another(void **state)
{
	static const char *const list[] = { "ls", "{folder}", NULL };
	static const struct vitro_tool listing[] = { { .name = "list", .command = list }, { 0 } };
	char path[128], file[160], arguments[192];
	struct server server;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/granted", folder);
	(void)snprintf(file, sizeof(file), "%s/one", path);
	(void)snprintf(arguments, sizeof(arguments), "{\"folder\": \"%s\"}", path);
	start_server(&server, NULL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mkdir(path, 0755), 0);
		if (i == 1)
			(void)close(open(file, O_WRONLY | O_CREAT, 0644));
		assert_int_equal(chmod(folder, 0755), 0);
		vitro_policy *policy = policy_of("files.read", path);
		vitro_toolhost *host = host_of(
			listing,
			&(struct vitro_options){ .socket = socket_path, .policy = policy });

		assert_value(host, "list", arguments, i ? "\"one\\n\"" : "\"\"");
		vitro_toolhost_free(host);
		vitro_policy_free(policy);
		(void)unlink(file);
		assert_int_equal(rmdir(path), 0);
	}
	stop_server(&server);
}

static void test_second_server(void **state)
{
	struct server server;
	char text[1024];
	struct server second = { 0 };

	(void)state;
	start_server(&server, NULL);
	(void)snprintf(second.log, sizeof(second.log), "%s/second", folder);
	second.pid = fork();
	if (second.pid == 0)
		become_server(&second, (const char *const[]){ "--socket", socket_path, NULL });
	int status = await_server(&second, 10000);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 125);
	read_log(&second, text, sizeof(text));
	assert_non_null(strstr(text, "another server has"));
	(void)unlink(second.log);
	vitro_toolhost *host = join_server(tools); /* the first one is as it was */

	assert_value(host, "echo", "{}", "{}");
	vitro_toolhost_free(host);
	assert_int_equal(kill(server.pid, SIGKILL), 0);
	(void)await_server(&server, 5000);
	assert_int_equal(access(socket_path, F_OK), 0); /* it is stale */
	start_server(&server, NULL);
	stop_server(&server);
}

/* What a killed server was forking has its descriptors until it runs, and ends. */
static void test_after_a_killed_one(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct server server;
	char lock[80];

	(void)state;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	(void)snprintf(lock, sizeof(lock), "%s.lock", socket_path);
	int fds[] = { socket(AF_UNIX, SOCK_STREAM, 0), open(lock, O_RDWR | O_CREAT, 0600) };

	assert_int_equal(bind(fds[0], (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fds[0], 8), 0);
	assert_int_equal(flock(fds[1], LOCK_EX), 0);
	pid_t left = fork();

	if (left == 0) {
		sleep_ms(300);
		_exit(0);
	}
	assert_true(left > 0 && close(fds[0]) == 0 && close(fds[1]) == 0);
	start_server(&server, NULL);
	assert_int_equal(waitpid(left, NULL, 0), left);
	stop_server(&server);
}

static void test_no_server(void **state)
{
	vitro_toolhost *host;
	struct vitro_error error;

	(void)state;
	assert_int_equal(vitro_toolhost_new(&host, tools,
					    &(struct vitro_options){ .socket = socket_path },
					    &error),
			 -ENOENT);
	assert_non_null(strstr(error.text, "no server can be reached"));
}

/* ---- ends ----------------------------------------------------------------------------------- */

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

/* What is wrong with how it was started is said, and what to do. */
static void test_wrong_starts(void **state)
{
	static const struct {
		const char *flags[3], *said;
	} rows[] = {
		{ { "--drain", "forever" }, "vitro: --drain: 'forever' is not a time" },
		{ { "--fd", "77" }, "descriptor 77 is not open" },
		{ { "--socket", "/tmp/no-such-folder/socket" }, "its folder is not there" },
		{ { "/etc/passwd" }, "did you mean --tools /etc/passwd?" },
		{ { "no-such-file" }, "vitro serve takes flags alone" },
	};
	struct server wrong = { 0 };
	char text[1024];

	(void)state;
	(void)snprintf(wrong.log, sizeof(wrong.log), "%s/wrong", folder);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		wrong.pid = fork();
		if (wrong.pid == 0)
			become_server(&wrong, rows[i].flags);
		int status = await_server(&wrong, 10000);

		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 125);
		read_log(&wrong, text, sizeof(text));
		if (!strstr(text, rows[i].said))
			fail_msg("'%s' is not in: %s", rows[i].said, text);
		assert_int_equal(unlink(wrong.log), 0);
	}
}

/* ---- who is let in -------------------------------------------------------------------------- */

/* Another user is told this, and not let in. */
static void assert_kept_out(const char *said)
{
	vitro_toolhost *host;
	struct vitro_error error;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setgid(12345) < 0 || setuid(12345) < 0)
			_exit(3);
		if (vitro_toolhost_new(&host, NULL,
				       &(struct vitro_options){ .socket = socket_path },
				       &error) == 0)
			_exit(4);
		if (!strstr(error.text, said)) {
			(void)fprintf(stderr, "# %s\n", error.text);
			_exit(5);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_other_user(void **state)
{
	struct server server;

	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: only root can be another user\n");
		skip();
	}
	start_server(&server, NULL);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_kept_out("it lies in a folder that is not for the user 12345");
	assert_int_equal(chmod(folder, 0755), 0);
	assert_kept_out("it is for the user 0, and you are 12345; connect as that user, or start");
	assert_int_equal(chmod(socket_path, 0666), 0); /* as a careless owner might */
	assert_kept_out("serves only that one and root: you are 12345");
	vitro_toolhost *host = join_server(tools);

	assert_value(host, "echo", "{}", "{}");
	vitro_toolhost_free(host);
	stop_server(&server);
}

static void test_too_many(void **state)
{
	struct server server;
	vitro_toolhost *host;
	struct vitro_error error;

	(void)state;
	start_server(&server, (const char *const[]){ "--clients", "2", NULL });
	sleep_ms(50); /* who only looked whether it is there has gone */
	vitro_toolhost *first = join_server(NULL), *second = join_server(NULL);

	assert_int_equal(vitro_toolhost_new(&host, NULL,
					    &(struct vitro_options){ .socket = socket_path },
					    &error),
			 -ECONNREFUSED);
	assert_non_null(strstr(error.text, "has 2 clients, which is the most"));
	vitro_toolhost_free(first);
	sleep_ms(50);
	first = join_server(tools);
	assert_value(first, "echo", "{}", "{}");
	vitro_toolhost_free(first);
	vitro_toolhost_free(second);
	stop_server(&server);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

static int listen_here(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* As systemd does it, or by --fd. */
static void serve_inherited(int fd, bool activated)
{
	char number[16];

	if (dup2(fd, 3) < 0)
		_exit(2);
	if (activated) {
		(void)snprintf(number, sizeof(number), "%d", (int)getpid());
		(void)setenv("LISTEN_PID", number, 1);
		(void)setenv("LISTEN_FDS", "1", 1);
		(void)execl(vitro, vitro, "serve", NULL);
	} else {
		(void)execl(vitro, vitro, "serve", "--fd", "3", NULL);
	}
	_exit(4);
}

static void test_inherited(void **state)
{
	(void)state;
	for (int activated = 0; activated < 2; activated++) {
		struct server server = { 0 };
		int fd = listen_here();

		server.pid = fork();
		if (server.pid == 0)
			serve_inherited(fd, activated);
		(void)close(fd);
		vitro_toolhost *host = join_server(tools);

		assert_value(host, "echo", "{}", "{}");
		vitro_toolhost_free(host);
		assert_int_equal(kill(server.pid, SIGTERM), 0);
		assert_int_equal(await_server(&server, 10000), 0);
		assert_int_equal(unlink(socket_path), 0); /* it is not the server's to remove */
	}
}

/* A server of one client, which it was given, ends with it. */
static void test_given_client(void **state)
{
	struct server server = { 0 };
	static const char hello[] = "{\"do\":\"hello\",\"version\":1}";
	const uint32_t prefix[2] = { sizeof(hello) - 1, sizeof(hello) - 1 };
	char answer[256];
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	server.pid = fork();
	if (server.pid == 0)
		serve_inherited(pair[1], false);
	(void)close(pair[1]);
	assert_int_equal(write(pair[0], prefix, sizeof(prefix)), sizeof(prefix));
	assert_int_equal(write(pair[0], hello, sizeof(hello) - 1), sizeof(hello) - 1);
	ssize_t len = read(pair[0], answer, sizeof(answer) - 1);

	assert_true(len > 8);
	answer[len] = '\0';
	assert_non_null(strstr(answer + 8, "\"is\":\"hello\""));
	(void)close(pair[0]);
	assert_int_equal(await_server(&server, 10000), 0);
}

/* Refuses whoever comes first, and never reads what he says. */
static pid_t refuse_one(void)
{
	static const char head[] = "{\"is\":\"refused\",\"error\":\"it is full\"}";
	const uint32_t prefix[2] = { sizeof(head) - 1, sizeof(head) - 1 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	pid_t pid = fork();

	if (pid == 0) {
		int client = accept(fd, NULL, NULL);

		_exit(write(client, prefix, sizeof(prefix)) != sizeof(prefix) ||
		      write(client, head, sizeof(head) - 1) != sizeof(head) - 1);
	}
	(void)close(fd);
	return pid;
}

/* The reason is heard, whether all of its hello could be sent or not. */
static void test_refused_within_hello(void **state)
{
	const struct vitro_options options = { .socket = socket_path };
	struct vitro_error error;
	vitro_toolhost *host;
	char *large = calloc(1, 100 << 10), name[16];
	int status;

	(void)state;
	assert_non_null(large);
	memset(large, 'x', (100 << 10) - 1);
	for (int i = 0; i < 10; i++) {
		pid_t pid = refuse_one();

		assert_true(vitro_toolhost_new(&host, tools, &options, &error) < 0);
		if (!strstr(error.text, "it is full"))
			fail_msg("with %d KB in its environment: %s", i * 100, error.text);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(unlink(socket_path), 0);
		(void)snprintf(name, sizeof(name), "LARGE_%d", i);
		assert_int_equal(setenv(name, large, 1), 0);
	}
	for (int i = 0; i < 10; i++) {
		(void)snprintf(name, sizeof(name), "LARGE_%d", i);
		assert_int_equal(unsetenv(name), 0);
	}
	free(large);
}

/* Whoever finds the socket is heard: from its first moment on somebody listens, and it is closed to
 * others. */
static void test_found_is_heard(void **state)
{
	enum { TIMES = 20 };
	struct server server;
	struct stat st;

	(void)state;
	for (int i = 0; i < TIMES; i++) {
		const char *flags[] = { "--socket", socket_path, NULL };
		int fd;

		(void)snprintf(server.log, sizeof(server.log), "%s/log", folder);
		server.pid = running = fork();
		if (server.pid == 0)
			become_server(&server, flags);
		for (int64_t until = now_ms() + 20000; (fd = connect_raw()) < 0;) {
			assert_int_equal(fd, -ENOENT);
			assert_true(now_ms() < until);
		}
		assert_int_equal(stat(socket_path, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
		(void)close(fd);
		stop_server(&server);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {
		TEST(test_calls),
		TEST(test_cells_are_shared),
		TEST(test_folder_that_is_another),
		TEST(test_second_server),
		TEST(test_after_a_killed_one),
		TEST(test_no_server),
		TEST(test_drain),
		TEST(test_drain_under_load),
		TEST(test_drain_is_bounded),
		TEST(test_killed),
		TEST(test_wrong_starts),
		TEST(test_other_user),
		TEST(test_too_many),
		TEST(test_inherited),
		TEST(test_given_client),
		TEST(test_refused_within_hello),
		TEST(test_found_is_heard),
	};

	return RUN_TESTS(argc, argv, tools, all);
}
