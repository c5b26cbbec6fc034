/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What supervisor and occupant say on the call socket once the occupant is parked. The occupant may
 * be anybody's by then: the supervisor believes nothing of it but these few bounded numbers, and
 * looks into no body. Both are on one machine, so the numbers are as they are in memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bulk.h"
#include "base/err.h"

enum vt_talk_kind {
	/*
	 * to the occupant: name is the tool, NUL, the call's id; body its arguments, or of a
	 * command the program's path and the words, each with its NUL
	 */
	VT_TALK_EXECUTE = 1,
	VT_TALK_ANSWER, /* to the occupant: a tool's value, or with VT_TALK_FAILED a sentence */
	VT_TALK_ASK, /* from it: call the tool `name` with these arguments; id is its own choice */
	VT_TALK_LOG,         /* from it: a line; name is the level */
	VT_TALK_RESULT,      /* from it, once: the value */
	VT_TALK_ERROR,       /* from it, once, instead: name is the error's type, body a sentence */
	VT_TALK_UNABLE, /* from one of commands: the program cannot be executed; id is the errno */
};

enum { VT_TALK_FAILED = 1 };

enum { VT_TALK_NAME_MAX = 512, VT_TALK_LOG_MAX = 64 << 10 };

/* Before each message; then name_len bytes, and body_len. */
struct vt_talk_head {
	uint32_t kind, flags, name_len, reserved;
	uint64_t id;
	uint64_t body_len;
};

struct vt_talk {
	uint32_t kind, flags;
	uint64_t id;
	char    *name; /* ends in NUL */
	size_t   name_len;
	char    *body; /* ends in NUL */
	size_t   body_len;
};

/* The reader's side. Memory grows with what has come, not with what a head promises. */
struct vt_talk_in {
	struct vt_talk_head head;
	size_t head_got;  /* bytes of it */
	char  *data;      /* name, NUL, body, NUL */
	size_t got, cap;  /* bytes of the message's own */
	size_t body_max;
	char   ahead[1024]; /* read, but not looked at */
	size_t ahead_at, ahead_len;
	size_t may_read; /* bytes, until it says that no more has come; SIZE_MAX: as many as
			    there are */
	bool   wary;     /* the owner's to set: the socket is, base/stranger.h */
	struct vt_bulk_spare *spare; /* the owner's to set: where memory for much is to be had;
					NULL: nowhere */
};

void vt_talk_in_init(struct vt_talk_in *in, size_t body_max);
void vt_talk_in_done(struct vt_talk_in *in);

/*
 * The next message: 1, and it is there until the next call; 0: not all of it has come (flags are
 * those of recv(): with MSG_DONTWAIT it does not wait); -EPIPE: the other side is gone; -EMSGSIZE:
 * it is longer than body_max, or than its kind allows; -EBADMSG: it is none.
 */
int vt_talk_next(struct vt_talk_in *in, int fd, int flags, struct vt_talk *ret_talk,
		 struct vt_err *err);

/*
 * Sends as much of a message as the socket takes from *at on, which starts at 0: 1 when all is
 * gone, 0 where some is left (with MSG_DONTWAIT), -EPIPE. name and body need no NUL.
 */
int vt_talk_send(int fd, int flags, const struct vt_talk *talk, size_t *at, struct vt_err *err);
