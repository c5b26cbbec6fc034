/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies of a manifest's tools: where they are, whether they can be read, and who can change
 * them.
 */
#pragma once

#include <jansson.h>

#include "manifest/manifest.h"
#include "manifest/mistakes.h"

/*
 * Reads the policy that stands at a place: the name of one, or of a file, or an object, whose text
 * span is. path is the manifest's. False: it is wrong, which is told.
 */
bool vt_policies_read(struct vt_arena *arena, const char *path, const json_t *value,
		      const struct vt_place *place, struct vt_json_span span,
		      struct vt_manifest_policy *ret_policy, struct vt_mistakes *mistakes);
