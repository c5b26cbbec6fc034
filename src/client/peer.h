/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor, as a client sees it: a process at the other end of a socket that takes and sends
 * messages. It is embedded in the tool host.
 *
 * Nothing here waits but vt_peer_read_waiting() and vt_peer_await(). One that breaks the
 * rules, or is gone, is lost, once and for good: then the socket is closed, and every function says
 * so. One that says "bye" is lost of ESHUTDOWN: what it has not answered by then it has not begun.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/frame.h"
#include "base/head.h"
#include "client/message.h"
#include "client/start.h"

struct vt_peer_held;

struct vt_peer {
	struct vt_start      process;
	char                 program[PATH_MAX]; /* which one it is; of a server, its socket */
	bool                 is_server;
	int                  socket; /* -1 once it is lost */
	int                  epoll;  /* what the program polls: the two others */
	/* readable where there is something to do that no message tells of */
	int                  event;
	struct vt_frames_in  in;
	struct vt_frames_out out;
	struct vt_str        head;   /* the one that is being written */
	bool                 flushing; /* EPOLLOUT is waited for */
	bool                 awake;    /* event is readable */
	bool                 lost;
	/* not 0 but in a fork of the process that started it; a page */
	const volatile char *own;
	struct vt_err        why;
	struct vt_peer_held *held, **held_end, *shown; /* see vt_peer_await() */
};

/* There is none yet. */
void vt_peer_clear(struct vt_peer *peer);
/* Starts it, after vt_peer_clear(). Whether it succeeds or not, vt_peer_done() ends it. */
int vt_peer_init(struct vt_peer *peer, struct vt_err *err);
/* The same, but it is a server, which is there already. */
int vt_peer_connect(struct vt_peer *peer, const char *path, struct vt_err *err);
/* Nothing is sent or received any more, which ends it. */
void vt_peer_close(struct vt_peer *peer);
/* Ends it, and waits for that. */
void vt_peer_done(struct vt_peer *peer);

/* Begins a message: what vt_head_add_* add to the head that it returns. */
struct vt_str *vt_peer_begin(struct vt_peer *peer, const char *what);
/* Sends it. -EMSGSIZE: it is too large, and nothing was sent; every other error: it is lost. */
int vt_peer_send(struct vt_peer *peer, const void *body, size_t len, struct vt_err *err);

/* Sends what is queued. */
void vt_peer_flush(struct vt_peer *peer);
/* Takes what came into the buffer. Whether there was anything. */
bool vt_peer_read(struct vt_peer *peer);
/*
 * The same, and waits for it; what is queued is sent meanwhile. There may be nothing when it
 * returns.
 */
void vt_peer_read_waiting(struct vt_peer *peer);
/* The next message, of those that were held back first. Whether there is one. */
bool vt_peer_next(struct vt_peer *peer, struct vt_message *ret_message);
/* Whether messages are held back. */
bool vt_peer_holds(const struct vt_peer *peer);

/*
 * Gives the memory that the message is in to the caller, who frees it, where it is large and
 * nothing else is in it; NULL: it is to be copied.
 */
void *vt_peer_take(struct vt_peer *peer);

/* What a message is to who waits for some. */
enum vt_peer_taken {
	VT_PEER_OTHER, /* none of those */
	VT_PEER_TAKEN, /* one of them, and more are to come */
	VT_PEER_LAST,
	VT_PEER_WRONG, /* it breaks the protocol, and *err says how */
};
typedef enum vt_peer_taken vt_peer_taker(void *user, const struct vt_message *message,
					 struct vt_err *err);

/*
 * Sends what is queued, and waits for messages until one was the last that is wanted. Others are
 * held back for vt_peer_next(), so that no call-back is made from here. 0; -ETIMEDOUT, where
 * timeout_ms is not negative; or what the peer was lost of.
 */
int vt_peer_await(struct vt_peer *peer, int timeout_ms, vt_peer_taker *take, void *user,
		  struct vt_err *err);

/* Makes the descriptor readable, or not. */
void vt_peer_wake(struct vt_peer *peer, bool awake);

/*
 * It is not to be talked with any more, since its last message breaks the protocol: what it said
 * after that does not count. The first reason to lose it stays.
 */
void vt_peer_refuse(struct vt_peer *peer, const struct vt_err *why);
