/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of a server: each starts one of its own, in a folder of its own, and ends it. Clients are this program,
 * with the library as others have it, or with bytes that no library would send.
 */
#pragma once

#include "../library/library_test.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

static const char *vitro; /* the program */
static char folder[] = "/tmp/serve-test-XXXXXX";
static char socket_path[64];

static rlim_t server_files; /* how many descriptors the next one may have; 0: as many as we */
static pid_t running; /* of a test that failed: what it left */

struct server {
	pid_t pid;
	char  log[128]; /* what it says */
};

static inline int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void sleep_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* Without a server, or the errno: for who only wants to know whether one listens. */
static inline int connect_raw(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int num = errno;

		(void)close(fd);
		return -num;
	}
	return fd;
}

/* What it has said so far. */
static inline void read_log(const struct server *server, char *text, size_t size)
{
	int fd = open(server->log, O_RDONLY);
	ssize_t len = fd < 0 ? 0 : read(fd, text, size - 1);

	text[len > 0 ? len : 0] = '\0';
	(void)close(fd);
}

static inline void become_server(const struct server *server, const char *const *flags)
{
	const char *argv[32] = { vitro, "serve" };
	int count = 2;

	const struct rlimit files = { server_files, server_files };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (server_files && setrlimit(RLIMIT_NOFILE, &files) < 0)
		_exit(5);
	int fd = open(server->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || dup2(fd, 2) < 0)
		_exit(3);
	while (flags && *flags && count < 31)
		argv[count++] = *flags++;
	(void)execv(vitro, (char **)argv);
	_exit(4);
}

/* Starts one, and waits until it says so and somebody can connect: what a killed one was forking may listen in its stead
 * for a moment. A machine that cannot have pools is no place for this test. */
static inline void start_server(struct server *server, const char *const *more)
{
	const char *flags[32] = { "--socket", socket_path };
	char text[1024];
	int count = 2;

	while (more && *more)
		flags[count++] = *more++;
	(void)snprintf(server->log, sizeof(server->log), "%s/log", folder);
	/* What one before it said goes; a pipe is a test's own. */
	assert_true(truncate(server->log, 0) == 0 || errno == ENOENT || errno == EINVAL);
	server->pid = running = fork();
	if (server->pid == 0)
		become_server(server, flags);
	for (int64_t until = now_ms() + 20000;; sleep_ms(5)) {
		read_log(server, text, sizeof(text));
		int fd = strstr(text, "serving") ? connect_raw() : -1, status;

		if (fd >= 0) {
			(void)close(fd);
			return;
		}
		if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
			read_log(server, text, sizeof(text));
			if (strstr(text, "refused: "))
				SKIP("%s", text);
			fail_msg("the server ended: %s", text);
		}
		assert_true(now_ms() < until);
	}
}

/* How it ended; it has so long. */
static inline int await_server(struct server *server, int64_t ms)
{
	int status = 0;

	for (int64_t until = now_ms() + ms; waitpid(server->pid, &status, WNOHANG) == 0;
	     sleep_ms(2)) {
		if (now_ms() < until)
			continue;
		(void)kill(server->pid, SIGKILL);
		(void)waitpid(server->pid, &status, 0);
		running = 0;
		fail_msg("the server does not end");
	}
	running = running == server->pid ? 0 : running;
	return status;
}

static inline void stop_server(struct server *server)
{
	assert_int_equal(kill(server->pid, SIGTERM), 0);
	int status = await_server(server, 15000);

	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		char text[4096];

		read_log(server, text, sizeof(text));
		fail_msg("the server ended with %x: %s", (unsigned)status, text);
	}
	assert_int_equal(access(socket_path, F_OK), -1);
}

/* A client of the library. */
static inline vitro_toolhost *join_server(const struct vitro_tool *tools)
{
	return host_of(tools, &(struct vitro_options){ .socket = socket_path });
}

/* The processes of a server that live, and those that these started. */
static inline int count_processes(pid_t server)
{
	char path[64], text[4096];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)server, (int)server);
	int fd = open(path, O_RDONLY), count = 0;
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	(void)close(fd);
	text[len > 0 ? len : 0] = '\0';
	for (char *at = strtok(text, " "); at; at = strtok(NULL, " "))
		count++;
	return count;
}

static inline int clear_away(void **state)
{
	char path[128];

	(void)state;
	if (running > 0 && kill(running, SIGKILL) == 0)
		(void)waitpid(running, NULL, 0);
	running = 0;
	server_files = 0;
	(void)unlink(socket_path);
	(void)snprintf(path, sizeof(path), "%s.lock", socket_path);
	(void)unlink(path);
	return 0;
}

#define TEST(function) cmocka_unit_test_teardown(function, clear_away)

static inline int begin_tests(int argc, char **argv, const struct vitro_tool *tools)
{
	if (argc > 1 && setenv("VITRO_BINARY", argv[1], 1) < 0)
		return 2;
	vitro_host_main(argc, argv, tools);
	if (argc < 2)
		return 2;
	vitro = argv[1];
	if (!mkdtemp(folder))
		return (void)puts("1..0 # SKIP there is no place to write"), -1;
	(void)snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
	return 0;
}

static inline void end_tests(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/log", folder);
	(void)unlink(path);
	(void)rmdir(folder);
}

static inline int run_all(int argc, char **argv, const struct vitro_tool *tools, const struct CMUnitTest *all,
			    size_t count)
{
	int status = begin_tests(argc, argv, tools);

	if (status)
		return status < 0 ? 0 : status;
	int failed = _cmocka_run_group_tests("all", all, count, NULL, NULL);

	end_tests();
	return failed;
}

/* What main() does, with an array of tests, each a TEST(). */
#define RUN_TESTS(argc, argv, tools, all) run_all(argc, argv, tools, all, sizeof(all) / sizeof((all)[0]))
