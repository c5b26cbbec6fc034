/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a client and its supervisor speak on a stream socket. A frame is two numbers, 32 bits each,
 * the least significant byte first, and what they count:
 *
 *	length        bytes after these eight: of head and body together
 *	head length   bytes of the head, which comes first; no more than length
 *	head          a flat JSON object (base/head.h)
 *	body          the rest: bytes that are not looked into
 *
 * The reader and the writer are embedded in whoever owns the socket, and run in its loop: no call
 * ever waits, whatever the mode of the descriptor. Neither closes it. What the other side claims is
 * checked before it costs anything, memory grows with the bytes that came and never with a length
 * that was promised, unless the owner trusts the other side, and once nothing is under way no more
 * than VT_FRAMES_IDLE is held in either direction. Descriptors that are sent along are not
 * received. Errors have VT_STEP_WIRE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/bulk.h"
#include "base/err.h"

/* The two numbers. */
#define VT_FRAME_PREFIX   ((size_t)8)
/* The longest head. */
#define VT_FRAME_HEAD_MAX ((size_t)64 << 10)
/* The longest head and body together. */
#define VT_FRAME_MAX      ((size_t)1 << 30)
/* A buffer of this size stays for the next frames; a larger one is given back when it is empty. */
#define VT_FRAMES_IDLE    ((size_t)64 << 10)

/* A frame that came. Both parts may be empty; neither ends in a NUL, and neither is aligned. */
struct vt_frame {
	char  *head;     /* may be written to: vt_head_parse() works in place */
	size_t head_len; /* VT_FRAME_HEAD_MAX at most */
	char  *body;     /* follows the head */
	size_t body_len;
};

/* The reader. Its members are its own. */
struct vt_frames_in {
	char  *buf;   /* NULL until the first read */
	size_t cap;
	size_t start; /* of the first frame that was not handed out */
	size_t end;   /* of what came */
	size_t max;   /* longest head and body together */
	bool   trusting; /* the owner's to set: memory for what the other side promised is had at
			    once */
	bool   wary; /* the owner's to set: the socket is, base/stranger.h */
	struct vt_bulk_spare *spare; /* the owner's to set: where memory for much is to be had;
					NULL: nowhere */
};

/* max is the owner's bound on head and body together; what is above VT_FRAME_MAX counts as that. */
void vt_frames_in_init(struct vt_frames_in *in, size_t max);
/* Forgets what came. The reader can be used again, with the same bound. */
void vt_frames_in_done(struct vt_frames_in *in);

/*
 * Takes what is there, as much as there is room for, in one system call. To be called when
 * vt_frames_next() has said 0. Returns the number of bytes; 0 where nothing is there yet; -EPIPE at
 * the end, and the message tells whether it came within a frame; -ENOMEM; or what the socket says.
 * Where the frame under way is one that vt_frames_next() refuses, it is refused here too, and
 * nothing is read. Where whole frames fill the buffer and nobody takes them, it is -ENOBUFS.
 */
ssize_t vt_frames_read(struct vt_frames_in *in, int fd, struct vt_err *err);

/*
 * Hands out the next frame. Returns 1, and *ret_frame points into the buffer until the next call
 * for this reader; 0 where more has to be read; -EBADMSG where the head is longer than all of the
 * frame; -EMSGSIZE where the head or the frame is above its bound. After an error the stream has no
 * frames any more, and it stays: the owner closes the socket.
 */
int vt_frames_next(struct vt_frames_in *in, struct vt_frame *ret_frame, struct vt_err *err);

/*
 * Gives the buffer away, with the frame in it that was handed out last, and a byte of room behind
 * that. The caller frees it. NULL where it is small, or has more in it than that frame: then the
 * frame is to be copied. So a large body is had without one. ret_cap, its size, may be NULL.
 */
char *vt_frames_take(struct vt_frames_in *in, size_t *ret_cap);

/* The writer. Its members are its own. */
struct vt_frames_out {
	char  *buf;    /* what the socket did not take yet */
	size_t cap;
	size_t start;
	size_t end;
	size_t max;    /* how much may wait before a further frame is refused */
	bool   broken; /* part of a frame is lost: nothing may follow it */
	struct vt_bulk_spare *spare; /* the owner's to set: where memory goes that is not needed;
					NULL: nowhere */
};

/*
 * max bounds what waits for an other side that does not read: while more than that is queued, no
 * frame is taken. So never more than max and one frame are held.
 */
void vt_frames_out_init(struct vt_frames_out *out, size_t max);
/* Forgets what is queued. The writer can be used again, with the same bound, on another socket. */
void vt_frames_out_done(struct vt_frames_out *out);

/*
 * Sends a frame: at once, in one system call, where nothing is queued, and queues what the socket
 * does not take. head and body are the caller's again when it returns; NULL is fine for one that is
 * empty. Returns 1 where all is gone; 0 where some is queued: the owner waits for EPOLLOUT and
 * calls vt_frames_flush(). -EMSGSIZE where the frame is above VT_FRAME_MAX or its head above
 * VT_FRAME_HEAD_MAX, and -ENOBUFS where too much waits already: then nothing of it was sent, and
 * the socket can be used further. After -EPIPE (the other side is gone), -ENOMEM, or what else the
 * socket says, it cannot: all further calls are -EPIPE. There is never a SIGPIPE.
 */
int vt_frames_put(struct vt_frames_out *out, int fd, const void *head, size_t head_len,
		  const void *body, size_t body_len, struct vt_err *err);

enum { VT_FRAME_PARTS = 3 };

/* Memory that a body of one part lies in, to its end; NULL once it was taken. */
struct vt_frames_given {
	char  *memory; /* from malloc() */
	size_t cap;
};

/*
 * The same of a body in several parts, VT_FRAME_PARTS at the most. Where much of a body of one part
 * has to be queued, its memory may be taken for that: so no byte of it is copied. given may be
 * NULL.
 */
int vt_frames_put_given(struct vt_frames_out *out, int fd, const void *head, size_t head_len,
			const struct iovec *body, size_t count, struct vt_frames_given *given,
			struct vt_err *err);

/* Sends what is queued, in one system call. Returns as vt_frames_put() does; it refuses nothing. */
int vt_frames_flush(struct vt_frames_out *out, int fd, struct vt_err *err);

/* How many bytes wait. */
static inline size_t vt_frames_queued(const struct vt_frames_out *out)
{
	return out->end - out->start;
}
