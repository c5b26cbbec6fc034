/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a folder can be a layer of an overlay that a cell makes, found by making one. */
#pragma once

#include <stddef.h>

#include "host/host.h"

/* Answers, one for each file system that was asked about; there are few. */
struct vt_layer_tries {
	struct {
		uint64_t        dev;
		bool            idmap;
		struct vt_layer answer;
	} items[16];
	size_t count;
};

/*
 * Fills all of *ret_layer but submounts. Returns 0, or the negative errno of a shortage
 * (vt_err_passes()), of which nothing is remembered.
 */
int vt_layer_try(const struct vt_host *host, const char *path, const struct vt_path *seen,
		 struct vt_layer_tries *tries, struct vt_layer *ret_layer);

/* As host->can_work. */
int vt_layer_can_work(const struct vt_host *host, const char *path, const char *folder,
		      const char *base, struct vt_path *ret_base);
