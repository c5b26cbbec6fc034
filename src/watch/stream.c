/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

enum { READ_BYTES = 64 << 10 };

static void stop_reading(struct vt_stream *stream)
{
	vt_loop_remove(stream->loop, &stream->pipe);
	vt_fd_close(&stream->pipe.fd);
}

/* Nobody reads it any more: close the pipe, and the command gets its SIGPIPE as it would have. */
static void give_up(struct vt_stream *stream, int error)
{
	stream->failed = error;
	vt_str_done(&stream->pending);
	stream->written = 0;
	stop_reading(stream);
}

/* Appends bytes to what will be written, safe for a terminal if it goes to one. */
static void enqueue(struct vt_stream *stream, const char *bytes, size_t len)
{
	if (stream->kind == VT_SINK_SCREEN)
		vt_screen_add(&stream->screen, bytes, len, &stream->pending);
	else
		vt_str_addn(&stream->pending, bytes, len);
	if (!vt_str_ok(&stream->pending))
		give_up(stream, -ENOMEM);
}

static void keep_tail(struct vt_stream *stream, const char *bytes, size_t len)
{
	size_t fresh = len < sizeof(stream->tail) ? len : sizeof(stream->tail);
	size_t room = sizeof(stream->tail) - fresh;
	size_t old = stream->tail_len < room ? stream->tail_len : room;

	memmove(stream->tail, stream->tail + stream->tail_len - old, old);
	memcpy(stream->tail + old, bytes + len - fresh, fresh);
	stream->tail_len = old + fresh;
}

static void take(struct vt_stream *stream, const char *bytes, size_t len)
{
	keep_tail(stream, bytes, len);
	if (stream->kind == VT_SINK_CAPTURE) {
		vt_capture_add(&stream->capture, bytes, len);
		return;
	}
	if (stream->capped) {
		size_t before = stream->capture.head.len;

		vt_capture_add(&stream->capture, bytes, len);
		len = stream->capture.head.len - before; /* the rest waits for the end */
	}
	enqueue(stream, bytes, len);
}

/* Writes what it can: 0 when all is out, -EAGAIN when the reader is slow, another -errno. */
static int flush(struct vt_stream *stream)
{
	while (stream->written < stream->pending.len) {
		ssize_t n = vt_outlet_write(&stream->outlet, stream->pending.text + stream->written,
					    stream->pending.len - stream->written);

		if (n < 0)
			return (int)n;
		stream->written += (size_t)n;
	}
	stream->pending.len = 0;
	stream->written = 0;
	return 0;
}

/* One read. 1: there may be more; 0: not now, or never again. */
static int pump(struct vt_stream *stream)
{
	char buffer[READ_BYTES];
	ssize_t len = read(stream->pipe.fd, buffer, sizeof(buffer));

	if (len < 0 && errno == EINTR)
		return 1;
	if (len < 0 && errno == EAGAIN)
		return 0;
	if (len <= 0) {
		stop_reading(stream);
		return 0;
	}
	take(stream, buffer, (size_t)len);
	return 1;
}

static void wait_for_sink(struct vt_stream *stream)
{
	struct vt_err err;

	vt_loop_remove(stream->loop, &stream->pipe);
	if (vt_loop_add(stream->loop, &stream->out, EPOLLOUT, &err) < 0)
		give_up(stream, -err.num);
}

static void flush_or_wait(struct vt_stream *stream)
{
	struct vt_err err;
	int r = flush(stream);

	if (r == -EAGAIN) {
		wait_for_sink(stream);
		return;
	}
	vt_loop_remove(stream->loop, &stream->out);
	if (r < 0)
		give_up(stream, r);
	else if (stream->pipe.fd >= 0 &&
		 vt_loop_add(stream->loop, &stream->pipe, EPOLLIN, &err) < 0)
		give_up(stream, -err.num);
}

static void pipe_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_stream *stream = source->owner;

	(void)events;       /* a hang-up shows as the end of the file */
	(void)pump(stream); /* one read per turn: the loop has others to serve */
	flush_or_wait(stream);
}

static void sink_ready(struct vt_watch *source, uint32_t events)
{
	(void)events; /* an error shows in the write */
	flush_or_wait(source->owner);
}

int vt_stream_init(struct vt_stream *stream, struct vt_loop *loop, const struct vt_sink *sink,
		   int64_t cap, int pipe_fd, struct vt_err *err)
{
	*stream = (struct vt_stream){
		.loop = loop,
		.kind = sink->kind,
		.capped = sink->kind != VT_SINK_CAPTURE && cap >= 0,
		.outlet = { .kind = VT_OUTLET_POLLED, .fd = -1 },
	};
	stream->pipe = (struct vt_watch){ .fd = pipe_fd, .ready = pipe_ready, .owner = stream };
	vt_capture_init(&stream->capture, cap < 0 ? 0 : (size_t)cap);
	vt_str_init(&stream->pending);
	if (sink->kind != VT_SINK_CAPTURE)
		vt_outlet_init(&stream->outlet, sink->fd);
	stream->out = (struct vt_watch){ .fd = stream->outlet.fd,
					 .ready = sink_ready,
					 .owner = stream };
	return vt_loop_add(loop, &stream->pipe, EPOLLIN, err);
}

void vt_stream_done(struct vt_stream *stream)
{
	if (!stream->loop)
		return; /* never begun */
	vt_loop_remove(stream->loop, &stream->out);
	stop_reading(stream);
	vt_outlet_done(&stream->outlet);
	vt_capture_done(&stream->capture);
	vt_str_done(&stream->pending);
}

/* Writes all that is pending. False: cancelled, or nobody reads. */
static bool flush_all(struct vt_stream *stream, int cancel_fd)
{
	int r;

	while ((r = flush(stream)) == -EAGAIN) {
		struct pollfd ready[] = {
			{ .fd = stream->outlet.fd, .events = POLLOUT },
			{ .fd = cancel_fd, .events = POLLIN },
		};

		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			return false;
		if (ready[1].revents) {
			r = -EINTR;
			break;
		}
	}
	if (r < 0)
		give_up(stream, r);
	return r == 0;
}

void vt_stream_finish(struct vt_stream *stream, int cancel_fd)
{
	while (stream->pipe.fd >= 0 && flush_all(stream, cancel_fd) && pump(stream))
		;
	if (stream->failed || stream->kind == VT_SINK_CAPTURE)
		return;
	if (stream->capped) {
		struct vt_str rest;

		vt_str_init(&rest);
		vt_capture_rest(&stream->capture, &rest);
		enqueue(stream, rest.text, rest.len);
		vt_str_done(&rest);
	}
	if (stream->kind == VT_SINK_SCREEN)
		vt_screen_end(&stream->screen, &stream->pending);
	(void)flush_all(stream, cancel_fd); /* what cannot be written has no reader */
}

bool vt_stream_unended(const struct vt_stream *stream)
{
	return stream->tail_len > 0 && stream->tail[stream->tail_len - 1] != '\n';
}
