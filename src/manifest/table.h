/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of a manifest, as the library takes them. */
#pragma once

#include "manifest/manifest.h"
#include <vitro.h>

/*
 * Makes the table of tools that the library takes, ending with one that has no name: all of a
 * manifest, or, where `only` is not NULL, that one. It points into the manifest. *ret_tools is
 * freed with vt_manifest_table_free().
 */
int vt_manifest_table(const struct vt_manifest *manifest, const struct vt_manifest_tool *only,
		      struct vitro_tool **ret_tools, struct vitro_error *error);
/* NULL is fine. */
void vt_manifest_table_free(struct vitro_tool *tools);
