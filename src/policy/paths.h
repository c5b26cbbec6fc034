/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths as a policy writes them, made absolute and normal without asking the file system: free of
 * ".", ".." and "//", with no '/' at the end.
 *
 * A relative path may begin with "..", and climbs from the folder it is relative to. A ".." after a
 * name is refused: where that name is a symbolic link, the kernel would go somewhere else than the
 * text says, and a grant must mean what is read. For the same reason the folder that paths are
 * relative to should be free of links, as getcwd() and realpath() give it.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "policy/source.h"

/* A path on the host, relative to source->base_dir unless it is absolute. It lives in the arena. */
int vt_path_resolve(struct vt_arena *arena, const struct vt_source *source, const char *text,
		    const char **ret_path, struct vt_err *err);

/* A place inside that something is moved to: absolute, and not "/". */
int vt_path_place(struct vt_arena *arena, const struct vt_source *source, const char *text,
		  const char **ret_path, struct vt_err *err);

/* Whether text can be a path at all: not empty, not too long, no control characters, no "~/". */
int vt_path_check(const struct vt_source *source, const char *text, struct vt_err *err);
