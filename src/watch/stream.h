/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One output stream of a cell: read from its pipe, and captured, passed on, or both. While the
 * reader of what is passed on is slow, the pipe is left alone, and the command waits in its write
 * as it would without vitro. With a cap on passed-on output, the head goes out as it comes, and the
 * tail when the call is over.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "watch/capture.h"
#include "watch/loop.h"
#include "watch/outlet.h"
#include "watch/screen.h"

/* What happens to one of the occupant's output streams. */
enum vt_sink_kind {
	VT_SINK_CAPTURE, /* kept for the result */
	VT_SINK_PASS,    /* written to fd as it comes */
	VT_SINK_SCREEN,  /* the same, made safe for a terminal */
};

struct vt_sink {
	enum vt_sink_kind kind;
	int               fd;
};

/* How much of a stream's end is kept whatever becomes of it: its last words, for hints. */
enum { VT_STREAM_TAIL = 4096 };

struct vt_stream {
	struct vt_loop   *loop;
	struct vt_watch  pipe;      /* its reading end, non-blocking, owned; -1 when done */
	struct vt_watch  out;       /* the sink, while it is full */
	enum vt_sink_kind kind;
	bool              capped;    /* passed on, but not past the cap */
	struct vt_outlet  outlet;
	struct vt_screen  screen;
	struct vt_capture capture;
	struct vt_str     pending;   /* ready to be written */
	size_t            written;   /* of pending */
	char              tail[VT_STREAM_TAIL];
	size_t            tail_len;
	/* -errno of a sink that cannot be written; the pipe is closed */
	int               failed;
};

/* cap: in bytes; -1: none, for a stream that is passed on whole. pipe_fd is taken over. */
int  vt_stream_init(struct vt_stream *stream, struct vt_loop *loop, const struct vt_sink *sink,
		    int64_t cap, int pipe_fd, struct vt_err *err);
void vt_stream_done(struct vt_stream *stream);

/*
 * The cell is dead: takes what is in the pipe and writes all that is left, waiting for a slow
 * reader. A signal on cancel_fd (-1: none) ends the wait: then it has failed with -EINTR.
 */
void vt_stream_finish(struct vt_stream *stream, int cancel_fd);

/* Whether the last byte that came was no newline: what follows it would be in the same line. */
bool vt_stream_unended(const struct vt_stream *stream);
