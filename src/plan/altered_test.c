/* SPDX-License-Identifier: Apache-2.0 */
/* An invented Python, in a folder of this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/altered.h"

static char place[] = "/tmp/vitro-altered-XXXXXX";

static const char *in_place(const char *name)
{
	static char path[4][128];
	static unsigned next;
	char *buf = path[next++ % 4];

	(void)snprintf(buf, sizeof(path[0]), "%s/%s", place, name);
	return buf;
}

static void make_file(const char *name)
{
	int fd = open(in_place(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static void make_folder(const char *name)
{
	assert_int_equal(mkdir(in_place(name), 0755), 0);
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(place));
	make_folder("bin");
	make_folder("work");
	make_folder("lib");
	make_folder("lib/python3.99");
	make_folder("lib/python3.99/json");
	make_file("bin/python3");
	make_file("lib/python3.99/os.py");
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", place);
	return system(command);
}

/* With "work" for writing. */
static bool is_altered(char ret_place[PATH_MAX])
{
	const struct vt_given work = { .path = in_place("work"), .writable = true };
	const struct vt_givens givens = { &work, 1 };

	return vt_altered_interpreter(&givens, in_place("bin/python3"), ret_place);
}

static void test_links(void **state)
{
	char found[PATH_MAX];

	(void)state;
	assert_false(is_altered(found));
	assert_int_equal(symlink(in_place("work"), in_place("lib/python3.99/json/more")), 0);
	assert_true(is_altered(found));
	assert_int_equal(unlink(in_place("lib/python3.99/json/more")), 0);
	assert_false(is_altered(found));
}

/* What cannot be looked at, since its path is too long, may hold anything. */
static void test_unseen(void **state)
{
	char name[NAME_MAX + 1], found[PATH_MAX];
	int at = open(in_place("lib/python3.99/json"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	memset(name, 'a', NAME_MAX);
	name[NAME_MAX] = '\0';
	assert_true(at >= 0);
	for (int i = 0; i < 1 + PATH_MAX / NAME_MAX; i++) {
		assert_int_equal(mkdirat(at, name, 0755), 0);
		int next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

		assert_true(next >= 0);
		assert_int_equal(close(at), 0);
		at = next;
	}
	assert_int_equal(close(at), 0);
	assert_true(is_altered(found));
	assert_non_null(strstr(found, "lib/python3.99/json/aaa"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_unseen),
	};

	return cmocka_run_group_tests_name("altered", tests, setup, teardown);
}
