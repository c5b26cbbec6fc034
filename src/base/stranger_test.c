/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stranger.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/skip_test.h"

/* Strangers' end is 0. */
struct pair {
	int ends[2];
};

static int setup(void **state)
{
	static struct pair pair;

	*state = &pair;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.ends);
}

static int teardown(void **state)
{
	struct pair *pair = *state;

	vt_fd_close(&pair->ends[0]);
	vt_fd_close(&pair->ends[1]);
	return 0;
}

/* A byte with a descriptor. Returns 0 or the errno. */
static int send_with(int fd, int passed, int flags)
{
	char byte = 0;
	struct iovec part = { &byte, 1 };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), &passed, sizeof(passed));
	return sendmsg(fd, &message, flags) == 1 ? 0 : errno;
}

static bool is_closed(int reading)
{
	struct pollfd end = { .fd = reading, .events = POLLIN };

	return poll(&end, 1, 0) == 1 && end.revents & POLLHUP;
}

static void test_bytes_alone(void **state)
{
	const struct pair *pair = *state;
	char bytes[8];

	assert_int_equal(vt_stranger_recv(pair->ends[1], bytes, 8, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(send(pair->ends[0], "0123456789", 10, 0), 10);
	assert_int_equal(vt_stranger_recv(pair->ends[1], bytes, 8, MSG_DONTWAIT), 8);
	assert_memory_equal(bytes, "01234567", 8);
	assert_int_equal(vt_stranger_recv(pair->ends[1], bytes, 8, MSG_DONTWAIT), 2);
	assert_memory_equal(bytes, "89", 2);
	vt_fd_close((int *)&pair->ends[0]);
	assert_int_equal(vt_stranger_recv(pair->ends[1], bytes, 8, MSG_DONTWAIT), 0);
}

/* Neither taken nor closed, wherever it is among the bytes. */
static void test_descriptors_stay(void **state)
{
	const struct pair *pair = *state;
	char bytes[8];

	vt_stranger_watch(pair->ends[1]);
	for (int flags = 0; flags <= MSG_OOB; flags += MSG_OOB) {
		int end[2], pipe_fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end), 0);
		vt_stranger_watch(end[1]);
		assert_int_equal(pipe(pipe_fds), 0);
		assert_int_equal(send(end[0], "before", 6, 0), 6);
		assert_int_equal(send_with(end[0], pipe_fds[1], flags), 0);
		assert_int_equal(send(end[0], "behind", 6, 0), 6);
		vt_fd_close(&pipe_fds[1]);
		ssize_t got, all = 0;

		/* A look sees the first byte behind what it was asked for, too. */
		while ((got = vt_stranger_recv(end[1], bytes, 3, MSG_DONTWAIT)) > 0)
			all += got;
		assert_in_range(all, 0, 6);
		assert_int_equal(got, -1);
		assert_int_equal(errno, EBADMSG);
		assert_false(is_closed(pipe_fds[0]));
		/* The control: with recv() it is closed. */
		while (recv(end[1], bytes, 8, MSG_DONTWAIT) > 0)
			;
		assert_true(is_closed(pipe_fds[0]));
		vt_fd_close(&pipe_fds[0]);
		vt_fd_close(&end[0]);
		vt_fd_close(&end[1]);
	}
}

static void test_barred(void **state)
{
	const struct pair *pair = *state;

	assert_int_equal(send_with(pair->ends[0], 0, 0), 0); /* the control */
	if (vt_stranger_bar(pair->ends[1]) < 0)
		SKIP("the kernel has no SO_PASSRIGHTS");
	assert_int_equal(send_with(pair->ends[0], 0, 0), EPERM);
	assert_int_equal(send_with(pair->ends[0], 0, MSG_OOB), EPERM);
	assert_int_equal(send_with(pair->ends[1], 0, 0), 0); /* the other way */
	/* What came before is there still. */
	assert_true(vt_stranger_meet(pair->ends[0]));
}

static void test_nothing_came_before(void **state)
{
	const struct pair *pair = *state;

	if (vt_stranger_meet(pair->ends[1]))
		SKIP("the kernel has no SO_PASSRIGHTS");
	assert_int_equal(send_with(pair->ends[0], 0, 0), EPERM);
	assert_false(vt_stranger_meet(pair->ends[1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bytes_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_descriptors_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(test_barred, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_came_before, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
