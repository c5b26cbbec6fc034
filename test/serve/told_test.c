/* SPDX-License-Identifier: Apache-2.0 */
/* What a server tells of its calls: its audit log, and its metrics. argv: vitro. */
#include "serve_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/resource.h>

static int echo(vitro_task *task)
{
	return vitro_task_return(task, vitro_task_arguments(task, NULL));
}

static int crash(vitro_task *task)
{
	(void)task;
	abort();
}

static const char *const say[] = { "echo", "{word}", NULL };

static const struct vitro_tool tools[] = {
	{ .name = "echo", .function = echo },
	{ .name = "crash", .function = crash },
	{ .name = "say", .command = say },
	{ 0 },
};

static char *read_file(const char *path)
{
	char *text = calloc(1, 1 << 20);
	int fd = open(path, O_RDONLY);

	assert_true(text && fd >= 0);
	assert_true(read(fd, text, (1 << 20) - 1) >= 0);
	(void)close(fd);
	return text;
}

static int count_lines(const char *path)
{
	char *text = read_file(path);
	int count = 0;

	for (const char *at = text; (at = strchr(at, '\n')); at++)
		count++;
	free(text);
	return count;
}

/* What a command prints, with its exit code; -1: there is no such program. */
static int output_of(const char *command, char *text, size_t size)
{
	FILE *pipe = popen(command, "re");
	size_t len = pipe ? fread(text, 1, size - 1, pipe) : 0;

	text[len] = '\0';
	int status = pipe ? pclose(pipe) : -1;

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- the audit log -------------------------------------------------------------------------- */

static void assert_verified(const char *path)
{
	char command[512], text[1024];

	(void)snprintf(command, sizeof(command), "%s audit verify %s 2>&1", vitro, path);
	if (output_of(command, text, sizeof(text)) != 0)
		fail_msg("%s", text);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

static void test_audit(void **state)
{
	struct server server;
	char path[128], part[64];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/audit", folder);
	start_server(&server, (const char *const[]){ "--audit", path, NULL });
	vitro_toolhost *host = join_server(tools);

	assert_value(host, "echo", "{}", "{}");
	assert_int_equal(count_lines(path), 1); /* before the result was there */
	assert_value(host, "say", "{\"word\":\"hello\"}", "\"hello\\n\"");
	vitro_result *result = call(host, "crash", "{}");

	assert_status(result, VITRO_CRASHED);
	vitro_result_free(result);
	vitro_toolhost_free(host);
	stop_server(&server);
	char *text = read_file(path);

	(void)snprintf(part, sizeof(part), "\"uid\": %d, \"pid\": %d,", (int)geteuid(),
		       (int)getpid());
	assert_has(text, part);
	assert_has(text, "\"tool\": \"say\", \"argv\": [\"echo\", \"hello\"], \"program\": \"/");
	assert_has(text, "\"status\": \"crashed\"");
	free(text);
	assert_int_equal(count_lines(path), 3);
	assert_verified(path);
	assert_int_equal(unlink(path), 0);
}

/* Of a command of many words the first are there, and a hash of all others: nobody waits for
 * megabytes of a line. */
static void test_audit_of_many_words(void **state)
{
	enum { LONG = 70000 };
	struct server server;
	char path[128], *arguments = calloc(1, LONG + 32);

	(void)state;
	assert_non_null(arguments);
	(void)snprintf(path, sizeof(path), "%s/audit", folder);
	start_server(&server, (const char *const[]){ "--audit", path, NULL });
	vitro_toolhost *host = join_server(tools);
	int len = sprintf(arguments, "{\"word\":\"");

	memset(arguments + len, 'x', LONG);
	(void)strcpy(arguments + len + LONG, "\"}");
	vitro_result *result = call(host, "say", arguments);

	assert_status(result, VITRO_OK);
	vitro_result_free(result);
	vitro_toolhost_free(host);
	stop_server(&server);
	char *text = read_file(path);

	/* printf 'echo\0xxx...\0' | sha256sum */
	assert_has(text, "\"argv\": [\"echo\", \"xxx");
	assert_has(text, "xxx\"], \"argv_bytes\": 70006, \"argv_sha256\": "
			 "\"b4065ff47f53ff88c02bef0a8fd74e8898ed04745ad941184d708530bfe1715c\"");
	assert_true(strlen(text) < 40000);
	free(text);
	assert_verified(path);
	assert_int_equal(unlink(path), 0);
	free(arguments);
}

static void take_result(void *user, vitro_result *result)
{
	*(vitro_result **)user = result;
}

/* Whatever comes within so long. NULL: nothing. */
static vitro_result *await_result(vitro_toolhost *host, vitro_result **result, int64_t ms)
{
	for (int64_t until = now_ms() + ms; !*result && now_ms() < until; sleep_ms(2))
		(void)vitro_dispatch(host);
	return *result;
}

static void begin_echo(vitro_toolhost *host, vitro_result **result)
{
	*result = NULL;
	assert_int_equal(vitro_submit(host,
				      &(struct vitro_request){ .tool = "echo",
							       .arguments = "{\"n\":1}",
							       .user = result },
				      take_result),
			 0);
}

static void assert_unrecorded(vitro_toolhost *host)
{
	vitro_result *result = call(host, "echo", "{}");

	assert_status(result, VITRO_REFUSED);
	assert_has(vitro_result_error(result), "no call goes unrecorded");
	vitro_result_free(result);
}

/* How a log cannot be written for a while, and can again. */
struct trouble {
	pid_t server;
	const char *path;
	int fd;
	struct rlimit before;
};

static void keep_locked(struct trouble *trouble)
{
	trouble->fd = open(trouble->path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(trouble->fd, LOCK_EX), 0);
}

static void unlock(struct trouble *trouble)
{
	(void)close(trouble->fd);
}

/* As on a disk that is full: some of the line has room, and the rest has not. */
static void fill_up(struct trouble *trouble)
{
	struct stat st;

	assert_int_equal(stat(trouble->path, &st), 0);
	assert_int_equal(prlimit(trouble->server, RLIMIT_FSIZE, NULL, &trouble->before), 0);
	const struct rlimit full = { (rlim_t)st.st_size + 100, trouble->before.rlim_max };

	assert_int_equal(prlimit(trouble->server, RLIMIT_FSIZE, &full, NULL), 0);
}

static void make_room(struct trouble *trouble)
{
	assert_int_equal(prlimit(trouble->server, RLIMIT_FSIZE, &trouble->before, NULL), 0);
}

/* Nobody has a result whose line is not in the log, and no call goes unrecorded. */
static void test_audit_that_waits(void **state)
{
	static const struct {
		void (*begin)(struct trouble *trouble);
		void (*end)(struct trouble *trouble);
		int lines; /* at the end: a part of one is told of by another */
	} troubles[] = { { keep_locked, unlock, 3 }, { fill_up, make_room, 5 } };
	struct server server;
	char path[128];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/audit", folder);
	for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
		start_server(&server, (const char *const[]){ "--audit", path, NULL });
		struct trouble trouble = { .server = server.pid, .path = path };
		vitro_toolhost *host = join_server(tools);
		vitro_result *result;

		assert_value(host, "echo", "{}", "{}");
		troubles[i].begin(&trouble);
		begin_echo(host, &result);
		assert_null(await_result(host, &result, 1000));
		assert_unrecorded(host);
		troubles[i].end(&trouble);
		assert_non_null(await_result(host, &result, 4000));
		assert_true(count_lines(path) >= 2);
		assert_status(result, VITRO_OK);
		assert_string_equal(vitro_result_value(result, NULL), "{\"n\":1}");
		vitro_result_free(result);
		assert_value(host, "echo", "{\"n\":2}", "{\"n\":2}");
		vitro_toolhost_free(host);
		stop_server(&server);
		assert_int_equal(count_lines(path), troubles[i].lines);
		assert_verified(path);
		assert_int_equal(unlink(path), 0);
	}
}

/* A log that stays locked holds up nobody for ever: the result is lost, and its line comes later.
 */
static void test_audit_that_stays_locked(void **state)
{
	struct server server;
	char path[128];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/audit", folder);
	start_server(&server, (const char *const[]){ "--audit", path, NULL });
	struct trouble trouble = { .server = server.pid, .path = path };
	vitro_toolhost *host = join_server(tools);
	vitro_result *result;

	assert_value(host, "echo", "{}", "{}");
	keep_locked(&trouble);
	begin_echo(host, &result);
	assert_non_null(await_result(host, &result, 15000));
	assert_status(result, VITRO_LOST);
	assert_has(vitro_result_error(result), "audit log cannot be written");
	vitro_result_free(result);
	assert_unrecorded(host);
	unlock(&trouble);
	for (int i = 0; i < 200 && count_lines(path) < 2; i++)
		sleep_ms(25);
	assert_value(host, "echo", "{}", "{}");
	vitro_toolhost_free(host);
	stop_server(&server);
	char *text = read_file(path);

	assert_null(strstr(text, "\"lost\"")); /* what became of the call, not of its result */
	free(text);
	assert_int_equal(count_lines(path), 3);
	assert_verified(path);
	assert_int_equal(unlink(path), 0);
}

/* A server that ends has told each of its calls before it says goodbye, or it would count as not
 * begun. */
static void test_audit_that_is_locked_to_the_end(void **state)
{
	struct server server;
	char path[128];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/audit", folder);
	start_server(&server, (const char *const[]){ "--audit", path, "--drain", "100ms", NULL });
	struct trouble trouble = { .server = server.pid, .path = path };
	vitro_toolhost *host = join_server(tools);
	vitro_result *result;

	assert_value(host, "echo", "{}", "{}");
	keep_locked(&trouble);
	begin_echo(host, &result);
	assert_null(await_result(host, &result, 500));
	assert_int_equal(kill(server.pid, SIGTERM), 0);
	assert_non_null(await_result(host, &result, 20000));
	assert_status(result, VITRO_LOST);
	vitro_result_free(result);
	unlock(&trouble);
	(void)await_server(&server, 15000);
	vitro_toolhost_free(host);
	assert_int_equal(count_lines(path), 2);
	assert_int_equal(unlink(path), 0);
}

/* What the server is and says is no client's to change by its calls. */
static void test_kept_from_calls(void **state)
{
	struct server server;
	char path[128], other[160], metrics[128];
	vitro_toolhost *host;
	struct vitro_error error;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/audit", folder);
	(void)snprintf(metrics, sizeof(metrics), "%s/metrics", folder);
	start_server(&server, (const char *const[]){ "--audit", path, "--metrics", metrics, NULL });
	static const char *const requires[] = { "strict", "full", "best-effort" };

	for (size_t i = 0; i < sizeof(requires) / sizeof(requires[0]); i++) {
		vitro_policy *policy = policy_of("files.write", folder);
		const struct vitro_options options = { .socket = socket_path, .policy = policy };

		assert_int_equal(vitro_policy_set(policy, "require", requires[i], &error), 0);
		assert_int_equal(vitro_toolhost_new(&host, tools, &options, &error), -EPERM);
		assert_has(error.text, "which is the server's own");
		vitro_policy_free(policy);
	}
	/* Each by itself: locks, by which another would be taken for the server, and the metrics.
	 */
	for (int i = 0; i < 3; i++) {
		(void)snprintf(other, sizeof(other), "%s%s", i ? metrics : socket_path,
			       i < 2 ? ".lock" : "");
		vitro_policy *policy = policy_of(i < 2 ? "files.write" : "files.sockets", other);
		const struct vitro_options options = { .socket = socket_path, .policy = policy };

		assert_int_equal(vitro_toolhost_new(&host, tools, &options, &error), -EPERM);
		assert_has(error.text, "the server's own");
		vitro_policy_free(policy);
	}
	/* Who may read the log may lock it; denied it is out of reach, or the deny is refused. */
	for (int i = 0; i < 4; i++) {
		vitro_policy *policy = policy_of("files.read", i % 2 ? path : folder);
		const struct vitro_options options = { .socket = socket_path, .policy = policy };

		assert_int_equal(vitro_policy_set(policy, "require", requires[i / 2 * 2], &error),
				 0);
		assert_int_equal(vitro_toolhost_new(&host, tools, &options, &error), -EPERM);
		assert_has(error.text, "which is the server's audit log, and so keep it locked");
		assert_int_equal(vitro_policy_set(policy, "files.deny", path, &error), 0);
		if (vitro_toolhost_new(&host, tools, &options, &error) == 0)
			vitro_toolhost_free(host);
		else
			assert_null(strstr(error.text, "audit log"));
		vitro_policy_free(policy);
	}
	/* By another name too. */
	(void)snprintf(other, sizeof(other), "%s.2", socket_path);
	assert_int_equal(link(socket_path, other), 0);
	for (int i = 0; i < 2; i++) {
		vitro_policy *policy = policy_of("files.sockets", i ? other : socket_path);
		const struct vitro_options options = { .socket = socket_path, .policy = policy };

		assert_int_equal(vitro_toolhost_new(&host, tools, &options, &error), -EPERM);
		assert_has(error.text, "is the server's own");
		vitro_policy_free(policy);
	}
	assert_int_equal(unlink(other), 0);
	stop_server(&server);
	assert_int_equal(unlink(path), 0);
}

/* A log that was moved away is begun anew. */
static void test_audit_that_is_moved(void **state)
{
	struct server server;
	char path[128], moved[160];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/audit", folder);
	(void)snprintf(moved, sizeof(moved), "%s.1", path);
	start_server(&server, (const char *const[]){ "--audit", path, NULL });
	vitro_toolhost *host = join_server(tools);

	assert_value(host, "echo", "{}", "{}");
	assert_int_equal(rename(path, moved), 0);
	assert_value(host, "echo", "{}", "{}");
	assert_value(host, "echo", "{}", "{}");
	vitro_toolhost_free(host);
	stop_server(&server);
	assert_int_equal(count_lines(moved), 1);
	assert_int_equal(count_lines(path), 2);
	assert_verified(path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(moved), 0);
}

/* ---- metrics -------------------------------------------------------------------------------- */

static void ask(int fd, const char *request, char *text, size_t size)
{
	size_t len = 0;
	ssize_t got;

	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	while ((got = recv(fd, text + len, size - 1 - len, 0)) > 0)
		len += (size_t)got;
	text[len] = '\0';
	(void)close(fd);
}

static int reach(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void use_server(void)
{
	vitro_toolhost *host = join_server(tools);

	for (int i = 0; i < 3; i++)
		assert_value(host, "echo", "{}", "{}");
	vitro_result *result = call(host, "crash", "{}");

	assert_status(result, VITRO_CRASHED);
	vitro_result_free(result);
	vitro_toolhost_free(host);
}

static int64_t cpu_ms_of(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &used), 0);
	return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* Who waits at the door is let in later, and until then costs nothing. */
static void test_metrics_without_descriptors(void **state)
{
	struct rlimit before;
	struct server server;
	char path[128], text[32768];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/metrics", folder);
	start_server(&server, (const char *const[]){ "--metrics", path, NULL });
	assert_int_equal(prlimit(server.pid, RLIMIT_NOFILE, NULL, &before), 0);
	assert_int_equal(
		prlimit(server.pid, RLIMIT_NOFILE, &(struct rlimit){ 3, before.rlim_max }, NULL),
		0);
	int fd = reach(path);
	int64_t used = cpu_ms_of(server.pid);

	(void)usleep(600000);
	assert_true(cpu_ms_of(server.pid) - used < 200);
	assert_int_equal(prlimit(server.pid, RLIMIT_NOFILE, &before, NULL), 0);
	ask(fd, "GET /metrics HTTP/1.0\r\n\r\n", text, sizeof(text));
	assert_has(text, "HTTP/1.0 200 OK\r\n");
	stop_server(&server);
}

static void test_metrics(void **state)
{
	struct server server;
	char path[128], text[32768];
	int idle[20];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/metrics", folder);
	start_server(&server, (const char *const[]){ "--metrics", path, NULL });
	use_server();
	ask(reach(path), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
	assert_has(text, "HTTP/1.0 200 OK\r\n");
	assert_has(text, "\nvitro_calls_total{status=\"ok\"} 3\n");
	assert_has(text, "\nvitro_calls_total{status=\"crashed\"} 1\n");
	assert_has(text, "\nvitro_call_seconds_count 4\n");
	assert_has(text, "\nvitro_cells_live 0\n");
	ask(reach(path), "GET /other HTTP/1.0\r\n\r\n", text, sizeof(text));
	assert_has(text, "404 Not Found");
	ask(reach(path), "POST /metrics HTTP/1.0\r\n\r\n", text, sizeof(text));
	assert_has(text, "405 Method Not Allowed");
	/* Visitors that say nothing are not waited for, and keep nobody from his calls. */
	for (int i = 0; i < 20; i++)
		idle[i] = reach(path);
	use_server();
	for (int i = 0; i < 20; i++) {
		assert_true(recv(idle[i], text, sizeof(text), 0) <= 0);
		(void)close(idle[i]);
	}
	ask(reach(path), "GET /metrics HTTP/1.0\r\n\r\n", text, sizeof(text));
	assert_has(text, "\nvitro_calls_total{status=\"ok\"} 6\n");
	stop_server(&server);
	assert_int_equal(access(path, F_OK), -1);
}

/* A port of the loopback that is free now. */
static int free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		SKIP("there is no loopback");
	(void)close(fd);
	return ntohs(address.sin_port);
}

static void test_promtool(void **state)
{
	struct server server;
	char where[64], page[128], command[512], text[32768];
	int port = free_port();

	(void)state;
	if (output_of("command -v promtool", text, sizeof(text)) != 0)
		SKIP("there is no promtool (Debian's package prometheus)");
	(void)snprintf(where, sizeof(where), "127.0.0.1:%d", port);
	start_server(&server, (const char *const[]){ "--metrics", where, NULL });
	use_server();
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ask(fd, "GET /metrics HTTP/1.0\r\n\r\n", text, sizeof(text));
	stop_server(&server);
	const char *body = strstr(text, "\r\n\r\n");

	assert_non_null(body);
	(void)snprintf(page, sizeof(page), "%s/page", folder);
	fd = open(page, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, body + 4, strlen(body + 4)), strlen(body + 4));
	(void)close(fd);
	(void)snprintf(command, sizeof(command), "promtool check metrics < %s 2>&1", page);
	int code = output_of(command, text, sizeof(text));

	(void)unlink(page);
	if (code != 0 || text[0])
		fail_msg("promtool: %s", text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {
		TEST(test_audit),
		TEST(test_audit_of_many_words),
		TEST(test_audit_that_waits),
		TEST(test_audit_that_stays_locked),
		TEST(test_audit_that_is_locked_to_the_end),
		TEST(test_audit_that_is_moved),
		TEST(test_kept_from_calls),
		TEST(test_metrics),
		TEST(test_metrics_without_descriptors),
		TEST(test_promtool),
	};

	return RUN_TESTS(argc, argv, tools, all);
}
