/* SPDX-License-Identifier: Apache-2.0 */
#include "base/frame.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/stranger.h"

static uint32_t number_at(const char *at)
{
	const unsigned char *byte = (const unsigned char *)at;

	return byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
}

static void put_number(char *at, size_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (char)(value >> 8 * i);
}

void vt_frames_in_init(struct vt_frames_in *in, size_t max)
{
	*in = (struct vt_frames_in){ .max = max < VT_FRAME_MAX ? max : VT_FRAME_MAX };
}

void vt_frames_in_done(struct vt_frames_in *in)
{
	const struct vt_frames_in old = *in;

	free(in->buf);
	vt_frames_in_init(in, in->max);
	in->trusting = old.trusting;
	in->wary = old.wary;
	in->spare = old.spare;
}

/*
 * How many bytes the frame at start has in all, as far as can be told: its prefix at least.
 * Negative where it is not one to be read.
 */
static ssize_t measure(const struct vt_frames_in *in, struct vt_err *err)
{
	if (in->end - in->start < VT_FRAME_PREFIX)
		return (ssize_t)VT_FRAME_PREFIX;
	const char *prefix = in->buf + in->start;
	size_t length = number_at(prefix), head = number_at(prefix + 4);

	if (head > length)
		return vt_fail(err, VT_STEP_WIRE, EBADMSG,
			       "a frame of %zu bytes claims a head of %zu", length, head);
	if (head > VT_FRAME_HEAD_MAX)
		return vt_fail(err, VT_STEP_WIRE, EMSGSIZE,
			       "the head of a frame has %zu bytes; %zu is the most", head,
			       VT_FRAME_HEAD_MAX);
	if (length > in->max)
		return vt_fail(err, VT_STEP_WIRE, EMSGSIZE,
			       "a frame has %zu bytes; %zu is the most here", length, in->max);
	return (ssize_t)(VT_FRAME_PREFIX + length);
}

/* Nothing is under way. A large buffer goes; a small one serves again from its beginning. */
static void rest(struct vt_frames_in *in)
{
	if (in->cap > VT_FRAMES_IDLE)
		vt_frames_in_done(in);
	in->start = 0;
	in->end = 0;
}

/*
 * No larger than the frame under way; the buffer is full, so all of it came. One byte more is for
 * who takes the buffer, and ends the body with a NUL.
 */
static int grow(struct vt_frames_in *in, size_t need, struct vt_err *err)
{
	if (vt_bulk_move(in->spare, &in->buf, &in->cap, need + 1, in->trusting))
		return 0;
	size_t cap = in->trusting && in->cap ? vt_bulk_size(need + 1)
					     : vt_bulk_next(in->cap, VT_FRAMES_IDLE, need + 1);
	char *buf = vt_bulk_resize(in->buf, cap);

	if (!buf)
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "no memory for a frame");
	in->buf = buf;
	in->cap = cap;
	return 0;
}

/*
 * Room behind what came, for a frame of `need` bytes at start. It is moved at most once: where it
 * has its prefix and does not fit behind start. Without a prefix there is next to nothing to move.
 */
static int make_room(struct vt_frames_in *in, size_t need, struct vt_err *err)
{
	size_t have = in->end - in->start;

	if (in->start > 0 && (have < VT_FRAME_PREFIX || need > in->cap - in->start)) {
		memmove(in->buf, in->buf + in->start, have);
		in->start = 0;
		in->end = have;
	}
	bool whole = in->cap && need <= have;

	if (in->end < in->cap && !(whole && in->cap > VT_FRAMES_IDLE))
		return 0;
	if (whole)
		return vt_fail(err, VT_STEP_WIRE, ENOBUFS, "nobody takes the frames that came");
	return grow(in, need, err);
}

ssize_t vt_frames_read(struct vt_frames_in *in, int fd, struct vt_err *err)
{
	if (in->start == in->end)
		rest(in);
	ssize_t need = measure(in, err);

	if (need < 0)
		return need;
	int r = make_room(in, (size_t)need, err);

	if (r < 0)
		return r;
	ssize_t got;
	size_t room = in->cap - in->end, missing = (size_t)need - (in->end - in->start);

	/* A large buffer has nothing of the next frame in it, so that it can go with this one. */
	if (in->cap > VT_FRAMES_IDLE && missing < room)
		room = missing;
	do {
		got = in->wary ? vt_stranger_recv(fd, in->buf + in->end, room, MSG_DONTWAIT)
			       : recv(fd, in->buf + in->end, room, MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	if (got > 0) {
		in->end += (size_t)got;
		return got;
	}
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (got < 0 && errno == EBADMSG)
		return vt_fail(err, VT_STEP_WIRE, EBADMSG,
			       "descriptors came with a frame, and nobody takes any");
	if (got < 0 && errno != ECONNRESET)
		return vt_fail(err, VT_STEP_WIRE, errno, "receive a frame");
	return vt_fail(err, VT_STEP_WIRE, EPIPE,
		       in->start == in->end ? "the other side is gone"
					    : "the other side is gone, within a frame");
}

int vt_frames_next(struct vt_frames_in *in, struct vt_frame *ret_frame, struct vt_err *err)
{
	size_t have = in->end - in->start;

	if (have == 0) {
		rest(in);
		return 0;
	}
	ssize_t need = measure(in, err);

	if (need < 0)
		return (int)need;
	if (have < VT_FRAME_PREFIX || have < (size_t)need)
		return 0;
	char *prefix = in->buf + in->start;
	size_t head = number_at(prefix + 4);

	*ret_frame = (struct vt_frame){
		.head = prefix + VT_FRAME_PREFIX,
		.head_len = head,
		.body = prefix + VT_FRAME_PREFIX + head,
		.body_len = (size_t)need - VT_FRAME_PREFIX - head,
	};
	in->start += (size_t)need;
	return 1;
}

char *vt_frames_take(struct vt_frames_in *in, size_t *ret_cap)
{
	char *buf = in->buf;

	if (in->start < in->end || in->end == in->cap || in->cap <= VT_FRAMES_IDLE)
		return NULL;
	if (ret_cap)
		*ret_cap = in->cap;
	in->buf = NULL;
	vt_frames_in_done(in);
	return buf;
}

void vt_frames_out_init(struct vt_frames_out *out, size_t max)
{
	*out = (struct vt_frames_out){ .max = max };
}

void vt_frames_out_done(struct vt_frames_out *out)
{
	struct vt_bulk_spare *spare = out->spare;

	free(out->buf);
	vt_frames_out_init(out, out->max);
	out->spare = spare;
}

/* What is lost of a frame cannot be made good: the other side would take the next for its rest. */
static int fail_for_good(struct vt_frames_out *out, int num, const char *what, struct vt_err *err)
{
	vt_frames_out_done(out);
	out->broken = true;
	return vt_fail(err, VT_STEP_WIRE, num, "%s", what);
}

static int fail_gone(struct vt_frames_out *out, struct vt_err *err)
{
	return fail_for_good(out, EPIPE, "the other side is gone", err);
}

/* Returns how much the socket took. */
static ssize_t send_parts(struct vt_frames_out *out, int fd, struct iovec *parts, size_t count,
			  struct vt_err *err)
{
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };
	ssize_t sent;

	do {
		sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return sent;
	/* ENOBUFS: the kernel has no memory for the moment. */
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
		return 0;
	if (errno == EPIPE || errno == ECONNRESET)
		return fail_gone(out, err);
	return fail_for_good(out, errno, "send a frame", err);
}

/*
 * Room for so many bytes behind what is queued. That moves only over a gap that is no smaller, and
 * else the buffer doubles: over time, no byte is copied more than a few times.
 */
static int reserve(struct vt_frames_out *out, size_t more)
{
	size_t queued = vt_frames_queued(out);

	if (out->start > 0 && out->start >= queued) {
		memmove(out->buf, out->buf + out->start, queued);
		out->start = 0;
		out->end = queued;
	}
	if (more <= out->cap - out->end)
		return 0;
	size_t cap = out->end + more;

	if (cap < 2 * out->end)
		cap = 2 * out->end;
	if (cap < VT_FRAMES_IDLE)
		cap = VT_FRAMES_IDLE;
	char *buf = realloc(out->buf, cap);

	if (!buf)
		return -ENOMEM;
	out->buf = buf;
	out->cap = cap;
	return 0;
}

/* Queues all parts but their first `sent` bytes. */
static int queue(struct vt_frames_out *out, const struct iovec *parts, size_t count, size_t sent,
		 struct vt_err *err)
{
	size_t more = 0;

	for (size_t i = 0; i < count; i++)
		more += parts[i].iov_len;
	if (reserve(out, more - sent) < 0)
		return fail_for_good(out, ENOMEM, "no memory for a frame", err);
	for (size_t i = 0; i < count; i++) {
		size_t skip = sent < parts[i].iov_len ? sent : parts[i].iov_len;

		sent -= skip;
		if (skip == parts[i].iov_len)
			continue;
		memcpy(out->buf + out->end, (const char *)parts[i].iov_base + skip,
		       parts[i].iov_len - skip);
		out->end += parts[i].iov_len - skip;
	}
	return 0;
}

static int check_sizes(size_t head_len, size_t body_len, struct vt_err *err)
{
	if (head_len > VT_FRAME_HEAD_MAX)
		return vt_fail(err, VT_STEP_WIRE, EMSGSIZE,
			       "the head of a frame has %zu bytes; %zu is the most", head_len,
			       VT_FRAME_HEAD_MAX);
	if (body_len > VT_FRAME_MAX - head_len)
		return vt_fail(err, VT_STEP_WIRE, EMSGSIZE,
			       "a frame has a body of %zu bytes; with its head, %zu is the most",
			       body_len, VT_FRAME_MAX);
	return 0;
}

int vt_frames_put(struct vt_frames_out *out, int fd, const void *head, size_t head_len,
		  const void *body, size_t body_len, struct vt_err *err)
{
	const struct iovec part = { (void *)body, body_len };

	return vt_frames_put_given(out, fd, head, head_len, &part, 1, NULL, err);
}

/* What is left to be sent is the end of memory that was given: it becomes the queue. */
static bool adopt(struct vt_frames_out *out, const struct iovec *last, size_t left,
		  struct vt_frames_given *given)
{
	if (left > last->iov_len || left <= VT_FRAMES_IDLE || !given->memory)
		return false;
	size_t end = (size_t)((const char *)last->iov_base - given->memory) + last->iov_len;

	free(out->buf);
	out->buf = given->memory;
	out->cap = given->cap;
	out->end = end;
	out->start = end - left;
	given->memory = NULL;
	return true;
}

int vt_frames_put_given(struct vt_frames_out *out, int fd, const void *head, size_t head_len,
			const struct iovec *body, size_t count, struct vt_frames_given *given,
			struct vt_err *err)
{
	size_t body_len = 0;

	if (out->broken)
		return fail_gone(out, err);
	for (size_t i = 0; i < count && i < VT_FRAME_PARTS; i++)
		body_len += body[i].iov_len;
	int r = count > VT_FRAME_PARTS
			? vt_fail(err, VT_STEP_WIRE, EINVAL, "a frame has too many parts")
			: check_sizes(head_len, body_len, err);

	if (r < 0)
		return r;
	size_t queued = vt_frames_queued(out);

	if (queued > out->max)
		return vt_fail(err, VT_STEP_WIRE, ENOBUFS,
			       "%zu bytes wait for the other side, which does not read", queued);
	char prefix[VT_FRAME_PREFIX];
	struct iovec parts[2 + VT_FRAME_PARTS] = {
		{ prefix, sizeof(prefix) },
		{ (void *)head, head_len },
	};

	if (count) /* else there may be none at all, which memcpy() is not told of */
		memcpy(parts + 2, body, count * sizeof(*body));
	size_t all = sizeof(prefix) + head_len + body_len;

	put_number(prefix, head_len + body_len);
	put_number(prefix + 4, head_len);
	ssize_t sent = queued ? 0 : send_parts(out, fd, parts, 2 + count, err);

	if (sent < 0)
		return (int)sent;
	if ((size_t)sent == all)
		return 1;
	if (given && !queued && count == 1 && adopt(out, body, all - (size_t)sent, given))
		return 0;
	return queue(out, parts, 2 + count, (size_t)sent, err);
}

int vt_frames_flush(struct vt_frames_out *out, int fd, struct vt_err *err)
{
	size_t queued = vt_frames_queued(out);

	if (out->broken)
		return fail_gone(out, err);
	if (queued == 0)
		return 1;
	struct iovec part = { out->buf + out->start, queued };
	ssize_t sent = send_parts(out, fd, &part, 1, err);

	if (sent < 0)
		return (int)sent;
	out->start += (size_t)sent;
	if ((size_t)sent < queued)
		return 0;
	out->start = 0;
	out->end = 0;
	if (out->cap > VT_FRAMES_IDLE) {
		vt_bulk_keep(out->spare, out->buf, out->cap);
		out->buf = NULL;
		out->cap = 0;
	}
	return 1;
}
