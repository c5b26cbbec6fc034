/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies of a manifest's tools: where they are, whether they can be read, and who can change
 * them.
 */
#pragma once

#include <jansson.h>

#include "manifest/manifest.h"
#include "manifest/mistakes.h"

/* All of one manifest. Begins zeroed, but for its path. */
struct vt_policies {
	const char *path; /* the manifest's, absolute */
	bool others;      /* some tools have a policy of defaults, which is none of these */
	struct vt_policies_one *first;
};

/*
 * Reads the policy that stands at a place: the name of one, or of a file, or an object, whose text
 * span is. False: it is wrong, which is told.
 */
bool vt_policies_read(struct vt_policies *all, struct vt_arena *arena, const json_t *value,
		      const struct vt_place *place, struct vt_json_span span,
		      struct vt_manifest_policy *ret_policy, struct vt_mistakes *mistakes);

/*
 * When all were read: tells of each that lets its tool change the manifest, or a file that any of
 * them was read from, by whatever name: the tool would say what the others may do.
 */
void vt_policies_judge(const struct vt_policies *all, struct vt_mistakes *mistakes);

/*
 * The manifest, and the files that the policies were read from, or were to be, where that failed:
 * absolute, as they are named, each once and with its NUL.
 */
void vt_policies_list(const struct vt_policies *all, struct vt_str *out);

void vt_policies_done(struct vt_policies *all);
