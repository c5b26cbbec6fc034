/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A supervisor of many clients: it listens on Unix sockets, and has a session for each client that
 * comes. They share its cells. All of them are its own user's, or root's.
 *
 *	SERVING ──► DRAINING ──► CANCELLING ──► over
 *	   └────────────┴─────────────┴───────────▲
 *
 * DRAINING is a server that was told to end: nobody new comes in, no call is taken, and those that
 * run go on, for so long. CANCELLING is one that waits no longer for them.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/host.h"
#include "serve/listen.h"
#include "serve/session.h"
#include "watch/loop.h"

struct vt_server;

struct vt_server_options {
	unsigned    clients_max;
	unsigned    live_max; /* calls that run at once */
	int64_t     drain_ms; /* how long those that run are waited for at the end */
	/* What is worth a line in a log. */
	void      (*log)(void *user, int level, const char *text);
	void       *user;
};

/* host is borrowed. */
int  vt_server_new(struct vt_loop *loop, struct vt_host *host,
		   const struct vt_server_options *options,
		   struct vt_server **ret_server, struct vt_err *err);
/* Ends whatever there is. NULL is fine. */
void vt_server_free(struct vt_server *server);

/* Listens at a path. */
int vt_server_listen(struct vt_server *server, const char *path, struct vt_err *err);
/*
 * Serves on a descriptor that was inherited, which is the server's from now on: one that listens,
 * or a client's; -EPERM and others: that is turned away, and told why. A server without a listener
 * ends with its last client.
 */
int vt_server_inherit(struct vt_server *server, int fd, struct vt_err *err);

/* Appends a line about each call to the file at path. Once. */
int vt_server_record(struct vt_server *server, const char *path, struct vt_err *err);

/* Shows its metrics there: serve/http.h. Once. */
int vt_server_show(struct vt_server *server, const char *where, struct vt_err *err);

/*
 * Has these tools for its clients, in place of those that it had; or, where one of them cannot be
 * had, those that it had. The source is taken over, also where it fails.
 */
int vt_server_offer(struct vt_server *server, const struct vt_offer_source *source,
		    struct vt_err *err);

/* Ends it, gracefully; the second time at once. The loop is over when it has ended. */
void vt_server_end(struct vt_server *server);
