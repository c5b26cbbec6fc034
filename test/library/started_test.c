/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a program is started once more to hold its tools ready: whatever becomes of its file
 * meanwhile, and what is said where it does not get that far. The test copies itself, and what a
 * copy is called says what it does. The same of a shared object. argv: vitro, the object.
 */
#include "library_test.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char folder[] = "/var/tmp/library-test-XXXXXX";
static const char *vitro, *plugin;

static int tell_name(vitro_task *task)
{
	return vitro_task_return(task, "\"the first one\"");
}

static const struct vitro_tool tools[] = { { .name = "name", .function = tell_name }, { 0 } };

/* ---- what the copies do -------------------------------------------------------------------- */

static void print_call(vitro_toolhost *host, const char *tool)
{
	vitro_result *result = call(host, tool, NULL);
	const char *value = vitro_result_value(result, NULL);

	(void)printf("%s\n", value ? value : vitro_result_error(result));
	vitro_result_free(result);
}

/* Under a policy of its own, for which the program is started once more. */
static void print_call_of_new(vitro_toolhost *host, const char *seconds)
{
	vitro_policy *policy = policy_of("limits.wall_ms", seconds);
	struct vitro_tool tool = tools[0];
	struct vitro_error error;

	tool.policy = policy;
	if (vitro_toolhost_add(host, &tool, &error) < 0)
		(void)puts(error.text);
	else
		print_call(host, "name");
	vitro_policy_free(policy);
}

static int begin(vitro_toolhost **ret_host)
{
	struct vitro_error error;
	int status = vitro_toolhost_new(ret_host, tools, NULL, &error);

	if (status < 0)
		(void)fprintf(stderr, "%s\n", error.text);
	return status;
}

/* Its file goes before there is a tool host, or right after. */
static int be_removed(const char *path, int early)
{
	vitro_toolhost *host;

	if ((early && unlink(path) < 0) || begin(&host) < 0 || (!early && unlink(path) < 0))
		return 1;
	print_call(host, "name");
	print_call_of_new(host, "7s");
	vitro_toolhost_free(host);
	return 0;
}

/* Another program comes in its place, as an upgrade does it. */
static int be_replaced(const char *path)
{
	vitro_toolhost *host;
	char other[128];

	(void)snprintf(other, sizeof(other), "%s.next", path);
	if (begin(&host) < 0 || symlink("/bin/false", other) < 0)
		return 1;
	print_call(host, "name");
	if (rename(other, path) < 0)
		return 1;
	print_call_of_new(host, "7s");
	vitro_toolhost_free(host);
	return 0;
}

static int be_host(void)
{
	vitro_toolhost *host;

	if (begin(&host) < 0)
		return 1;
	print_call(host, "name");
	vitro_toolhost_free(host);
	return 0;
}

/* In either process. */
static int be_copy(const char *name, int argc, char **argv)
{
	if (strcmp(name, "usage") == 0 && argc < 2)
		return (void)fputs("usage: PROGRAM VITRO\n", stderr), 2;
	if (strcmp(name, "library") == 0 && argc < 2)
		return (void)fputs("cannot open shared object\n\033file\n\n", stderr), 127;
	if (strcmp(name, "crash") == 0 && argc < 2)
		abort();
	if (strcmp(name, "forgotten") != 0)
		vitro_host_main(argc, argv, tools);
	if (strcmp(name, "early") == 0 || strcmp(name, "late") == 0)
		return be_removed(argv[0], *name == 'e');
	return strcmp(name, "replaced") == 0 ? be_replaced(argv[0]) : be_host();
}

/* ---- the tests ----------------------------------------------------------------------------- */

static void copy(const char *of, const char *path)
{
	int from = open(of, O_RDONLY | O_CLOEXEC);
	int to = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0755);
	struct stat st;

	assert_true(from >= 0 && to >= 0);
	assert_int_equal(fstat(from, &st), 0);
	while (sendfile(to, from, NULL, 1 << 30) > 0)
		;
	assert_int_equal(lseek(to, 0, SEEK_CUR), st.st_size);
	assert_int_equal(close(from) | close(to), 0);
}

/* What a copy of that name prints. */
static void run_copy(const char *name, char *text, size_t size)
{
	char path[64], line[512];
	size_t len;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	copy("/proc/self/exe", path);
	(void)snprintf(line, sizeof(line), "exec %s %s", path, vitro);
	FILE *said = popen(line, "r");

	assert_non_null(said);
	len = fread(text, 1, size - 1, said);
	text[len] = '\0';
	assert_int_equal(pclose(said), 0);
	(void)unlink(path); /* some do that themselves */
}

static void skip_where_refused(void)
{
	vitro_toolhost_free(host_of(tools, NULL));
}

static void test_file_that_is_gone(void **state)
{
	(void)state;
	skip_where_refused();
	static const char *const names[] = { "early", "late", "replaced" };
	char text[4096];

	for (size_t i = 0; i < 3; i++) {
		run_copy(names[i], text, sizeof(text));
		if (strcmp(text, "\"the first one\"\n\"the first one\"\n") != 0)
			fail_msg("%s: %s", names[i], text);
	}
}

static void test_what_keeps_it_from_starting(void **state)
{
	(void)state;
	skip_where_refused();
	static const struct {
		const char *name, *said[2];
	} cases[] = {
		{ "usage",
		  { "ended with code 2; vitro_host_main() must come first in its main()",
		    "(it said: usage: PROGRAM VITRO)" } },
		{ "forgotten",
		  { "ended with code 1; vitro_host_main() must come first in its main()",
		    "(it said: this process was started to hold tools ready" } },
		{ "library",
		  { "ended with code 127; is a library missing?",
		    "-Wl,-rpath,FOLDER (it said: cannot open shared object\\n\\u001bfile)" } },
		{ "crash",
		  { "died of signal 6; vitro_host_main() must come first in its main()\n",
		    "cannot keep '" } },
	};
	char text[4096];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run_copy(cases[i].name, text, sizeof(text));
		for (size_t j = 0; j < 2; j++)
			if (!strstr(text, cases[i].said[j]) || strstr(text, "No child"))
				fail_msg("%s: '%s' lacks '%s'", cases[i].name, text,
					 cases[i].said[j]);
	}
}

/* Ends whoever has loaded that object: who holds it ready, and cells. How many. */
static int kill_holders(const char *path)
{
	glob_t found;
	int killed = 0;

	assert_int_equal(glob("/proc/[0-9]*/cmdline", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char words[512] = "";
		int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
		ssize_t len = fd < 0 ? 0 : read(fd, words, sizeof(words) - 1);
		const char *last = memchr(words, '\0', sizeof(words));

		(void)close(fd);
		if (len > 0 && strstr(words, "vitro-object") && strcmp(last + 1, path) == 0)
			killed += kill(atoi(found.gl_pathv[i] + 6), SIGKILL) == 0;
	}
	globfree(&found);
	return killed;
}

static void keep_line(void *user, int level, const char *text)
{
	char *lines = user;
	size_t len = strlen(lines);

	(void)level;
	(void)snprintf(lines + len, 4096 - len, "%s\n", text);
}

/* Calls until that was logged, and calls are served again. */
static void await_line(vitro_toolhost *host, const char *lines, const char *wanted)
{
	int status = -1;

	for (int i = 0; i < 300 && (status != VITRO_OK || !strstr(lines, wanted)); i++) {
		vitro_result *result = call(host, "twice", "{\"n\": 21}");

		status = (int)vitro_result_status(result);
		vitro_result_free(result);
		(void)usleep(10000);
	}
	assert_int_equal(status, VITRO_OK);
	if (!strstr(lines, wanted))
		fail_msg("'%s' lacks '%s'", lines, wanted);
}

static void test_object_that_is_replaced(void **state)
{
	(void)state;
	skip_where_refused();
	char path[64], next[64], lines[4096] = "";

	(void)snprintf(path, sizeof(path), "%s/t.so", folder);
	(void)snprintf(next, sizeof(next), "%s/next.so", folder);
	copy(plugin, path);
	const struct vitro_tool twice[] = {
		{ .name = "twice", .object = path, .symbol = "plugin_twice" }, { 0 }
	};
	vitro_toolhost *host = host_of(twice,
				       &(struct vitro_options){ .log = keep_line, .user = lines });

	assert_value(host, "twice", "{\"n\": 21}", "42");
	/* Started anew, it is the same, and there is nothing to say of it. */
	assert_true(kill_holders(path) > 0);
	await_line(host, lines, "started anew");
	assert_null(strstr(lines, "was changed"));
	copy(plugin, next);
	assert_int_equal(rename(next, path), 0);
	if (has_namespaces(host)) {
		assert_true(kill_holders(path) > 0);
		await_line(host, lines, "t.so' was changed or removed after it was loaded");
	} else { /* a bare cell may read what was there when its rules were made, and nothing else
		  */
		for (int i = 0; i < 100 && !strstr(lines, "find what was there before at '"); i++)
			vitro_result_free(call(host, "twice", "{\"n\": 21}"));
		assert_non_null(strstr(lines, "find what was there before at '"));
	}
	vitro_toolhost_free(host);
	assert_int_equal(unlink(path), 0);
}

/* Root's cells are nobody's. Everybody else has what he may read himself. */
static void test_object_that_cannot_be_read(void **state)
{
	(void)state;
	skip_where_refused();
	char path[64];
	struct vitro_error error;
	vitro_toolhost *host;

	(void)snprintf(path, sizeof(path), "%s/t.so", folder);
	copy(plugin, path);
	const struct vitro_tool twice[] = {
		{ .name = "twice", .object = path, .symbol = "plugin_twice" }, { 0 }
	};

	assert_int_equal(chmod(path, geteuid() ? 0300 : 0700), 0);
	assert_int_equal(vitro_toolhost_new(&host, twice, NULL, &error), -EACCES);
	assert_non_null(strstr(error.text, "t.so'"));
	assert_non_null(strstr(error.text,
			       geteuid() ? "Permission denied" : "must be readable by everyone"));
	assert_int_equal(chmod(path, geteuid() ? 0700 : 0704), 0);
	host = host_of(twice, NULL);
	assert_value(host, "twice", "{\"n\": 21}", "42");
	vitro_toolhost_free(host);
	assert_int_equal(unlink(path), 0);
}

/* Of which each cell has its own, and vitro keeps what is to be seen of the host's elsewhere. */
static void test_object_in_tmp(void **state)
{
	(void)state;
	skip_where_refused();
	char below[] = "/tmp/library-test-XXXXXX", path[64], wanted[128];
	const struct vitro_tool twice[] = {
		{ .name = "twice", .object = path, .symbol = "plugin_twice" }, { 0 }
	};

	assert_non_null(mkdtemp(below));
	assert_int_equal(chmod(below, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/t.so", below);
	copy(plugin, path);
	vitro_toolhost *host = host_of(twice, NULL);

	assert_value(host, "twice", "{\"n\": 21}", "42");
	vitro_toolhost_free(host);

	assert_int_equal(truncate(path, 7), 0);
	host = host_of(twice, NULL);
	(void)snprintf(wanted, sizeof(wanted), "cannot load '%s': ", path);
	assert_error(host, "twice", NULL, "CannotExecute", wanted);
	vitro_result *result = call(host, "twice", NULL);

	assert_null(strstr(vitro_result_error(result), "aside"));
	vitro_result_free(result);
	vitro_toolhost_free(host);
	assert_int_equal(unlink(path) | rmdir(below), 0);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	const struct CMUnitTest tests_of_it[] = {
		cmocka_unit_test(test_file_that_is_gone),
		cmocka_unit_test(test_what_keeps_it_from_starting),
		cmocka_unit_test(test_object_that_is_replaced),
		cmocka_unit_test(test_object_that_cannot_be_read),
		cmocka_unit_test(test_object_in_tmp),
	};

	if (argc > 1 && setenv("VITRO_BINARY", argv[1], 1) < 0)
		return 2;
	if (name && strstr(argv[0], "/library-test-"))
		return be_copy(name + 1, argc, argv);
	vitro_host_main(argc, argv, tools);
	if (argc < 3)
		return 2;
	if (!mkdtemp(folder))
		return (void)puts("1..0 # SKIP there is no place to write"), 0;
	if (chmod(folder, 0755) < 0)
		return 2;
	vitro = argv[1];
	plugin = argv[2];
	int failed = cmocka_run_group_tests(tests_of_it, NULL, NULL);

	return rmdir(folder) < 0 || failed;
}
