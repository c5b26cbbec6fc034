/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/skip_test.h"
#include "watch/looker.h"

static const struct vt_usage_limits far_away = {
	.memory_bytes = INT64_MAX / 2, .cpu_ns = INT64_MAX / 2, .cpus = 1, .inherited = -1
};

/* Waits for a report, or for its end. */
static int next(const struct vt_looker *looker, struct vt_look_report *report)
{
	struct pollfd ready = { .fd = looker->report_fd, .events = POLLIN };

	assert_int_equal(poll(&ready, 1, 5000), 1);
	return vt_looker_read(looker, report);
}

static void start(struct vt_looker *looker)
{
	AUTO_CLOSE int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct vt_err err;

	assert_true(proc >= 0);
	assert_int_equal(vt_looker_start(looker, proc, -1, &far_away, NULL, &err), 0);
}

/* This machine's processes are a cell's, to it: there are some, and they are looked at again. */
static void test_reports_come(void **state)
{
	struct vt_looker looker = { 0 };
	struct vt_look_report report = { 0 };
	AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct vt_err err;

	(void)state;
	assert_int_equal(vt_looker_start(&looker, proc, root, &far_away, NULL, &err), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(next(&looker, &report), 1);
		if (report.result == 0)
			assert_true(report.usage.processes > 0);
		else
			assert_int_equal(report.result, -EACCES); /* others' processes, as a user */
	}
	pid_t pid = looker.pid;

	vt_looker_done(&looker);
	assert_int_equal(looker.pid, 0);
	assert_int_equal(kill(pid, 0), -1); /* gone, and waited for */
	assert_int_equal(errno, ESRCH);
	vt_looker_done(&looker);
}

/* One that is killed, or never got its descriptors, is noticed and not waited for. */
static void test_its_end_shows(void **state)
{
	struct vt_looker looker = { 0 };
	struct vt_look_report report = { 0 };
	int r;

	(void)state;
	start(&looker);
	assert_int_equal(kill(looker.pid, SIGKILL), 0);
	do
		r = next(&looker, &report);
	while (r > 0);
	assert_int_equal(r, -EPIPE);
	vt_looker_done(&looker);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* It sees as the cell's user, and that user has no way to it. */
static void test_out_of_reach(void **state)
{
	const uid_t id = 0x6f000000U + (unsigned)getpid();
	const struct vt_outer as = { id, id };
	struct vt_looker looker = { 0 };
	struct vt_look_report report;
	AUTO_CLOSE int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct vt_err err;
	char path[64], text[4096] = "";
	int status;

	(void)state;
	if (geteuid() != 0)
		SKIP("only root can do this");
	assert_int_equal(vt_looker_start(&looker, proc, -1, &far_away, &as, &err), 0);
	assert_int_equal(next(&looker, &report), 1); /* it is what it will be */
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
			_exit(1);
		_exit(kill(looker.pid, SIGKILL) < 0 && errno == EPERM ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)snprintf(path, sizeof(path), "%d/status", looker.pid); /* fits */
	assert_true(vt_file_read(proc, path, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "CapPrm:\t0000000000000000\n"));
	(void)snprintf(path, sizeof(path), "Uid:\t0\t%u\t0\t%u\n", id, id); /* fits */
	assert_non_null(strstr(text, path));
	vt_looker_done(&looker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reports_come),
		cmocka_unit_test(test_its_end_shows),
		cmocka_unit_test(test_out_of_reach),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
