/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions about paths that struct vt_host carries, as this machine answers them, and what is
 * remembered of the answers: a server asks them for as long as it lives. vt_host_look_anew() and
 * vt_host_trouble() are here, too. Nothing on the host is changed.
 */
#pragma once

#include "host/host.h"

/*
 * Gives the host its questions. Returns 0 or -ENOMEM. vt_paths_done() releases what they remember.
 */
int vt_paths_init(struct vt_host *host);
/* Fine for a host that has none. */
void vt_paths_done(struct vt_host *host);

/* host->step. Of the host it asks nothing, as long as that is not privileged. */
int vt_paths_step(const struct vt_host *host, const char *path, struct vt_path *ret_path,
		  char *target, size_t size);

/* host->list, for the probes as well. */
int vt_paths_list(const struct vt_host *host, const char *path,
		  void (*each)(void *arg, const char *name), void *arg);
