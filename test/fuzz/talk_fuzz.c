/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor reads of a cell under any stream, in any pieces: the only thing that hostile
 * code says to it directly. The first byte says how large the pieces are, the second how large a
 * body may be; the rest is what the cell sends. Messages are those of a plain walk over the bytes,
 * and memory grows with what came, whatever a head promises. libFuzzer drives it, or replay.c.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "launch/talk.h"

/* The stream: how far it was sent, and how far messages were taken from it. */
struct stream {
	const uint8_t *bytes;
	size_t len, sent, taken, body_max;
};

/* What a reader has to say of the bytes that were sent and not taken. */
static int expected(const struct stream *stream)
{
	struct vt_talk_head head;
	size_t have = stream->sent - stream->taken;

	if (have < sizeof(head))
		return 0;
	memcpy(&head, stream->bytes + stream->taken, sizeof(head));
	if (head.kind < VT_TALK_EXECUTE || head.kind > VT_TALK_UNABLE || head.reserved ||
	    head.name_len > VT_TALK_NAME_MAX)
		return -EBADMSG;
	if (head.body_len > stream->body_max ||
	    (head.kind == VT_TALK_LOG && head.body_len > VT_TALK_LOG_MAX))
		return -EMSGSIZE;
	return have - sizeof(head) >= head.name_len + head.body_len;
}

static void check_talk(const struct vt_talk *talk, struct stream *stream)
{
	const uint8_t *at = stream->bytes + stream->taken;
	struct vt_talk_head head;

	memcpy(&head, at, sizeof(head));
	at += sizeof(head);
	REQUIRE(talk->kind == head.kind && talk->flags == head.flags && talk->id == head.id);
	REQUIRE(talk->name_len == head.name_len && talk->body_len == head.body_len);
	REQUIRE(memcmp(talk->name, at, talk->name_len) == 0 && !talk->name[talk->name_len]);
	REQUIRE(memcmp(talk->body, at + talk->name_len, talk->body_len) == 0);
	REQUIRE(!talk->body[talk->body_len]);
	stream->taken += sizeof(head) + talk->name_len + talk->body_len;
}

/* All messages that are whole by now. False where the reader refused one, as it should. */
static int take_messages(struct vt_talk_in *in, int fd, struct stream *stream)
{
	for (;;) {
		struct vt_talk talk;
		struct vt_err err = { 0 };
		int wanted = expected(stream);
		int status = vt_talk_next(in, fd, MSG_DONTWAIT, &talk, &err);

		REQUIRE(status == wanted);
		REQUIRE(in->cap <= 8192 + 8 * (stream->sent - stream->taken) ||
			in->cap <= 8192 + 8 * stream->taken);
		if (status <= 0) {
			REQUIRE(status == 0 || (status == -err.num && *err.what));
			return status == 0;
		}
		check_talk(&talk, stream);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vt_talk_in in;
	int ends[2];

	if (size < 2)
		return 0;
	size_t piece = ((data[0] & 0xfu) << (data[0] >> 4) | 1) + size / 512;
	struct stream stream = { .bytes = data + 2,
				 .len = size - 2,
				 .body_max = data[1] & 1 ? SIZE_MAX / 4 : data[1] * 300u };

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	vt_talk_in_init(&in, stream.body_max);
	while (take_messages(&in, ends[1], &stream) && stream.sent < stream.len) {
		size_t left = stream.len - stream.sent;
		ssize_t sent = send(ends[0], stream.bytes + stream.sent,
				    piece < left ? piece : left, MSG_DONTWAIT);

		REQUIRE(sent > 0);
		stream.sent += (size_t)sent;
	}
	vt_talk_in_done(&in);
	close(ends[0]);
	close(ends[1]);
	return 0;
}
