/* SPDX-License-Identifier: Apache-2.0 */
#include "base/frame.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LARGE = 3 << 20 };

/* Two ends, a writer at the first and a reader at the second. */
struct pair {
	int ends[2];
	struct vt_frames_out out;
	struct vt_frames_in in;
	struct vt_err err;
};

static int set_up(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	assert_non_null(pair);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair->ends), 0);
	vt_frames_out_init(&pair->out, SIZE_MAX);
	vt_frames_in_init(&pair->in, SIZE_MAX);
	*state = pair;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *pair = *state;

	vt_frames_out_done(&pair->out);
	vt_frames_in_done(&pair->in);
	for (int i = 0; i < 2; i++)
		if (pair->ends[i] >= 0)
			assert_int_equal(close(pair->ends[i]), 0);
	free(pair);
	return 0;
}

static int put(struct pair *pair, const char *head, const void *body, size_t body_len)
{
	return vt_frames_put(&pair->out, pair->ends[0], head, strlen(head), body, body_len,
			     &pair->err);
}

static ssize_t take_in(struct pair *pair)
{
	return vt_frames_read(&pair->in, pair->ends[1], &pair->err);
}

static int next(struct pair *pair, struct vt_frame *frame)
{
	return vt_frames_next(&pair->in, frame, &pair->err);
}

/* Bytes as an other side sends them that has rules of its own. */
static void send_raw(struct pair *pair, const void *bytes, size_t len)
{
	assert_int_equal(send(pair->ends[0], bytes, len, 0), len);
}

static void close_end(struct pair *pair, int end)
{
	assert_int_equal(close(pair->ends[end]), 0);
	pair->ends[end] = -1;
}

static void assert_frame(struct pair *pair, const char *head, const char *body)
{
	struct vt_frame frame;

	assert_int_equal(next(pair, &frame), 1);
	assert_int_equal(frame.head_len, strlen(head));
	assert_memory_equal(frame.head, head, frame.head_len);
	assert_int_equal(frame.body_len, strlen(body));
	assert_memory_equal(frame.body, body, frame.body_len);
}

static void test_the_bytes_of_a_frame(void **state)
{
	static const char bytes[] = "\x07\0\0\0\x05\0\0\0HEAD!bo";
	struct pair *pair = *state;
	char got[32];

	assert_int_equal(put(pair, "HEAD!", "bo", 2), 1);
	assert_int_equal(recv(pair->ends[1], got, sizeof(got), MSG_DONTWAIT), sizeof(bytes) - 1);
	assert_memory_equal(got, bytes, sizeof(bytes) - 1);
}

static void test_many_in_one_read(void **state)
{
	struct pair *pair = *state;
	struct vt_frame frame;

	assert_int_equal(take_in(pair), 0);
	assert_int_equal(next(pair, &frame), 0);
	assert_int_equal(put(pair, "one", "1", 1), 1);
	assert_int_equal(put(pair, "", NULL, 0), 1);
	assert_int_equal(put(pair, "three", NULL, 0), 1);
	assert_int_equal(vt_frames_put(&pair->out, pair->ends[0], NULL, 0, "four", 4, &pair->err),
			 1);
	assert_int_equal(vt_frames_queued(&pair->out), 0);
	assert_int_equal(take_in(pair), 4 * VT_FRAME_PREFIX + 13);
	assert_frame(pair, "one", "1");
	assert_frame(pair, "", "");
	assert_frame(pair, "three", "");
	assert_frame(pair, "", "four");
	assert_int_equal(next(pair, &frame), 0);
	assert_int_equal(take_in(pair), 0);
}

static void test_byte_by_byte(void **state)
{
	static const char bytes[] = "\x07\0\0\0\x05\0\0\0HEAD!bo\x01\0\0\0\x01\0\0\0x";
	struct pair *pair = *state;
	struct vt_frame frame;

	for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
		assert_int_equal(next(pair, &frame), 0);
		send_raw(pair, bytes + i, 1);
		assert_int_equal(take_in(pair), 1);
		if (i == 14)
			assert_frame(pair, "HEAD!", "bo");
	}
	assert_frame(pair, "x", "");
	assert_int_equal(next(pair, &frame), 0);
}

/* A frame whose end comes later is finished where it lies, or moved to the front if it must. */
static void test_a_frame_across_the_end_of_the_buffer(void **state)
{
	struct pair *pair = *state;
	struct vt_frame frame;
	static char body[30000];
	size_t whole = VT_FRAME_PREFIX + 1 + sizeof(body);

	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (char)(i * 7);
	for (int i = 0; i < 5; i++)
		assert_int_equal(put(pair, "h", body, sizeof(body)), 1);
	assert_int_equal(take_in(pair), VT_FRAMES_IDLE);
	const char *buf = pair->in.buf;

	for (size_t seen = 0; seen < 5; seen++) {
		int status = next(pair, &frame);

		if (status == 0) {
			assert_true(take_in(pair) > 0);
			status = next(pair, &frame);
		}
		assert_int_equal(status, 1);
		assert_int_equal(frame.body_len, sizeof(body));
		assert_memory_equal(frame.body, body, sizeof(body));
		/* Two fit; the third began behind them, and lies at the front now. */
		if (seen == 2)
			assert_ptr_equal(frame.head, buf + VT_FRAME_PREFIX);
		if (seen == 3)
			assert_ptr_equal(frame.head, buf + VT_FRAME_PREFIX + whole);
	}
	assert_int_equal(pair->in.cap, VT_FRAMES_IDLE);
	assert_ptr_equal(pair->in.buf, buf);
}

/* In the steady state a frame costs neither memory nor moves: it is always at the front. */
static void test_small_frames_use_one_place(void **state)
{
	struct pair *pair = *state;
	struct vt_frame frame;

	assert_int_equal(put(pair, "a", "b", 1), 1);
	assert_int_equal(take_in(pair), VT_FRAME_PREFIX + 2);
	const char *buf = pair->in.buf;

	for (int i = 0; i < 10000; i++) {
		assert_int_equal(next(pair, &frame), 1);
		assert_ptr_equal(frame.head, buf + VT_FRAME_PREFIX);
		assert_int_equal(put(pair, "a", "b", 1), 1);
		assert_int_equal(take_in(pair), VT_FRAME_PREFIX + 2);
	}
	assert_null(pair->out.buf);
}

static void test_bad_sizes(void **state)
{
	static const struct {
		const char prefix[9];
		int status;
		const char *what;
	} cases[] = {
		{ "\x04\0\0\0\x05\0\0\0", -EBADMSG, "a frame of 4 bytes claims a head of 5" },
		{ "\0\0\0\0\xff\xff\xff\xff", -EBADMSG,
		  "a frame of 0 bytes claims a head of 4294967295" },
		{ "\0\0\2\0\1\0\1\0", -EMSGSIZE,
		  "the head of a frame has 65537 bytes; 65536 is the most" },
		{ "\1\0\0\x40\0\0\1\0", -EMSGSIZE,
		  "a frame has 1073741825 bytes; 1073741824 is the most here" },
		{ "\xff\xff\xff\xff\0\0\0\0", -EMSGSIZE,
		  "a frame has 4294967295 bytes; 1073741824 is the most here" },
	};
	struct pair *pair = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vt_frame frame = { .head_len = 77 };

		vt_frames_in_done(&pair->in);
		send_raw(pair, cases[i].prefix, VT_FRAME_PREFIX);
		assert_int_equal(take_in(pair), VT_FRAME_PREFIX);
		/* It stays, whoever asks. */
		for (int again = 0; again < 2; again++) {
			assert_int_equal(next(pair, &frame), cases[i].status);
			assert_string_equal(pair->err.what, cases[i].what);
			assert_int_equal(pair->err.step, VT_STEP_WIRE);
			assert_int_equal(take_in(pair), cases[i].status);
		}
		assert_int_equal(frame.head_len, 77);
		assert_int_equal(pair->in.cap, VT_FRAMES_IDLE);
	}
}

static void test_the_bound_of_the_owner(void **state)
{
	struct pair *pair = *state;
	struct vt_frame frame;

	vt_frames_in_init(&pair->in, 10);
	assert_int_equal(put(pair, "head", "123456", 6), 1);
	assert_int_equal(put(pair, "head", "1234567", 7), 1);
	assert_true(take_in(pair) > 0);
	assert_frame(pair, "head", "123456");
	assert_int_equal(next(pair, &frame), -EMSGSIZE);
	assert_string_equal(pair->err.what, "a frame has 11 bytes; 10 is the most here");
}

/* A claimed GiB costs what came of it, at most twice, and is all given back. */
static void test_memory_follows_what_came(void **state)
{
	static const char prefix[] = "\0\0\0\x40\x04\0\0\0";
	static char bytes[50000];
	struct pair *pair = *state;
	struct vt_frame frame;
	size_t came = VT_FRAME_PREFIX;

	send_raw(pair, prefix, VT_FRAME_PREFIX);
	assert_int_equal(take_in(pair), VT_FRAME_PREFIX);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(next(pair, &frame), 0);
		assert_true(pair->in.cap <= VT_FRAMES_IDLE || pair->in.cap <= 2 * came);
		send_raw(pair, bytes, sizeof(bytes));
		for (size_t left = sizeof(bytes); left > 0;) {
			ssize_t got = take_in(pair);

			assert_true(got > 0);
			left -= (size_t)got;
			came += (size_t)got;
		}
	}
	close_end(pair, 0);
	assert_int_equal(take_in(pair), -EPIPE);
	assert_string_equal(pair->err.what, "the other side is gone, within a frame");
	vt_frames_in_done(&pair->in);
	assert_null(pair->in.buf);
}

static void test_a_large_frame_leaves_nothing_behind(void **state)
{
	const size_t size = (size_t)5 << 20;
	char *body = malloc(size);
	struct pair *pair = *state;
	struct vt_frame frame;

	assert_non_null(body);
	for (size_t i = 0; i < size; i++)
		body[i] = (char)(i * i >> 3);
	assert_int_equal(put(pair, "large", body, size), 0);
	assert_int_equal(put(pair, "small", "after", 5), 0);
	int got;

	while ((got = next(pair, &frame)) == 0) {
		assert_true(vt_frames_flush(&pair->out, pair->ends[0], &pair->err) >= 0);
		assert_true(take_in(pair) > 0);
	}
	assert_int_equal(got, 1);
	assert_int_equal(frame.body_len, size);
	assert_memory_equal(frame.body, body, size);
	assert_int_equal(pair->in.cap, VT_FRAME_PREFIX + 5 + size + 1);
	/* Without a further read: a client may be silent for hours now. */
	assert_int_equal(next(pair, &frame), 0);
	assert_null(pair->in.buf);
	assert_int_equal(vt_frames_flush(&pair->out, pair->ends[0], &pair->err), 1);
	assert_null(pair->out.buf);
	assert_true(take_in(pair) > 0);
	assert_frame(pair, "small", "after");
	assert_int_equal(pair->in.cap, VT_FRAMES_IDLE);
	free(body);
}

/* Who trusts the other side takes what was promised for what will come. */
static void test_memory_for_what_was_promised(void **state)
{
	static const char prefix[] = "\0\0\0\x04\x04\0\0\0";
	static char bytes[VT_FRAMES_IDLE];
	struct pair *pair = *state;

	pair->in.trusting = true;
	send_raw(pair, prefix, VT_FRAME_PREFIX);
	assert_int_equal(take_in(pair), VT_FRAME_PREFIX);
	assert_int_equal(pair->in.cap, VT_FRAMES_IDLE);
	send_raw(pair, bytes, sizeof(bytes));
	while (take_in(pair) > 0)
		;
	assert_true(pair->in.cap > VT_FRAME_PREFIX + ((size_t)64 << 20));
	assert_true(pair->in.cap < (size_t)67 << 20);
	vt_frames_in_done(&pair->in);
	assert_null(pair->in.buf);
	assert_true(pair->in.trusting);
}

/* A large frame is had with its buffer, whatever follows it; a small one is not. */
static void test_taking_the_buffer(void **state)
{
	struct pair *pair = *state;
	size_t size = 3 * VT_FRAMES_IDLE;
	char *body = calloc(1, size);
	struct vt_frame frame;

	assert_non_null(body);
	assert_null(vt_frames_take(&pair->in, NULL));
	assert_int_equal(put(pair, "small", "1", 1), 1);
	assert_true(take_in(pair) > 0);
	assert_int_equal(next(pair, &frame), 1);
	assert_null(vt_frames_take(&pair->in, NULL));
	assert_true(put(pair, "large", body, size) >= 0);
	assert_true(put(pair, "after", NULL, 0) >= 0);
	while (next(pair, &frame) == 0) {
		assert_true(vt_frames_flush(&pair->out, pair->ends[0], &pair->err) >= 0);
		assert_true(take_in(pair) >= 0);
	}
	assert_int_equal(frame.body_len, size);
	char *taken = vt_frames_take(&pair->in, NULL);

	assert_non_null(taken);
	assert_int_equal(pair->in.cap, 0);
	assert_true(frame.body >= taken);
	frame.body[frame.body_len] = '\0'; /* there is room */
	assert_memory_equal(frame.body, body, size);
	free(taken);
	while (next(pair, &frame) == 0)
		assert_true(take_in(pair) >= 0);
	assert_memory_equal(frame.head, "after", 5);
	free(body);
}

static void test_the_end(void **state)
{
	struct pair *pair = *state;
	struct vt_frame frame;

	assert_int_equal(put(pair, "last", "words", 5), 1);
	close_end(pair, 0);
	assert_true(take_in(pair) > 0);
	assert_frame(pair, "last", "words");
	assert_int_equal(next(pair, &frame), 0);
	assert_int_equal(take_in(pair), -EPIPE);
	assert_string_equal(pair->err.what, "the other side is gone");
}

/* The other side goes without having read what was sent to it: that is an end like any other. */
static void test_a_reset_is_an_end(void **state)
{
	struct pair *pair = *state;

	assert_int_equal(send(pair->ends[1], "x", 1, 0), 1);
	close_end(pair, 0);
	assert_int_equal(take_in(pair), -EPIPE);
	assert_string_equal(pair->err.what, "the other side is gone");
}

static void test_nobody_takes_the_frames(void **state)
{
	static char body[8192];
	struct pair *pair = *state;

	assert_int_equal(put(pair, "", "01234567", 8), 1);
	for (size_t i = 0; i < VT_FRAMES_IDLE; i += sizeof(body))
		assert_int_equal(put(pair, "", body, sizeof(body)), 1);
	ssize_t got;

	while ((got = take_in(pair)) > 0)
		;
	assert_int_equal(got, -ENOBUFS);
	assert_int_equal(pair->in.cap, VT_FRAMES_IDLE);
	assert_frame(pair, "", "01234567");
}

static void test_what_the_socket_does_not_take_waits(void **state)
{
	static char body[3000];
	struct pair *pair = *state;
	struct vt_frame frame;
	uint32_t sent = 0, seen = 0;

	/* Not even a first byte of the last ones fits. */
	while (vt_frames_queued(&pair->out) < 100000) {
		memcpy(body, &sent, sizeof(sent));
		int status = put(pair, "head", body, 4 + sent++ % 2996);

		assert_int_equal(status, vt_frames_queued(&pair->out) == 0);
	}
	assert_int_equal(vt_frames_flush(&pair->out, pair->ends[0], &pair->err), 0);
	int flushed = 0;

	while (seen < sent) {
		int status = next(pair, &frame);

		assert_true(status >= 0);
		if (status == 0) {
			flushed = vt_frames_flush(&pair->out, pair->ends[0], &pair->err);
			assert_true(flushed >= 0);
			assert_true(take_in(pair) > 0);
			continue;
		}
		assert_int_equal(frame.head_len, 4);
		assert_int_equal(frame.body_len, 4 + seen % 2996);
		assert_memory_equal(frame.body, &seen, sizeof(seen));
		seen++;
	}
	assert_int_equal(flushed, 1);
	assert_int_equal(vt_frames_queued(&pair->out), 0);
	assert_true(pair->out.cap <= VT_FRAMES_IDLE);
}

static void test_the_queue_is_bounded(void **state)
{
	const size_t max = 1 << 20;
	static char body[200000];
	struct pair *pair = *state;
	struct vt_frame frame;
	int status, taken = 0, seen = 0;

	vt_frames_out_init(&pair->out, max);
	while ((status = put(pair, "h", body, sizeof(body))) >= 0)
		taken++;
	assert_int_equal(status, -ENOBUFS);
	assert_non_null(strstr(pair->err.what, "bytes wait for the other side"));
	assert_in_range(vt_frames_queued(&pair->out), max + 1, max + 9 + sizeof(body));
	/* It was refused whole: what was taken comes, and the next one after it. */
	do {
		status = next(pair, &frame);
		if (status == 0) {
			assert_true(vt_frames_flush(&pair->out, pair->ends[0], &pair->err) >= 0);
			assert_true(take_in(pair) >= 0);
		}
		seen += status;
	} while (seen < taken);
	assert_int_equal(vt_frames_queued(&pair->out), 0);
	assert_int_equal(put(pair, "next", "", 0), 1);
	assert_int_equal(next(pair, &frame), 0);
	assert_true(take_in(pair) > 0);
	assert_frame(pair, "next", "");
}

static void test_too_large_to_send(void **state)
{
	struct pair *pair = *state;
	struct vt_frame frame;

	/* Refused by their sizes: nothing is read of either. */
	assert_int_equal(vt_frames_put(&pair->out, pair->ends[0], "", VT_FRAME_HEAD_MAX + 1, "", 0,
				       &pair->err),
			 -EMSGSIZE);
	assert_int_equal(
		vt_frames_put(&pair->out, pair->ends[0], "", 1, "", VT_FRAME_MAX, &pair->err),
		-EMSGSIZE);
	assert_int_equal(vt_frames_put(&pair->out, pair->ends[0], "", 0, "", SIZE_MAX, &pair->err),
			 -EMSGSIZE);
	assert_int_equal(put(pair, "fine", "", 0), 1);
	assert_true(take_in(pair) > 0);
	assert_frame(pair, "fine", "");
	assert_int_equal(next(pair, &frame), 0);
}

static void test_the_longest_head(void **state)
{
	char *head = calloc(1, VT_FRAME_HEAD_MAX);
	struct pair *pair = *state;
	struct vt_frame frame;

	assert_non_null(head);
	assert_int_equal(vt_frames_put(&pair->out, pair->ends[0], head, VT_FRAME_HEAD_MAX, NULL, 0,
				       &pair->err),
			 1);
	while (take_in(pair) > 0)
		;
	assert_int_equal(next(pair, &frame), 1);
	assert_int_equal(frame.head_len, VT_FRAME_HEAD_MAX);
	free(head);
}

/* SIGPIPE has its default action here, and would end the test. */
static void test_sending_to_nobody(void **state)
{
	static char body[500000];
	struct pair *pair = *state;

	assert_int_equal(put(pair, "queued", body, sizeof(body)), 0);
	close_end(pair, 1);
	assert_int_equal(vt_frames_flush(&pair->out, pair->ends[0], &pair->err), -EPIPE);
	assert_string_equal(pair->err.what, "the other side is gone");
	assert_null(pair->out.buf);
	assert_int_equal(put(pair, "more", "", 0), -EPIPE);
	assert_int_equal(vt_frames_flush(&pair->out, pair->ends[0], &pair->err), -EPIPE);
}

/* A frame that is lost in part lets nothing follow: the other side would take that for its rest. */
static void test_nothing_follows_a_lost_part(void **state)
{
	static char body[500000];
	struct pair *pair = *state;

	assert_int_equal(put(pair, "half", body, sizeof(body)), 0);
	assert_int_equal(vt_frames_flush(&pair->out, -1, &pair->err), -EBADF);
	assert_int_equal(put(pair, "more", "", 0), -EPIPE);
}

static int lowest_free(void)
{
	int fd = dup(0);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	return fd;
}

/* A descriptor that comes along is not received: it would be the sender's to choose. */
static void test_descriptors_are_not_taken(void **state)
{
	struct pair *pair = *state;
	char bytes[] = "\x02\0\0\0\x02\0\0\0{}";
	struct iovec part = { bytes, sizeof(bytes) - 1 };
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
	int before = lowest_free();

	memcpy(CMSG_DATA(&control.header), &pair->ends[0], sizeof(int));
	assert_int_equal(sendmsg(pair->ends[0], &message, 0), sizeof(bytes) - 1);
	assert_int_equal(take_in(pair), sizeof(bytes) - 1);
	assert_frame(pair, "{}", "");
	assert_int_equal(lowest_free(), before);
}

/* Memory of a body that is large is taken for the queue, and no byte of it is lost. */
static void test_given_memory(void **state)
{
	struct pair *pair = *state;
	struct vt_frames_given given = { malloc(LARGE), LARGE };
	struct vt_frame frame;
	int r;

	assert_non_null(given.memory);
	for (size_t i = 0; i < LARGE; i++)
		given.memory[i] = (char)(i * 7 >> 3);
	char *memory = given.memory;
	/* A body in the middle of it: what is before and behind is nobody's. */
	const struct iovec body = { memory + 100, LARGE - 300 };

	assert_int_equal(vt_frames_put_given(&pair->out, pair->ends[0], "head", 4, &body, 1, &given,
					     &pair->err),
			 0);
	assert_null(given.memory);
	assert_ptr_equal(pair->out.buf, memory);
	while ((r = next(pair, &frame)) == 0) {
		assert_true(take_in(pair) > 0);
		assert_true(vt_frames_flush(&pair->out, pair->ends[0], &pair->err) >= 0);
	}
	assert_int_equal(r, 1);
	assert_int_equal(frame.body_len, LARGE - 300);
	for (size_t i = 0; i < frame.body_len; i++)
		assert_int_equal(frame.body[i], (char)((i + 100) * 7 >> 3));
	assert_null(pair->out.buf);
}

/* It stays whose it was: where all is sent, where something waits already, or where more follows
 * it. */
static void test_memory_that_is_not_taken(void **state)
{
	struct pair *pair = *state;
	struct vt_frames_given given = { calloc(1, LARGE), LARGE };
	const struct iovec small = { given.memory, 10 }, large = { given.memory, LARGE };
	const struct iovec two[] = { large, small };

	assert_non_null(given.memory);
	assert_int_equal(vt_frames_put_given(&pair->out, pair->ends[0], "", 0, &small, 1, &given,
					     &pair->err),
			 1);
	assert_non_null(given.memory);
	assert_int_equal(
		vt_frames_put_given(&pair->out, pair->ends[0], "", 0, two, 2, &given, &pair->err),
		0);
	assert_non_null(given.memory);
	assert_int_equal(vt_frames_put_given(&pair->out, pair->ends[0], "", 0, &large, 1, &given,
					     &pair->err),
			 0);
	assert_non_null(given.memory);
	free(given.memory);
}

#define IN_PAIR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PAIR(test_the_bytes_of_a_frame),
		IN_PAIR(test_many_in_one_read),
		IN_PAIR(test_byte_by_byte),
		IN_PAIR(test_a_frame_across_the_end_of_the_buffer),
		IN_PAIR(test_small_frames_use_one_place),
		IN_PAIR(test_bad_sizes),
		IN_PAIR(test_the_bound_of_the_owner),
		IN_PAIR(test_memory_follows_what_came),
		IN_PAIR(test_a_large_frame_leaves_nothing_behind),
		IN_PAIR(test_memory_for_what_was_promised),
		IN_PAIR(test_taking_the_buffer),
		IN_PAIR(test_the_end),
		IN_PAIR(test_a_reset_is_an_end),
		IN_PAIR(test_nobody_takes_the_frames),
		IN_PAIR(test_what_the_socket_does_not_take_waits),
		IN_PAIR(test_the_queue_is_bounded),
		IN_PAIR(test_too_large_to_send),
		IN_PAIR(test_the_longest_head),
		IN_PAIR(test_sending_to_nobody),
		IN_PAIR(test_nothing_follows_a_lost_part),
		IN_PAIR(test_descriptors_are_not_taken),
		IN_PAIR(test_given_memory),
		IN_PAIR(test_memory_that_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
