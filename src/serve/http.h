/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page over HTTP, for whoever collects metrics: GET /metrics, on a Unix socket of the owner's
 * or on a port of the loopback. It reads one request, answers, and closes. What asks for something
 * else, or takes more than a few seconds for it, or more than 4 KB, is let go; no more than 16 are
 * there at once. Runs in the server.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "pool/children.h"
#include "watch/loop.h"

struct vt_http;

/*
 * where: an absolute path, or "127.0.0.1:PORT", or "[::1]:PORT". page makes what is shown, each
 * time it is asked for. Anybody on the machine can connect to a port; to the socket its owner and
 * root alone.
 */
int  vt_http_new(struct vt_loop *loop, struct vt_children *children, const char *where,
		 void (*page)(void *user, struct vt_str *out), void *user,
		 struct vt_http **ret_http, struct vt_err *err);
/* NULL is fine. */
void vt_http_free(struct vt_http *http);
