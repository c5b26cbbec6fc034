/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest that is watched, with all files that its policies were read from: when one of them was
 * changed, the manifest is read again, and whoever watches is given what is there now, or what is
 * wrong with it; then the tools that there are stay. It is the folders that are watched, so that a
 * file which an editor puts in place of the old one is seen, and a link on the way that leads to
 * another file; a file that is still being written is not.
 *
 * A descriptor says when there is something to do, which is then done by a call: there is no
 * thread, and nothing waits. A folder that was moved or removed is not followed.
 */
#pragma once

#include "manifest/manifest.h"

struct vt_manifest_watch;

/*
 * The manifest as it is now, which is gone when this returns; or NULL, and what is wrong with it,
 * as vt_manifest_load() tells it.
 */
typedef void vt_manifest_changed(void *user, const struct vt_manifest *manifest,
				 const char *mistakes);

/* Watches the manifest at path from now on. Nothing is told yet: who begins loads it then. */
int vt_manifest_watch_new(const char *path, vt_manifest_changed *changed, void *user,
			  struct vt_manifest_watch **ret_watch, struct vt_err *err);
/* NULL is fine. */
void vt_manifest_watch_free(struct vt_manifest_watch *watch);

/*
 * The manifest as it is now, as vt_manifest_load() gives it. What it was read from is watched, and
 * was before it was read last.
 */
int vt_manifest_watch_load(struct vt_manifest_watch *watch, struct vt_manifest **ret_manifest,
			   struct vt_str *mistakes, struct vt_err *err);

/* To be polled for reading. The same one for its life. */
int vt_manifest_watch_fd(const struct vt_manifest_watch *watch);
/* Takes note of what happened, without waiting, and tells it. How many times: 0 or 1. */
int vt_manifest_watch_dispatch(struct vt_manifest_watch *watch);
