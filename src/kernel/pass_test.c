/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/child_test.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "kernel/pass.h"

struct letter {
	int number;
	char text[60];
};

static struct vt_err err;

static void make_pair(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void test_message_and_descriptors_arrive(void **state)
{
	const struct letter sent = { 7, "seven" };
	struct letter got;
	int pair[2], pipe_fds[2], fds[3];

	(void)state;
	make_pair(pair);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(vt_pass_send(pair[0], &sent, sizeof(sent), pipe_fds, 2, &err), 0);
	assert_int_equal(vt_pass_take(pair[1], &got, sizeof(got), fds, 3, 0, &err), 1);
	assert_memory_equal(&got, &sent, sizeof(got));
	assert_int_equal(fds[2], -1);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(read(pipe_fds[0], &got, 1), 1);
	for (size_t i = 0; i < 2; i++) {
		vt_fd_close(&fds[i]);
		vt_fd_close(&pipe_fds[i]);
		vt_fd_close(&pair[i]);
	}
}

static void test_nothing_there_and_nobody_there(void **state)
{
	struct letter letter = { 0 };
	int pair[2], fd;

	(void)state;
	make_pair(pair);
	assert_int_equal(vt_pass_take(pair[1], &letter, sizeof(letter), &fd, 1, MSG_DONTWAIT, &err),
			 0);
	vt_fd_close(&pair[0]);
	assert_int_equal(vt_pass_take(pair[1], &letter, sizeof(letter), &fd, 1, 0, &err), -EPIPE);
	assert_int_equal(vt_pass_send(pair[1], &letter, sizeof(letter), NULL, 0, &err), -EPIPE);
	vt_fd_close(&pair[1]);
}

/* Who left a message unread is as gone as any other: the kernel says ECONNRESET, once. */
static void test_unread_is_nobody_there(void **state)
{
	struct letter letter = { 0 };
	int pair[2];

	(void)state;
	make_pair(pair);
	assert_int_equal(vt_pass_send(pair[1], &letter, sizeof(letter), NULL, 0, &err), 0);
	vt_fd_close(&pair[0]);
	assert_int_equal(vt_pass_send(pair[1], &letter, sizeof(letter), NULL, 0, &err), -EPIPE);
	vt_fd_close(&pair[1]);
}

/* A message of another size is none of ours, and what came with it is closed. */
static void test_wrong_size_leaves_nothing(void **state)
{
	struct letter letter = { 0 };
	int pair[2], fds[2];

	(void)state;
	make_pair(pair);
	int before = count_fds();

	assert_int_equal(vt_pass_send(pair[0], &letter, 5, pair, 2, &err), 0);
	assert_int_equal(vt_pass_take(pair[1], &letter, sizeof(letter), fds, 2, 0, &err), -EBADMSG);
	assert_int_equal(fds[0], -1);
	assert_int_equal(vt_pass_send(pair[0], &letter, 0, pair, 2, &err), 0);
	assert_int_equal(vt_pass_take(pair[1], &letter, sizeof(letter), fds, 1, 0, &err), -EPIPE);
	assert_int_equal(fds[0], -1);
	assert_int_equal(vt_pass_send(pair[0], &letter, sizeof(letter), pair, 2, &err), 0);
	assert_int_equal(vt_pass_take(pair[1], &letter, sizeof(letter), fds, 1, 0, &err), 1);
	vt_fd_close(&fds[0]);
	assert_int_equal(count_fds(), before);
	vt_fd_close(&pair[0]);
	vt_fd_close(&pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_message_and_descriptors_arrive),
		cmocka_unit_test(test_nothing_there_and_nobody_there),
		cmocka_unit_test(test_unread_is_nobody_there),
		cmocka_unit_test(test_wrong_size_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
