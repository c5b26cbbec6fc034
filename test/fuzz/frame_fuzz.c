/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of frames under any stream, in any pieces. The first byte says how large the pieces
 * are, the second how large a frame may be; the rest is what the other side sends. Frames are those
 * of a plain walk over the bytes, and written again they are the same bytes. libFuzzer drives it,
 * or replay.c.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/frame.h"
#include "fuzz.h"

/* The stream: how far it was sent, how far it came, and how far frames were taken from it. */
struct stream {
	const uint8_t *bytes;
	size_t len, sent, came, taken, max;
	int again[2]; /* where its frames are written once more */
};

static size_t number_at(const uint8_t *at)
{
	return at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

/* What a reader has to say of the bytes that came and were not taken. */
static int expected(const struct stream *stream)
{
	const uint8_t *at = stream->bytes + stream->taken;
	size_t have = stream->came - stream->taken;

	if (have < VT_FRAME_PREFIX)
		return 0;
	if (number_at(at + 4) > number_at(at))
		return -EBADMSG;
	if (number_at(at + 4) > VT_FRAME_HEAD_MAX || number_at(at) > stream->max)
		return -EMSGSIZE;
	return have - VT_FRAME_PREFIX >= number_at(at);
}

/* Writes the frame again, and holds it against the stream. */
static void write_again(const struct vt_frame *frame, const uint8_t *bytes, const int ends[2])
{
	size_t all = VT_FRAME_PREFIX + frame->head_len + frame->body_len, came = 0;
	struct vt_frames_out out;
	struct vt_err err;
	char got[4096];

	vt_frames_out_init(&out, 0);
	int status = vt_frames_put(&out, ends[0], frame->head, frame->head_len, frame->body,
				   frame->body_len, &err);

	while (came < all) {
		ssize_t more = recv(ends[1], got, sizeof(got), MSG_DONTWAIT);

		REQUIRE(more > 0 && (size_t)more <= all - came);
		REQUIRE(memcmp(got, bytes + came, (size_t)more) == 0);
		came += (size_t)more;
		REQUIRE(status == (vt_frames_queued(&out) == 0));
		status = vt_frames_flush(&out, ends[0], &err);
	}
	REQUIRE(status == 1 && vt_frames_queued(&out) == 0);
	vt_frames_out_done(&out);
}

/* All frames that are whole by now. False where the reader refused one, as it should. */
static int take_frames(struct vt_frames_in *in, struct stream *stream)
{
	for (;;) {
		struct vt_frame frame;
		struct vt_err err = { 0 };
		int status = vt_frames_next(in, &frame, &err);
		const uint8_t *at = stream->bytes + stream->taken;

		REQUIRE(status == expected(stream));
		REQUIRE(status >= 0 || (status == -err.num && err.step == VT_STEP_WIRE));
		if (status <= 0)
			return status == 0;
		REQUIRE(frame.head_len == number_at(at + 4));
		REQUIRE(frame.head_len + frame.body_len == number_at(at));
		REQUIRE(frame.body == frame.head + frame.head_len);
		write_again(&frame, at, stream->again);
		stream->taken += VT_FRAME_PREFIX + frame.head_len + frame.body_len;
	}
}

static void send_piece(int fd, struct stream *stream, size_t piece)
{
	size_t left = stream->len - stream->sent;
	ssize_t sent = send(fd, stream->bytes + stream->sent, piece < left ? piece : left,
			    MSG_DONTWAIT);

	/* A full socket is one that there is something to read from. */
	REQUIRE(sent >= 0 || (errno == EAGAIN && stream->came < stream->sent));
	if (sent > 0)
		stream->sent += (size_t)sent;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vt_frames_in in;
	struct vt_err err;
	int ends[2];

	if (size < 2)
		return 0;
	/* A long stream in no more than some hundred pieces, or it would take all day. */
	size_t piece = ((data[0] & 0xfu) << (data[0] >> 4) | 1) + size / 512;
	struct stream stream = { .bytes = data + 2, .len = size - 2, .max = 1 + data[1] * 300u };

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, stream.again) == 0);
	vt_frames_in_init(&in, stream.max);
	while (take_frames(&in, &stream) && stream.came < stream.len) {
		send_piece(ends[0], &stream, piece);
		ssize_t got = vt_frames_read(&in, ends[1], &err);

		REQUIRE(got > 0 && (size_t)got <= stream.sent - stream.came);
		stream.came += (size_t)got;
		REQUIRE(in.cap <= VT_FRAMES_IDLE || in.cap <= 2 * (stream.came - stream.taken));
	}
	REQUIRE(in.end - in.start == stream.came - stream.taken);
	vt_frames_in_done(&in);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(stream.again[i]);
	}
	return 0;
}
