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

/* What is wrong with how it was started is said, and what to do. */
static void test_wrong_starts(void **state)
{
	static const struct {
		const char *flags[3], *said;
	} rows[] = {
		{ { "--drain", "forever" }, "vitro: --drain forever: want a time" },
		{ { "--fd", "77" }, "descriptor 77 is not open" },
		{ { "--metrics", "127.0.0.1" }, "--metrics 127.0.0.1: want an absolute path" },
		{ { "--metrics", "127.0.0.1:" }, "--metrics 127.0.0.1:: want an absolute path" },
		{ { "--metrics", "[::1]:8x" }, "--metrics [::1]:8x: want an absolute path" },
		{ { "--metrics", "127.0.0.1:1:80" }, "127.0.0.1:1:80: want an absolute path" },
		{ { "--metrics", "127.0.0.1:65536" }, "127.0.0.1:65536: want an absolute path" },
		{ { "--socket", "/tmp/no-such-folder/socket" }, "its folder is not there" },
		{ { "/etc/passwd" }, "did you mean --tools /etc/passwd?" },
		{ { "no-such-file" }, "vitro serve takes only flags, not 'no-such-file'" },
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
	if (geteuid() != 0)
		SKIP("only root can be another user");
	start_server(&server, NULL);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_kept_out("it lies in a folder that is not for the user 12345");
	assert_int_equal(chmod(folder, 0755), 0);
	assert_kept_out("it is for the user 0, and you are 12345; connect as that user, or start");
	assert_int_equal(chmod(socket_path, 0666), 0); /* as a careless owner might */
	assert_kept_out("serves only that user and root; you are user 12345");
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

/* Nor does it stay where that one is turned away, since nobody else can come. */
static void test_given_stranger(void **state)
{
	struct server server = { 0 };
	char answer[256];
	int pair[2];

	(void)state;
	if (geteuid() != 0)
		SKIP("only root can be another user");
	assert_int_equal(seteuid(12345), 0); /* whose socket it is then */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(seteuid(0), 0);
	server.pid = fork();
	if (server.pid == 0)
		serve_inherited(pair[1], false);
	(void)close(pair[1]);
	ssize_t len = read(pair[0], answer, sizeof(answer) - 1);

	assert_true(len > 8);
	answer[len] = '\0';
	assert_non_null(strstr(answer + 8, "serves only that user and root"));
	int status = await_server(&server, 10000);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 125);
	(void)close(pair[0]);
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
		TEST(test_wrong_starts),
		TEST(test_other_user),
		TEST(test_too_many),
		TEST(test_inherited),
		TEST(test_given_client),
		TEST(test_given_stranger),
		TEST(test_refused_within_hello),
		TEST(test_found_is_heard),
	};

	return RUN_TESTS(argc, argv, tools, all);
}
