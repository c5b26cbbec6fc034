/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static void test_whole_and_cut(void **state)
{
	char path[] = "/tmp/vitro-file-XXXXXX", buf[16];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a line\n", 7), 7);
	assert_int_equal(close(fd), 0);
	assert_int_equal(vt_file_read(AT_FDCWD, path, buf, sizeof(buf)), 7);
	assert_string_equal(buf, "a line\n");
	assert_int_equal(vt_file_read(AT_FDCWD, path, buf, 5), 4);
	assert_string_equal(buf, "a li");
	assert_int_equal(unlink(path), 0);
}

static void test_failures(void **state)
{
	char buf[16] = "kept";

	(void)state;
	assert_int_equal(vt_file_read(AT_FDCWD, "/nowhere", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(vt_file_read(AT_FDCWD, "/", buf, sizeof(buf)), -EISDIR);
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
