/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/talk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/stranger.h"

enum {
	FIRST_BYTES = 4096,
	STEP = 8, /* how many times more it may be than came; what is not written to costs nothing
		   */
};

void vt_talk_in_init(struct vt_talk_in *in, size_t body_max)
{
	*in = (struct vt_talk_in){ .body_max = body_max, .may_read = SIZE_MAX };
}

void vt_talk_in_done(struct vt_talk_in *in)
{
	struct vt_bulk_spare *spare = in->spare;
	bool wary = in->wary;

	free(in->data);
	vt_talk_in_init(in, in->body_max);
	in->spare = spare;
	in->wary = wary;
}

/* As recv(), of what may be read. */
static ssize_t receive(struct vt_talk_in *in, int fd, int flags, void *to, size_t len)
{
	ssize_t got;

	if (in->may_read == 0) {
		errno = EAGAIN;
		return -1;
	}
	len = len < in->may_read ? len : in->may_read;
	do
		got = in->wary ? vt_stranger_recv(fd, to, len, flags) : recv(fd, to, len, flags);
	while (got < 0 && errno == EINTR);
	if (got > 0 && in->may_read != SIZE_MAX)
		in->may_read -= (size_t)got;
	return got;
}

/* Takes up to len bytes: what was read ahead, else from the socket. As recv(), but 0 is the end. */
static ssize_t take(struct vt_talk_in *in, int fd, int flags, void *to, size_t len)
{
	if (in->ahead_at == in->ahead_len && len >= sizeof(in->ahead))
		return receive(in, fd, flags, to, len);
	if (in->ahead_at == in->ahead_len) {
		ssize_t got = receive(in, fd, flags, in->ahead, sizeof(in->ahead));

		if (got <= 0)
			return got;
		in->ahead_at = 0;
		in->ahead_len = (size_t)got;
	}
	size_t count = in->ahead_len - in->ahead_at;

	count = count < len ? count : len;
	memcpy(to, in->ahead + in->ahead_at, count);
	in->ahead_at += count;
	return (ssize_t)count;
}

static int ended(ssize_t got, struct vt_err *err)
{
	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got < 0 && errno == EBADMSG)
		return vt_fail(err, VT_STEP_WATCH, EBADMSG,
			       "read the call's socket: it has descriptors");
	if (got < 0 && errno != ECONNRESET)
		return vt_fail(err, VT_STEP_WATCH, errno, "read from the call's socket");
	return vt_fail(err, VT_STEP_WATCH, EPIPE, "read from the call's socket: it is closed");
}

static int check(const struct vt_talk_in *in, struct vt_err *err)
{
	const struct vt_talk_head *head = &in->head;

	if (head->kind < VT_TALK_EXECUTE || head->kind > VT_TALK_UNABLE || head->reserved ||
	    head->name_len > VT_TALK_NAME_MAX)
		return vt_fail(err, VT_STEP_WATCH, EBADMSG, "understand what the occupant says");
	if (head->body_len > in->body_max ||
	    (head->kind == VT_TALK_LOG && head->body_len > VT_TALK_LOG_MAX))
		return vt_fail(err, VT_STEP_WATCH, EMSGSIZE, "take a message of %llu bytes",
			       (unsigned long long)head->body_len);
	return 0;
}

/* size is that of all there will be, with its two NULs. */
static int make_room(struct vt_talk_in *in, size_t size, struct vt_err *err)
{
	if (in->got < in->cap)
		return 0;
	if (vt_bulk_move(in->spare, &in->data, &in->cap, size, false))
		return 0;
	size_t cap = vt_bulk_next(STEP / 2 * in->cap, FIRST_BYTES, size);
	char *data = vt_bulk_resize(in->data, cap);

	if (!data)
		return vt_fail(err, VT_STEP_WATCH, ENOMEM, "take a message");
	in->data = data;
	in->cap = cap;
	return 0;
}

static void finish(struct vt_talk_in *in, struct vt_talk *ret_talk)
{
	size_t name_len = in->head.name_len, body_len = in->head.body_len;
	char *body = in->data + name_len + 1;

	body[body_len] = '\0';
	*ret_talk = (struct vt_talk){ .kind = in->head.kind,
				      .flags = in->head.flags,
				      .id = in->head.id,
				      .name = in->data,
				      .name_len = name_len,
				      .body = body,
				      .body_len = body_len };
	in->head_got = in->got = 0;
}

/* The name, a NUL of ours, and the body, each at its place. */
static int take_data(struct vt_talk_in *in, int fd, int flags, struct vt_err *err)
{
	size_t name_len = in->head.name_len, size = name_len + 1 + (size_t)in->head.body_len;
	int r = make_room(in, size + 1, err);

	while (r == 0 && in->got < size) {
		size_t end = in->got < name_len ? name_len : size, room = in->cap - in->got;

		if (in->got == name_len) {
			in->data[in->got++] = '\0';
		} else {
			ssize_t got = take(in, fd, flags, in->data + in->got,
					   room < end - in->got ? room : end - in->got);

			if (got <= 0)
				return ended(got, err);
			in->got += (size_t)got;
		}
		r = make_room(in, size + 1, err);
	}
	return r < 0 ? r : 1;
}

int vt_talk_next(struct vt_talk_in *in, int fd, int flags, struct vt_talk *ret_talk,
		 struct vt_err *err)
{
	while (in->head_got < sizeof(in->head)) {
		ssize_t got = take(in, fd, flags, (char *)&in->head + in->head_got,
				   sizeof(in->head) - in->head_got);

		if (got <= 0)
			return ended(got, err);
		in->head_got += (size_t)got;
		int r = in->head_got == sizeof(in->head) ? check(in, err) : 0;

		if (r < 0)
			return r;
	}
	int r = take_data(in, fd, flags, err);

	if (r > 0)
		finish(in, ret_talk);
	return r;
}

/* Leaves out the first *at bytes of what is to be sent. */
static size_t skip(struct iovec *parts, size_t count, size_t at)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		size_t gone = at < parts[i].iov_len ? at : parts[i].iov_len;

		parts[i].iov_base = (char *)parts[i].iov_base + gone;
		parts[i].iov_len -= gone;
		at -= gone;
		left += parts[i].iov_len;
	}
	return left;
}

int vt_talk_send(int fd, int flags, const struct vt_talk *talk, size_t *at, struct vt_err *err)
{
	struct vt_talk_head head = { .kind = talk->kind,
				     .flags = talk->flags,
				     .name_len = (uint32_t)talk->name_len,
				     .id = talk->id,
				     .body_len = talk->body_len };

	for (;;) {
		struct iovec parts[] = {
			{ &head, sizeof(head) },
			{ (void *)talk->name, talk->name_len },
			{ (void *)talk->body, talk->body_len },
		};
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };
		size_t left = skip(parts, 3, *at);

		if (left == 0)
			return 1;
		ssize_t sent = sendmsg(fd, &message, flags | MSG_NOSIGNAL);

		if (sent > 0)
			*at += (size_t)sent;
		else if (errno == EAGAIN)
			return 0;
		else if (errno != EINTR)
			return vt_fail(err, VT_STEP_WATCH, errno == ECONNRESET ? EPIPE : errno,
				       "write to the call's socket");
	}
}
