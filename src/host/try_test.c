/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/child_test.h"

#include <signal.h>

#include "host/host.h"
#include "host/try.h"

static int act_well(struct vt_err *err)
{
	(void)err;
	return 0;
}

static int act_in_vain(struct vt_err *err)
{
	return vt_fail(err, VT_STEP_MOUNTS, ENOSYS, "mount nothing");
}

static int act_killed(struct vt_err *err)
{
	(void)err;
	return kill(getpid(), SIGKILL);
}

/* That somebody killed the try says nothing about what was tried. */
static void test_answers(void **state)
{
	static struct vt_host host;
	struct vt_err err;

	(void)state;
	assert_int_equal(vt_host_probe(&host, &err), 0);
	assert_int_equal(vt_try(&host, 0, act_well, &err), 0);
	assert_int_equal(vt_try(&host, 0, act_in_vain, &err), -ENOSYS);
	assert_string_equal(err.what, "mount nothing");
	assert_int_equal(vt_try(&host, 0, act_killed, &err), -EAGAIN);
	assert_true(vt_err_passes(err.num));
	vt_host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
