/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are asked whether they can be forked, and go on instead of ending. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/interpreter.h"

/* What a shell script answers. */
static int ask(const char *script, char why_not[VT_INTERPRETER_WHY])
{
	static const struct vt_interpreter preloading = { .advice = "", .preloads = true };
	char path[] = "/tmp/vitro-interpreter-XXXXXX";
	int fd = mkstemp(path);
	struct vt_err err;

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "#!/bin/sh\n%s\n", script) > 0);
	assert_int_equal(fchmod(fd, 0700), 0);
	assert_int_equal(close(fd), 0);
	alarm(60); /* whoever waits for one that goes on waits for long */
	int r = vt_interpreter_forks(&preloading, path, "/no/such/library", why_not, &err);

	alarm(0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	return r;
}

static void test_answers(void **state)
{
	char why_not[VT_INTERPRETER_WHY];

	(void)state;
	assert_int_equal(ask("printf forked", why_not), 0);
	assert_string_equal(why_not, "");
	assert_int_equal(ask("printf 'anew: it is old'", why_not), 0);
	assert_string_equal(why_not, "it is old");
	assert_int_equal(ask("printf what", why_not), -ENOEXEC);
}

static void test_goes_on(void **state)
{
	char why_not[VT_INTERPRETER_WHY];

	(void)state;
	assert_int_equal(ask("printf forked; exec sleep 1000 >&-", why_not), 0);
	assert_string_equal(why_not, "");
	assert_int_equal(ask("printf %0300d 0; exec sleep 1000", why_not), -ENOEXEC);
}

static int take_any(void *arg, const char *path, struct vt_err *err)
{
	(void)arg;
	(void)path;
	(void)err;
	return 0;
}

/* As a program that is installed beside a folder of Python's: how many descriptors it may have. */
static _Noreturn void follow(const char *most)
{
	const struct rlimit few = { .rlim_cur = strtoul(most, NULL, 10), .rlim_max = 1024 };
	struct vt_err err;

	if (setrlimit(RLIMIT_NOFILE, &few) < 0)
		_exit(1);
	_exit(-vt_interpreter_follow(take_any, NULL, &err));
}

/* A folder that cannot be looked into may have links that nobody was told of. */
static void test_unseen_links(void **state)
{
	static const char script[] =
		"d=$(mktemp -d /tmp/vitro-follow-XXXXXX) && mkdir $d/python && "
		"cp /proc/$PPID/exe $d/program && $d/program 9 && "
		"{ $d/program 3; r=$?; rm -r $d; exit $r; }";
	int status = system(script); /* by a shell, whose parent this is */

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EMFILE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_unseen_links),
	};

	if (argc == 2)
		follow(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
