/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/client.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_since(void **state)
{
	int status;

	(void)state;
	assert_true(vt_client_since(getpid()) > 0);
	assert_true(vt_client_since(getpid()) == vt_client_since(getpid()));
	assert_true(vt_client_since(0) == 0);
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	assert_true(vt_client_since(pid) >= vt_client_since(getpid()));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(vt_client_since(pid) == 0);
}

/* A pid that is used again is another client; who has none is known by its user. */
static void test_who_is_who(void **state)
{
	struct vt_client *first = NULL;

	(void)state;
	struct vt_client *a = vt_client_new(&first, 7, 100, 1000);
	struct vt_client *b = vt_client_new(&first, 7, 200, 1000);
	struct vt_client *unknown = vt_client_new(&first, 0, 0, 1000);

	assert_ptr_equal(vt_client_find(first, 7, 100, 1000), a);
	assert_ptr_equal(vt_client_find(first, 7, 200, 1000), b);
	assert_null(vt_client_find(first, 8, 100, 1000));
	assert_ptr_equal(vt_client_find(first, 0, 0, 1000), unknown);
	assert_null(vt_client_find(first, 0, 0, 0));
	vt_client_release(vt_client_hold(b));
	assert_ptr_equal(vt_client_find(first, 7, 200, 1000), b);
	vt_client_release(b);
	assert_null(vt_client_find(first, 7, 200, 1000));
	assert_ptr_equal(vt_client_find(first, 7, 100, 1000), a);
	vt_client_release(unknown);
	vt_client_release(a);
	assert_null(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_since),
		cmocka_unit_test(test_who_is_who),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
