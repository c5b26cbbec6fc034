/* SPDX-License-Identifier: Apache-2.0 */
/* A stream between two pipes: one that the test writes as the command, one that it reads. */
#include "kernel/child_test.h"

#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "base/fd.h"
#include "watch/stream.h"

struct stage {
	struct vt_loop loop;
	struct vt_timer pause;
	struct vt_stream stream;
	int command; /* where the command would write, non-blocking */
	int reader;  /* where the sink's reader would read, non-blocking */
	int sink;
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

static void begin(struct stage *stage, enum vt_sink_kind kind, int64_t cap)
{
	int ends[2], sink[2];

	*stage = (struct stage){ .pause = { .fire = pause_is_over, .owner = stage } };
	stage->fds_before = count_fds();
	assert_int_equal(vt_loop_init(&stage->loop, &stage->err), 0);
	vt_loop_add_timer(&stage->loop, &stage->pause);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(pipe2(sink, O_CLOEXEC), 0);
	assert_int_equal(fcntl(sink[0], F_SETFL, O_NONBLOCK), 0);
	stage->command = ends[1];
	stage->reader = sink[0];
	stage->sink = sink[1];
	const struct vt_sink to = { .kind = kind, .fd = kind == VT_SINK_CAPTURE ? -1 : sink[1] };

	assert_int_equal(
		vt_stream_init(&stage->stream, &stage->loop, &to, cap, ends[0], &stage->err), 0);
}

static void end(struct stage *stage)
{
	vt_stream_done(&stage->stream);
	vt_loop_done(&stage->loop);
	vt_fd_close(&stage->command);
	vt_fd_close(&stage->reader);
	vt_fd_close(&stage->sink);
	assert_int_equal(count_fds(), stage->fds_before);
}

static void say(struct stage *stage, const char *text)
{
	assert_int_equal(write(stage->command, text, strlen(text)), strlen(text));
}

/* What has come out so far. */
static const char *heard(struct stage *stage)
{
	static char text[1 << 20];
	size_t len = 0;
	ssize_t n;

	while ((n = read(stage->reader, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return text;
}

/* Writes until the pipe is full. Returns how much that was. */
static size_t say_all(struct stage *stage)
{
	static const char block[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = write(stage->command, block, sizeof(block))) > 0)
		total += (size_t)n;
	assert_int_equal(errno, EAGAIN);
	return total;
}

static void test_pass(void **state)
{
	struct stage stage;

	(void)state;
	begin(&stage, VT_SINK_PASS, -1);
	say(&stage, "one\n");
	run(&stage);
	assert_string_equal(heard(&stage), "one\n"); /* as it comes */
	say(&stage, "two \033[31m\xff\n");
	run(&stage);
	assert_string_equal(heard(&stage), "two \033[31m\xff\n"); /* and as it is */
	vt_fd_close(&stage.command);
	run(&stage);
	assert_int_equal(stage.stream.pipe.fd, -1);
	vt_stream_finish(&stage.stream, -1);
	assert_string_equal(heard(&stage), "");
	assert_int_equal(stage.stream.failed, 0);
	end(&stage);
}

/* Nothing was read while the cell lived: the end takes what is in the pipe. */
static void test_finish_takes_the_rest(void **state)
{
	struct stage stage;

	(void)state;
	begin(&stage, VT_SINK_PASS, -1);
	say(&stage, "last words");
	/* a writer that lives on is not waited for */
	vt_stream_finish(&stage.stream, -1);
	assert_string_equal(heard(&stage), "last words");
	end(&stage);
}

static void test_capture(void **state)
{
	struct stage stage;
	struct vt_str text;

	(void)state;
	begin(&stage, VT_SINK_CAPTURE, 10);
	say(&stage, "0123456789");
	run(&stage);
	say(&stage, "and so on to the end");
	vt_stream_finish(&stage.stream, -1);
	vt_str_init(&text);
	vt_capture_text(&stage.stream.capture, &text);
	assert_string_equal(text.text, "01234\n[... 20 bytes dropped ...]\ne end");
	assert_int_equal(vt_capture_dropped(&stage.stream.capture), 20);
	assert_string_equal(heard(&stage), "");
	vt_str_done(&text);
	end(&stage);
}

static void test_screen(void **state)
{
	struct stage stage;

	(void)state;
	begin(&stage, VT_SINK_SCREEN, -1);
	say(&stage, "a\033[2Jb\xc3");
	run(&stage);
	assert_string_equal(heard(&stage), "a^[[2Jb");
	say(&stage, "\xa4\xc3"); /* the second half, and another first one that stays alone */
	run(&stage);
	assert_string_equal(heard(&stage), "\xc3\xa4");
	vt_stream_finish(&stage.stream, -1);
	assert_string_equal(heard(&stage), "\\xc3");
	end(&stage);
}

/* The head as it comes, then the count and the tail when all is over. */
static void test_capped_pass(void **state)
{
	struct stage stage;

	(void)state;
	begin(&stage, VT_SINK_PASS, 20);
	say(&stage, "01234");
	run(&stage);
	assert_string_equal(heard(&stage), "01234");
	say(&stage, "56789abcdefghij");
	run(&stage);
	assert_string_equal(heard(&stage), "56789");
	say(&stage, "KLMNOPQRSTUVWXYZ");
	run(&stage);
	assert_string_equal(heard(&stage), "");
	vt_stream_finish(&stage.stream, -1);
	assert_string_equal(heard(&stage), "\n[... 16 bytes dropped ...]\nQRSTUVWXYZ");
	end(&stage);
}

static void test_capped_pass_below_its_cap(void **state)
{
	struct stage stage;

	(void)state;
	begin(&stage, VT_SINK_PASS, 20);
	say(&stage, "0123456789abcdef");
	run(&stage);
	vt_stream_finish(&stage.stream, -1);
	assert_string_equal(heard(&stage), "0123456789abcdef");
	end(&stage);
	begin(&stage, VT_SINK_PASS, 0);
	say(&stage, "anything");
	run(&stage);
	vt_stream_finish(&stage.stream, -1);
	assert_string_equal(heard(&stage), "\n[... 8 bytes dropped ...]\n");
	end(&stage);
}

/* While nobody reads, the command is made to wait, and no memory grows; then it goes on. */
static void test_slow_reader(void **state)
{
	struct stage stage;
	size_t said = 0, took = 0;

	(void)state;
	begin(&stage, VT_SINK_PASS, -1);
	for (int i = 0; i < 10; i++) {
		said += say_all(&stage);
		run(&stage);
	}
	/* two pipes of 64 kB, and what one read takes */
	assert_true(said <= (64 << 10) * 3);
	assert_true(stage.stream.pending.cap <= 512 << 10);
	assert_true(stage.stream.out.added);
	assert_false(stage.stream.pipe.added);
	assert_int_equal(say_all(&stage), 0);
	vt_fd_close(&stage.command);
	while (took < said) {
		char buffer[8192];
		ssize_t n = read(stage.reader, buffer, sizeof(buffer));

		if (n > 0)
			took += (size_t)n;
		else
			run(&stage);
	}
	run(&stage);
	assert_int_equal(took, said);
	assert_int_equal(stage.stream.pipe.fd, -1); /* its end was seen too */
	end(&stage);
}

/* The command gets its SIGPIPE as it would have without anybody in between. */
static void test_reader_leaves(void **state)
{
	struct stage stage;

	(void)state;
	begin(&stage, VT_SINK_PASS, -1);
	say(&stage, "one");
	run(&stage);
	vt_fd_close(&stage.reader);
	say(&stage, "two");
	run(&stage);
	assert_int_equal(stage.stream.failed, -EPIPE);
	assert_int_equal(write(stage.command, "three", 5), -1);
	assert_int_equal(errno, EPIPE);
	vt_stream_finish(&stage.stream, -1);
	end(&stage);
}

static void test_reader_leaves_while_full(void **state)
{
	struct stage stage;

	(void)state;
	begin(&stage, VT_SINK_PASS, -1);
	for (int i = 0; i < 4; i++) {
		(void)say_all(&stage);
		run(&stage);
	}
	assert_true(stage.stream.out.added);
	vt_fd_close(&stage.reader);
	run(&stage);
	assert_int_equal(stage.stream.failed, -EPIPE);
	assert_int_equal(write(stage.command, "more", 4), -1);
	assert_int_equal(errno, EPIPE);
	assert_false(stage.stream.out.added); /* a hang-up is always ready: the loop would spin */
	vt_stream_finish(&stage.stream, -1);
	end(&stage);
}

/* The cell is dead, the reader asleep: only a cancel ends the wait. */
static void test_finish_is_cancelled(void **state)
{
	struct stage stage;
	int cancel[2];

	(void)state;
	begin(&stage, VT_SINK_PASS, -1);
	for (int i = 0; i < 4; i++) {
		(void)say_all(&stage);
		run(&stage);
	}
	assert_int_equal(pipe2(cancel, O_CLOEXEC), 0);
	assert_int_equal(write(cancel[1], "x", 1), 1);
	vt_stream_finish(&stage.stream, cancel[0]);
	assert_int_equal(stage.stream.failed, -EINTR);
	(void)close(cancel[0]);
	(void)close(cancel[1]);
	end(&stage);
}

/* Where the reader is only slow, all of it arrives. */
static void test_finish_waits(void **state)
{
	struct stage stage;
	size_t said = 0;
	int status;

	(void)state;
	begin(&stage, VT_SINK_PASS, -1);
	for (int i = 0; i < 4; i++) {
		said += say_all(&stage);
		run(&stage);
	}
	vt_fd_close(&stage.command);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		size_t took = 0;
		char buffer[8192];
		ssize_t n;

		(void)alarm(20);                       /* there is none before it */
		(void)fcntl(stage.reader, F_SETFL, 0); /* it would show */
		(void)usleep(20000);
		while (took < said && (n = read(stage.reader, buffer, sizeof(buffer))) > 0)
			took += (size_t)n;
		_exit(took == said ? 0 : 1);
	}
	vt_stream_finish(&stage.stream, -1);
	assert_int_equal(stage.stream.pending.len, 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	end(&stage);
}

static void test_file_sink(void **state)
{
	struct stage stage;
	char name[] = "/tmp/vitro-stream-XXXXXX", text[16] = "";
	AUTO_CLOSE int file = mkstemp(name);
	struct vt_stream *stream = &stage.stream;
	const struct vt_sink to = { .kind = VT_SINK_PASS, .fd = file };

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(unlink(name), 0);
	begin(&stage, VT_SINK_CAPTURE, 0);
	/* the same pipe, with another sink */
	int command = fcntl(stream->pipe.fd, F_DUPFD_CLOEXEC, 0);

	vt_stream_done(stream);
	assert_int_equal(vt_stream_init(stream, &stage.loop, &to, -1, command, &stage.err), 0);
	say(&stage, "text");
	run(&stage);
	say(&stage, " more");
	vt_stream_finish(stream, -1);
	assert_int_equal(pread(file, text, 15, 0), 9);
	assert_string_equal(text, "text more");
	end(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pass),
		cmocka_unit_test(test_finish_takes_the_rest),
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_screen),
		cmocka_unit_test(test_capped_pass),
		cmocka_unit_test(test_capped_pass_below_its_cap),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_reader_leaves),
		cmocka_unit_test(test_reader_leaves_while_full),
		cmocka_unit_test(test_finish_is_cancelled),
		cmocka_unit_test(test_finish_waits),
		cmocka_unit_test(test_file_sink),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as whoever passes output on does; it cannot fail */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
