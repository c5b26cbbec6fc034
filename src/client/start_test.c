/* SPDX-License-Identifier: Apache-2.0 */
#include "client/start.h"

#include <limits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "client/fake_test.h"

/* The supervisor has what it needs, and nothing of this program's. */
static void test_a_clean_start(void **state)
{
	(void)state;
	int leaked = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, as programs do */
	sigset_t some, before;

	assert_true(leaked >= 0);
	assert_int_equal(sigemptyset(&some), 0);
	assert_int_equal(sigaddset(&some, SIGUSR1), 0);
	assert_int_equal(sigprocmask(SIG_BLOCK, &some, &before), 0);
	assert_ptr_not_equal(signal(SIGUSR2, SIG_IGN), SIG_ERR);
	vitro_toolhost *host = FAKE_HOST("tell");

	/* And this program has its signals as they were. */
	sigset_t after;

	assert_int_equal(sigprocmask(SIG_SETMASK, &before, &after), 0);
	assert_int_equal(sigismember(&after, SIGUSR1), 1);
	assert_int_equal(sigismember(&after, SIGTERM), 0);
	assert_ptr_equal(signal(SIGUSR2, SIG_DFL), SIG_IGN);
	vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = "tell" });
	int pid = 0, session = 0, fds = 0;
	char blocked[32], ignored[32];

	assert_int_equal(sscanf(vitro_result_value(result, NULL),
				"{\"pid\":%d,\"session\":%d,\"SigBlk\":\"%31[^\"]\","
				"\"SigIgn\":\"%31[^\"]\",\"fds\":%d}",
				&pid, &session, blocked, ignored, &fds),
			 5);
	assert_int_equal(pid, session);
	/* Two are the C library's own, which nobody changes through it: they are as they were. */
	const unsigned long long own = 3ULL << 31;

	assert_int_equal(strtoull(blocked, NULL, 16) & ~own, 0);
	assert_int_equal(strtoull(ignored, NULL, 16) & ~own, 0);
	assert_int_equal(fds, 5); /* its own, the socket, and this program's file */
	vitro_result_free(result);
	vitro_toolhost_free(host);
	/* It has ended by now: at most its corpse is left, for who adopted it. */
	char path[64], text[512] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *file = fopen(path, "re");

	if (file) {
		assert_non_null(fgets(text, sizeof(text), file));
		assert_int_equal(fclose(file), 0);
		assert_non_null(strstr(text, ") Z "));
	}
	assert_int_equal(close(leaked), 0);
}

static void give_low_descriptors(void)
{
	vitro_toolhost *host;
	struct vitro_tool tools[] = { { .name = "tell", .function = fake_function }, { 0 } };

	for (int fd = 0; fd < 3; fd++)
		(void)close(fd);
	if (vitro_toolhost_new(&host, tools, NULL, NULL) < 0)
		_exit(1);
	vitro_result *result = vitro_call(host, &(struct vitro_request){ .tool = "tell" });
	const char *value = vitro_result_value(result, NULL);

	if (!value || !strstr(value, "\"fds\":5}"))
		_exit(2);
	vitro_result_free(result);
	vitro_toolhost_free(host);
	_exit(0);
}

/* A program that closed its standard descriptors has sockets in their places. */
static void test_low_descriptors(void **state)
{
	(void)state;
	int status;

	assert_ptr_not_equal(signal(SIGCHLD, SIG_DFL), SIG_ERR);
	pid_t pid = fork();

	if (pid == 0)
		give_low_descriptors();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_ptr_not_equal(signal(SIGCHLD, fake_on_child), SIG_ERR);
}

static void limit_descriptors(void)
{
	struct vitro_error error = { 0 };
	struct rlimit limit = { .rlim_cur = 12, .rlim_max = 1024 };
	vitro_toolhost *host;

	/* It may have enough, whatever this program has. */
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    vitro_toolhost_new(&host, NULL, NULL, &error) < 0)
		_exit(1);
	vitro_toolhost_free(host);
	limit.rlim_max = 1023;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		_exit(2);
	if (vitro_toolhost_new(&host, NULL, NULL, &error) != -EMFILE ||
	    !strstr(error.text, "ulimit -Hn) is 1023: the supervisor needs at least 1024"))
		_exit(3);
	_exit(0);
}

static void test_few_descriptors(void **state)
{
	(void)state;
	int status;

	assert_ptr_not_equal(signal(SIGCHLD, SIG_DFL), SIG_ERR);
	pid_t pid = fork();

	if (pid == 0)
		limit_descriptors();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_ptr_not_equal(signal(SIGCHLD, fake_on_child), SIG_ERR);
}

/* A program that adopts orphans has the supervisor for a child, and its corpse is not left to it.
 */
static void test_subreaper(void **state)
{
	(void)state;
	assert_ptr_not_equal(signal(SIGCHLD, SIG_DFL), SIG_ERR);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	vitro_toolhost *host = FAKE_HOST("echo");

	vitro_toolhost_free(host);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
	assert_ptr_not_equal(signal(SIGCHLD, fake_on_child), SIG_ERR);
}

static void test_no_such_program(void **state)
{
	(void)state;
	char *before = strdup(getenv("VITRO_BINARY"));
	struct vitro_error error;
	vitro_toolhost *host;

	assert_int_equal(setenv("VITRO_BINARY", "/nowhere/vitro", 1), 0);
	assert_int_equal(vitro_toolhost_new(&host, NULL, NULL, &error), -ENOENT);
	assert_non_null(strstr(error.text, "/nowhere/vitro"));
	/* It may be executed, and is no program. */
	char name[] = "/tmp/vitro-start.XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "nothing", 7), 7);
	assert_int_equal(fchmod(fd, 0700), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(setenv("VITRO_BINARY", name, 1), 0);
	assert_int_equal(vitro_toolhost_new(&host, NULL, NULL, &error), -ENOEXEC);
	assert_int_equal(unlink(name), 0);
	/* One that says nothing, and ends. */
	assert_int_equal(setenv("VITRO_BINARY", "/bin/true", 1), 0);
	assert_int_equal(vitro_toolhost_new(&host, NULL, NULL, &error), -EPIPE);
	assert_non_null(
		strstr(error.text, "'/bin/true', which was started as the supervisor: it ended"));
	assert_int_equal(setenv("VITRO_BINARY", before, 1), 0);
	free(before);
}

static void test_search(void **state)
{
	(void)state;
	char *binary = strdup(getenv("VITRO_BINARY")), *path = strdup(getenv("PATH"));
	char folder[] = "/tmp/vitro-start.XXXXXX", name[64], list[128], found[PATH_MAX];
	struct vt_err err;

	assert_int_equal(vt_start_find(found, sizeof(found), &err), 0);
	assert_string_equal(found, binary);
	assert_int_equal(unsetenv("VITRO_BINARY"), 0);
	if (access(VITRO_INSTALLED, X_OK) == 0) {
		assert_int_equal(vt_start_find(found, sizeof(found), &err), 0);
		assert_string_equal(found, VITRO_INSTALLED);
	} else {
		assert_non_null(mkdtemp(folder));
		(void)snprintf(name, sizeof(name), "%s/vitro", folder);
		(void)snprintf(list, sizeof(list), "relative::/nowhere:%s:", folder);
		assert_int_equal(setenv("PATH", list, 1), 0);
		assert_int_equal(vt_start_find(found, sizeof(found), &err), -ENOENT);
		assert_int_equal(symlink(binary, name), 0);
		assert_int_equal(vt_start_find(found, sizeof(found), &err), 0);
		assert_string_equal(found, name);
		assert_int_equal(unlink(name), 0);
		assert_int_equal(rmdir(folder), 0);
	}
	assert_int_equal(setenv("PATH", path, 1), 0);
	assert_int_equal(setenv("VITRO_BINARY", binary, 1), 0);
	free(path);
	free(binary);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FAKE_TEST(test_a_clean_start),   FAKE_TEST(test_low_descriptors),
		FAKE_TEST(test_few_descriptors), FAKE_TEST(test_subreaper),
		FAKE_TEST(test_no_such_program), FAKE_TEST(test_search),
	};

	fake_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
