/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/heeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Names that lead to code or have files written, new ones of a family, and others, among them some
 * that are nearly such. */
static const char *const given[] = { "LD_PRELOAD=/w/a.so",
				     "LD_AUDIT=",
				     "GCONV_PATH=/w",
				     "LOCPATH=/w",
				     "LANGUAGE=../../../w",
				     "OPENSSL_CONF=x",
				     "SSLKEYLOGFILE=/w/keys",
				     "NODE_OPTIONS=-r /w/a.js",
				     "NODE_COMPILE_CACHE=/w",
				     "NODE_PATH=/w",
				     "NODE_V8_COVERAGE=/w",
				     "NODE_REDIRECT_WARNINGS=/w/a",
				     "NODE_CHANNEL_FD=3",
				     "NODE_WHAT_IS_NEW=/w",
				     "NODE_DEBUG_NATIVE=x",
				     "PYTHONPATH=/w",
				     "PYTHON_WHAT_IS_NEW=/w",
				     "BASH_ENV=/w/a",
				     "NODE_ENV=test",
				     "NODE_EXTRA_CA_CERTS=/etc/ca.pem",
				     "NODE_DEBUG=http",
				     "PYTHON_ENV=test",
				     "PATH=/bin",
				     "LANG=C.UTF-8",
				     "TZ=UTC",
				     "SSL_CERT_FILE=/etc/ca.pem",
				     "UV_THREADPOOL_SIZE=1",
				     "MALLOC_ARENA_MAX=1",
				     "GLIBC_TUNABLES=x",
				     "GCONV_PATHS=1",
				     "LD=gcc",
				     "NODE=1",
				     "\xc3\x84=1",
				     "EMPTY=",
				     NULL };
enum { HEEDED = 18, ALL = sizeof(given) / sizeof(given[0]) - 1 };

static void test_hide(void **state)
{
	char **hidden = vt_heeded_hide((char *const *)given, 2);

	(void)state;
	assert_non_null(hidden);
	for (size_t i = 0; i < ALL; i++) {
		assert_string_equal(hidden[i] + 1, given[i] + 1);
		assert_int_equal(hidden[i][0] == given[i][0], i >= HEEDED);
	}
	for (size_t i = ALL; i < ALL + 3; i++)
		assert_null(hidden[i]);

	vt_heeded_show(hidden);
	for (size_t i = 0; i < ALL; i++)
		assert_string_equal(hidden[i], given[i]);
	free(hidden);
}

static void test_nothing(void **state)
{
	char *none[] = { NULL };
	char **hidden = vt_heeded_hide(none, 0);

	(void)state;
	assert_non_null(hidden);
	assert_null(hidden[0]);
	vt_heeded_show(hidden);
	vt_heeded_show(NULL);
	free(hidden);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hide),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests_name("launch/heeded", tests, NULL, NULL);
}
