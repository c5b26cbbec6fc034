/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static void test_whole_and_cut(void **state)
{
	char buf[16];
	ssize_t len = vt_file_read(AT_FDCWD, "/proc/self/comm", buf, sizeof(buf));

	(void)state;
	assert_true(len > 4);
	assert_int_equal(buf[len - 1], '\n');
	assert_int_equal(strlen(buf), len);
	assert_int_equal(vt_file_read(AT_FDCWD, "/proc/self/comm", buf, 5), 4);
	assert_int_equal(strlen(buf), 4);
}

static void test_failures(void **state)
{
	char buf[16] = "kept";

	(void)state;
	assert_int_equal(vt_file_read(AT_FDCWD, "/nowhere", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(vt_file_read(AT_FDCWD, "/proc", buf, sizeof(buf)), -EISDIR);
	assert_string_equal(buf, "kept");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_and_cut),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
