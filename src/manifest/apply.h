/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of a manifest, in a tool host. */
#pragma once

#include "manifest/manifest.h"
#include <vitro.h>

/*
 * Makes the table of tools that the library takes, ending with one that has no name: all of a manifest, or,
 * where `only` is not NULL, that one. It points into the manifest. *ret_tools is freed with
 * vt_manifest_table_free().
 */
int vt_manifest_table(const struct vt_manifest *manifest, const struct vt_manifest_tool *only,
		      struct vitro_tool **ret_tools, struct vitro_error *error);
/* NULL is fine. */
void vt_manifest_table_free(struct vitro_tool *tools);

/*
 * Has the tools of a manifest in place of all that the tool host has; who watches the tool host is told
 * of each change. Where one of them cannot be had, nothing changes, and the error says why.
 */
int vt_manifest_apply(const struct vt_manifest *manifest, vitro_toolhost *host,
		      struct vitro_error *error);
