/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a server is reached: Unix sockets that it makes, or that it was given. Runs in the server.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* A socket that was made at a path: it is the owner's alone, and nobody else's at the same time. */
struct vt_listener {
	int   fd;      /* -1: none */
	int   lock_fd; /* of PATH.lock, which is locked as long as the socket is there */
	char *path;
	dev_t dev;     /* of the socket's file */
	ino_t ino;
};

/* There is none yet. */
#define VT_LISTENER_NONE { .fd = -1, .lock_fd = -1 }

/*
 * Makes a socket at path, mode 0600, and listens. A socket that nobody listens at is replaced;
 * -EADDRINUSE where somebody does, -EEXIST where the path is something else. Whether it succeeds or
 * not, vt_listener_done() ends it.
 */
int vt_listener_open(struct vt_listener *listener, const char *path, struct vt_err *err);

/* Closes it, and removes its file if it is still ours. */
void vt_listener_done(struct vt_listener *listener);

/*
 * The usual path: $XDG_RUNTIME_DIR/vitro/socket, as root /run/vitro/socket. Its folder is made
 * where it is not there, for its owner alone.
 */
int vt_listen_usual(char *path, size_t size, bool make, struct vt_err *err);

/* What kind of socket an inherited descriptor is. */
enum vt_inherited { VT_INHERITED_LISTENS, VT_INHERITED_CONNECTED };

/* Looks at one, and keeps it from programs that are started. */
int vt_listen_inherited(int fd, enum vt_inherited *ret_kind, struct vt_err *err);

/*
 * The descriptors that systemd's socket activation gives, which are 3 and those that follow: how
 * many. 0: there are none. The variables that tell of them are removed from the environment.
 */
int vt_listen_activated(void);
