/* SPDX-License-Identifier: Apache-2.0 */
/* A real terminal or file at one end, the occupant's pipe at the other. */
#include "kernel/child_test.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/skip_test.h"
#include "watch/relay.h"

struct stage {
	struct vt_loop loop;
	struct vt_timer pause;
	struct vt_relay relay;
	int keyboard; /* what is written here was typed */
	int terminal;
	int occupant; /* what the occupant reads, non-blocking */
	int fds_before;
	struct vt_err err;
};

static void pause_is_over(struct vt_timer *timer)
{
	struct stage *stage = timer->owner;

	stage->loop.over = true;
}

/* Lets the loop do what there is to do; it must come to rest. */
static void run(struct stage *stage)
{
	struct pollfd busy = { .fd = stage->loop.epoll_fd, .events = POLLIN };

	for (int turn = 0; turn == 0 || poll(&busy, 1, 0) == 1; turn++) {
		assert_true(turn < 1000);
		stage->loop.over = false;
		vt_timer_set(&stage->pause, vt_clock_now() + VT_NS_PER_MS);
		assert_int_equal(vt_loop_run(&stage->loop, &stage->err), 0);
	}
}

/* Relays in_fd to a pipe that the stage reads as the occupant would. */
static int relay_from(struct stage *stage, int in_fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	stage->occupant = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
	return vt_relay_init(&stage->relay, &stage->loop, in_fd, ends[0], ends[1], &stage->err);
}

static int begin_loop(struct stage *stage)
{
	*stage = (struct stage){ .pause = { .fire = pause_is_over, .owner = stage },
				 .keyboard = -1,
				 .terminal = -1,
				 .occupant = -1 };
	stage->fds_before = count_fds();
	if (vt_loop_init(&stage->loop, &stage->err) < 0)
		return -1;
	vt_loop_add_timer(&stage->loop, &stage->pause);
	return 0;
}

static int begin(void **state)
{
	static struct stage stage;

	*state = &stage;
	if (begin_loop(&stage) < 0 ||
	    openpty(&stage.keyboard, &stage.terminal, NULL, NULL, NULL) < 0)
		return -1;
	return relay_from(&stage, stage.terminal);
}

static int end(void **state)
{
	struct stage *stage = *state;

	vt_relay_done(&stage->relay);
	vt_relay_done(&stage->relay); /* twice is fine */
	vt_loop_done(&stage->loop);
	vt_fd_close(&stage->keyboard);
	vt_fd_close(&stage->terminal);
	vt_fd_close(&stage->occupant);
	return count_fds() == stage->fds_before ? 0 : -1;
}

/* The kernel hands on what was typed a little later. */
static void await(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&ready, 1, 20000), 1);
}

static void type(struct stage *stage, const char *text)
{
	assert_int_equal(write(stage->keyboard, text, strlen(text)), strlen(text));
	if (strpbrk(text, "\n\004"))
		await(stage->terminal);
}

static void check_gets(struct stage *stage, const char *wanted)
{
	char text[64] = "";
	ssize_t n = read(stage->occupant, text, sizeof(text) - 1);

	assert_int_equal(n, strlen(wanted));
	assert_string_equal(text, wanted);
}

static void test_lines(void **state)
{
	struct stage *stage = *state;
	char byte;

	type(stage, "one\n");
	run(stage);
	check_gets(stage, "one\n");
	type(stage, "two\nthree");
	run(stage);
	check_gets(stage, "two\n"); /* the terminal keeps a line until it is one */
	assert_int_equal(read(stage->occupant, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	type(stage, "\n");
	run(stage);
	check_gets(stage, "three\n");
}

/* ^D at the start of a line is the end of the input, for the occupant too. */
static void test_end_of_input(void **state)
{
	struct stage *stage = *state;

	type(stage, "bye\n\004");
	run(stage);
	check_gets(stage, "bye\n");
	check_gets(stage, "");
	assert_int_equal(stage->relay.out.fd, -1);
	assert_false(stage->relay.in.added);
	/* the terminal was borrowed */
	assert_true(fcntl(stage->terminal, F_GETFD) >= 0);
}

static void test_terminal_hangs_up(void **state)
{
	struct stage *stage = *state;

	vt_fd_close(&stage->keyboard);
	run(stage);
	check_gets(stage, "");
	assert_false(stage->relay.in.added); /* a hang-up is always ready: the loop would spin */
}

/* An occupant that reads no input does not make the supervisor hold more of it than one piece. */
static void test_occupant_does_not_read(void **state)
{
	struct stage *stage = *state;
	char line[512], buffer[4096];
	int64_t deadline = vt_clock_now() + 20 * VT_NS_PER_S;
	size_t typed = 0, got = 0;
	ssize_t n;

	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	assert_int_equal(fcntl(stage->keyboard, F_SETFL, O_NONBLOCK), 0);
	while (!stage->relay.out.added) {
		assert_true(vt_clock_now() < deadline);
		n = write(stage->keyboard, line, sizeof(line));
		typed += n > 0 ? (size_t)n : 0;
		while (read(stage->keyboard, buffer, sizeof(buffer)) > 0)
			; /* the echo */
		run(stage);
	}
	assert_true(typed > 60000); /* what the pipe holds, but for the last page */
	assert_false(stage->relay.in.added);
	while (!stage->relay.in.added) {
		assert_true(vt_clock_now() < deadline);
		got += read(stage->occupant, buffer, sizeof(buffer)) > 0;
		run(stage);
	}
	assert_true(got > 0); /* only then does it listen again */
	assert_false(stage->relay.out.added);
}

/* The relay keeps an end of the pipe: nobody is told by a signal, and the call goes on. */
static void test_occupant_leaves(void **state)
{
	struct stage *stage = *state;

	vt_fd_close(&stage->occupant);
	type(stage, "nobody reads this\n");
	run(stage);
	type(stage, "nor this\n");
	run(stage);
	assert_true(stage->relay.in.added);
}

/* The terminal's description is shared with others, whose reads would block no more. */
static void test_terminal_is_left_as_it_was(void **state)
{
	struct stage *stage = *state;

	assert_false(fcntl(stage->terminal, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(stage->relay.in.fd, F_GETFL) & O_NONBLOCK);
	/* somebody else reads first what was typed: nothing comes, and nothing blocks */
	type(stage, "stolen\n");
	char text[16] = "";

	assert_int_equal(read(stage->terminal, text, sizeof(text) - 1), 7);
	run(stage);
	type(stage, "ours\n");
	run(stage);
	check_gets(stage, "ours\n");
}

/* ---- files --------------------------------------------------------------------------------- */

/* A file of n bytes, whose place is at its start. */
static int make_file(size_t n)
{
	char name[] = "/tmp/vitro-relay-XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(pwrite(fd, &"0123456789"[i % 10], 1, (off_t)i), 1);
	return fd;
}

static size_t take(struct stage *stage, size_t n)
{
	char buffer[4096];
	size_t got = 0;

	for (int idle = 0; got < n && idle < 3;) {
		size_t wanted = n - got < sizeof(buffer) ? n - got : sizeof(buffer);
		ssize_t len = read(stage->occupant, buffer, wanted);

		for (ssize_t i = 0; i < len; i++)
			assert_int_equal(buffer[i], "0123456789"[(got + (size_t)i) % 10]);
		got += len > 0 ? (size_t)len : 0;
		idle = len > 0 ? 0 : idle + 1;
		if (len == 0)
			break;
		if (len < 0)
			run(stage);
	}
	return got;
}

/* Of a file of `size` bytes the occupant reads `read`; then that is where the next one goes on. */
static void check_file(size_t size, size_t read, size_t place)
{
	struct stage stage;
	void *state = &stage;
	AUTO_CLOSE int file = make_file(size);

	assert_int_equal(begin_loop(&stage), 0);
	assert_int_equal(relay_from(&stage, file), 0);
	run(&stage);
	assert_int_equal(take(&stage, read), read < size ? read : size);
	vt_relay_done(&stage.relay);
	assert_int_equal(lseek(file, 0, SEEK_CUR), place);
	assert_int_equal(end(&state), 0);
}

static void test_file(void **state)
{
	(void)state;
	check_file(0, 1, 0);
	check_file(1000, 2000, 1000); /* all of it, and its end */
	check_file(1000, 0, 0);       /* nothing at all */
	check_file(1000, 30, 30);
	check_file(200000, 5, 5); /* more than a pipe holds */
	check_file(200000, 190000, 190000);
	check_file(200000, 300000, 200000);
}

/* ---- edges --------------------------------------------------------------------------------- */

static void test_never_begun(void **state)
{
	struct vt_relay relay = { 0 };

	(void)state;
	vt_relay_done(&relay);
	assert_null(relay.loop);
}

/* What cannot be watched is an error, and the pipe is closed with it. */
static void test_cannot_be_watched(void **state)
{
	struct stage stage;
	void *arg = &stage;

	(void)state;
	assert_int_equal(begin_loop(&stage), 0);
	assert_true(relay_from(&stage, -1) < 0);
	assert_int_equal(stage.err.step, VT_STEP_WATCH);
	assert_int_equal(end(&arg), 0);
}

/* To open the master of a terminal anew is to make another terminal, where nobody ever types. */
static void test_master(void **state)
{
	struct stage stage;
	void *arg = &stage;

	(void)state;
	assert_int_equal(begin_loop(&stage), 0);
	assert_int_equal(openpty(&stage.keyboard, &stage.terminal, NULL, NULL, NULL), 0);
	assert_int_equal(relay_from(&stage, stage.keyboard), 0);
	assert_int_equal(write(stage.terminal, "hello", 5), 5);
	await(stage.keyboard);
	run(&stage);
	check_gets(&stage, "hello");
	assert_int_equal(end(&arg), 0);
}

/* ---- descriptions that others read too ----------------------------------------------------- */

/* Poll says that there is input, and somebody else has read it by the time we do. */
static void check_stolen(struct stage *stage, int writer)
{
	int reader = stage->relay.in.fd;

	assert_false(stage->relay.own);
	assert_false(fcntl(reader, F_GETFL) & O_NONBLOCK);
	assert_true(stage->relay.in.added);
	(void)alarm(20); /* else a read that waits would wait for ever */
	stage->relay.in.ready(&stage->relay.in, EPOLLIN);
	(void)alarm(0);
	assert_true(stage->relay.in.added);
	assert_int_equal(write(writer, "ours", 4), 4);
	run(stage);
	check_gets(stage, "ours");
}

static void test_socket(void **state)
{
	struct stage stage;
	void *arg = &stage;

	(void)state;
	assert_int_equal(begin_loop(&stage), 0);
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	stage.keyboard = ends[0];
	stage.terminal = ends[1];
	assert_int_equal(relay_from(&stage, ends[1]), 0);
	check_stolen(&stage, ends[0]);
	vt_fd_close(&stage.keyboard);
	run(&stage);
	check_gets(&stage, "");
	assert_int_equal(stage.relay.out.fd, -1);
	assert_int_equal(end(&arg), 0);
}

/* A pipe of which no description of one's own can be had. */
static void test_pipe_that_is_shared(void **state)
{
	struct stage stage;
	void *arg = &stage;
	struct rlimit before, none;
	int ends[2], occupant[2];
	char byte;

	(void)state;
	assert_int_equal(begin_loop(&stage), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	stage.keyboard = ends[1];
	stage.terminal = ends[0];
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	assert_int_equal(preadv2(ends[0], &iov, 1, -1, RWF_NOWAIT), -1);
	if (errno == EOPNOTSUPP) {
		assert_int_equal(end(&arg), 0);
		SKIP("this kernel's pipes can only be read with patience");
	}
	assert_int_equal(pipe2(occupant, O_CLOEXEC | O_NONBLOCK), 0);
	stage.occupant = fcntl(occupant[0], F_DUPFD_CLOEXEC, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int r = vt_relay_init(&stage.relay, &stage.loop, ends[0], occupant[0], occupant[1],
			      &stage.err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(r, 0);
	check_stolen(&stage, ends[1]);
	assert_int_equal(end(&arg), 0);
}

#define STAGED(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGED(test_lines),
		STAGED(test_end_of_input),
		STAGED(test_terminal_hangs_up),
		STAGED(test_occupant_does_not_read),
		STAGED(test_occupant_leaves),
		STAGED(test_terminal_is_left_as_it_was),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_never_begun),
		cmocka_unit_test(test_cannot_be_watched),
		cmocka_unit_test(test_master),
		cmocka_unit_test(test_socket),
		cmocka_unit_test(test_pipe_that_is_shared),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as whoever relays does; it cannot fail */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
