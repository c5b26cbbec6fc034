/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbolic links that a path leads through. What a name means is up to whoever can put a link
 * on its way: a cell that may write there, or may have written there before. Pure: the host is
 * asked.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/host.h"

/*
 * Follows an absolute path as the kernel would, and calls each with every link on the way: where it
 * is, free of links itself. What each returns, if it is not 0, ends it and is returned. What is not
 * there leads nowhere. origin is for messages.
 */
int vt_links_follow(const struct vt_host *host, struct vt_arena *arena, const char *path,
		    const char *origin,
		    int (*each)(void *arg, const char *link, struct vt_err *err), void *arg,
		    struct vt_err *err);

/* Whether a link is the system's own: no cell of the caller's can have made it. */
bool vt_links_trusted(const struct vt_host *host, const char *link);
