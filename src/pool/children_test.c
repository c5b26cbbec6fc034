/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/children.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/ns.h"
#include "kernel/pass.h"

/* One that has ended with this code, and was not reaped. */
static pid_t make_ended(int code)
{
	pid_t pid = fork();
	siginfo_t info;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(code);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return pid;
}

static bool is_reaped(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD;
}

static void test_a_known_one_is_reaped_by_its_owner(void **state)
{
	struct vt_children children = { 0 };
	struct vt_child child = { 0 };
	pid_t pid = make_ended(3);

	(void)state;
	vt_child_know(&children, &child, pid);
	assert_int_equal(WEXITSTATUS(vt_child_reap(&child)), 3);
	assert_int_equal(child.pid, 0);
	assert_true(is_reaped(pid));
	vt_child_forget(&child); /* nobody */
}

static void test_one_that_lives_is_not_taken(void **state)
{
	struct vt_children children = { 0 };
	struct vt_child child = { 0 };
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		for (;;)
			(void)pause();
	vt_child_know(&children, &child, pid);
	vt_children_sweep(&children);
	assert_false(vt_child_try_reap(&child, &status));
	assert_int_equal(child.pid, pid);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(WTERMSIG(vt_child_reap(&child)), SIGKILL);
}

static void test_a_sweep_reaps_strays_and_keeps_what_is_known(void **state)
{
	enum { MANY = 600 }; /* more than there are buckets */
	static struct vt_child known[MANY];
	static pid_t pids[MANY];
	struct vt_children children = { 0 };
	pid_t stray = make_ended(1);
	int status;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		pids[i] = make_ended(i % 100);
		vt_child_know(&children, &known[i], pids[i]);
	}
	vt_child_forget(&known[7]);
	vt_children_sweep(&children);
	assert_true(is_reaped(stray));
	for (int i = 0; i < MANY; i++) {
		assert_true(is_reaped(pids[i]));
		if (i == 7)
			continue;
		assert_true(vt_child_try_reap(&known[i], &status));
		assert_int_equal(WEXITSTATUS(status), i % 100);
	}
	for (int i = 0; i < VT_CHILD_BUCKETS; i++)
		assert_null(children.buckets[i]);
}

/* As lookers and brokers are: who made them waits for them. */
static void test_forks_without_an_exit_signal_are_left_alone(void **state)
{
	struct vt_children children = { 0 };
	struct vt_err err;
	AUTO_CLOSE int pidfd = -1;
	pid_t pid = vt_ns_clone(0, -1, &pidfd, &err);
	int status;

	(void)state;
	if (pid == 0)
		_exit(5);
	assert_true(pid > 0);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	assert_int_equal(poll(&end, 1, 5000), 1);
	vt_children_sweep(&children);
	assert_true(vt_child_is_ours(pidfd));
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	assert_int_equal(WEXITSTATUS(status), 5);
}

static void test_a_pidfd_tells_who_was_swept(void **state)
{
	struct vt_children children = { 0 };
	pid_t pid = make_ended(0);
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	(void)state;
	assert_true(pidfd >= 0);
	assert_true(vt_child_is_ours(pidfd));
	vt_children_sweep(&children);
	assert_false(vt_child_is_ours(pidfd));
	assert_false(vt_child_is_ours(-1));
}

/* ---- sockets that strangers' descriptors wait in ------------------------------------------- */

/* A socket whose close waits until the other end is read or closed. */
static int make_lingering(int *ret_other)
{
	const struct linger linger = { 1, 3600 };
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	static char bytes[1 << 16];
	socklen_t len = sizeof(address);
	AUTO_CLOSE int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(door, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(door, 1), 0);
	assert_int_equal(getsockname(door, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	*ret_other = accept4(door, NULL, NULL, SOCK_CLOEXEC);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

/* One end of a pair, in which it waits. */
static int make_trap(int *ret_other, int *ret_stranger)
{
	int pair[2], fd = make_lingering(ret_other);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	struct vt_err err;

	assert_int_equal(vt_pass_send(pair[1], "x", 1, &fd, 1, &err), 0);
	(void)close(fd);
	*ret_stranger = pair[1];
	return pair[0];
}

static void test_what_waits_in_a_wary_socket_is_closed_elsewhere(void **state)
{
	struct vt_children children = { 0 };
	int other, stranger, status, trap = make_trap(&other, &stranger);
	pid_t control = fork();

	(void)state;
	if (control == 0) {
		(void)usleep(50000); /* by then it has the only one */
		(void)close(trap);
		_exit(0);
	}
	(void)close(trap);
	(void)usleep(300000);
	assert_int_equal(waitpid(control, &status, WNOHANG), 0); /* it sleeps in close() */
	assert_int_equal(kill(control, SIGKILL), 0);
	assert_int_equal(waitpid(control, &status, 0), control);
	(void)close(other);
	(void)close(stranger);

	trap = make_trap(&other, &stranger);
	int64_t begun = vt_clock_now();

	vt_children_shut(&children, &trap, true);
	assert_int_equal(trap, -1);
	assert_true(vt_clock_now() - begun < VT_NS_PER_S);
	assert_true(waitpid(-1, &status, __WALL) > 0); /* who had it last has ended */
	assert_int_equal(send(stranger, "x", 1, MSG_NOSIGNAL), -1);
	(void)close(other);
	(void)close(stranger);
}

static void test_an_empty_socket_is_closed_at_once(void **state)
{
	struct vt_children children = { 0 };
	int pair[2];

	(void)state;
	for (int wary = 0; wary < 2; wary++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		vt_children_shut(&children, &pair[0], wary);
		assert_int_equal(pair[0], -1);
		assert_int_equal(send(pair[1], "x", 1, MSG_NOSIGNAL), -1);
		assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
		(void)close(pair[1]);
	}
	vt_children_shut(&children, &pair[0], true); /* nobody */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_known_one_is_reaped_by_its_owner),
		cmocka_unit_test(test_one_that_lives_is_not_taken),
		cmocka_unit_test(test_a_sweep_reaps_strays_and_keeps_what_is_known),
		cmocka_unit_test(test_forks_without_an_exit_signal_are_left_alone),
		cmocka_unit_test(test_a_pidfd_tells_who_was_swept),
		cmocka_unit_test(test_what_waits_in_a_wary_socket_is_closed_elsewhere),
		cmocka_unit_test(test_an_empty_socket_is_closed_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
