/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest whose tools a server offers, for as long as it is there. */
#pragma once

#include "cli/log.h"
#include "manifest/watch.h"
#include "serve/server.h"

/* All zero: there is none. */
struct vt_offering {
	struct vt_loop           *loop;
	struct vt_server         *server;
	struct vt_cli_log        *log;
	struct vt_manifest_watch *manifest;
	struct vt_watch           watch;
};

/*
 * Offers the tools, and reads the manifest again when it was changed; one that is wrong then
 * changes nothing. What is wrong with it goes to standard error, and from then on to the log, which
 * is borrowed.
 */
int vt_offering_begin(struct vt_offering *offering, struct vt_loop *loop, struct vt_server *server,
		      struct vt_cli_log *log, const char *path, struct vt_err *err);
void vt_offering_end(struct vt_offering *offering);
