/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/procfs.h"

#include <linux/sched.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "kernel/ns.h"

static void test_numbers(void **state)
{
	static const char text[] = "Name:\tx\nPid:\t17\nThreads:\t-3\n";

	(void)state;
	assert_int_equal(vt_proc_number_of(text, "Pid"), 17);
	assert_int_equal(vt_proc_number_of(text, "Threads"), 0);
	assert_int_equal(vt_proc_number_of(text, "Thread"), -1);
	assert_int_equal(vt_proc_number_at(" 1 22 333", 2), 333);
	assert_int_equal(vt_proc_number_at("1 22", 7), 0);
}

static void test_who_is_exiting(void **state)
{
	AUTO_CLOSE int pidfd = -1;
	struct vt_err err;
	pid_t pid = vt_ns_clone(0, -1, &pidfd, &err);

	(void)state;
	while (pid == 0)
		(void)pause();
	assert_true(pid > 0);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	assert_false(vt_proc_is_exiting(pidfd));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(poll(&end, 1, 5000), 1);
	assert_true(vt_proc_is_exiting(pidfd)); /* it waits to be reaped */
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
	assert_true(vt_proc_is_exiting(pidfd));
	assert_false(vt_proc_is_exiting(-1));
	assert_false(vt_proc_is_exiting(0)); /* no pidfd */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_who_is_exiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
