/* SPDX-License-Identifier: Apache-2.0 */
/* The members that an object of a manifest may have, each with its text. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "manifest/mistakes.h"

/* One that there may be. */
struct vt_manifest_member {
	const char         *key;
	const json_t       *value; /* NULL: it is not there */
	struct vt_json_span span;
};

/*
 * Finds them in the object that stands at a place, and complains of each member that is none of
 * them. False: it cannot be read on.
 */
bool vt_members_find(struct vt_mistakes *mistakes, const json_t *object,
		    const struct vt_place *place, struct vt_manifest_member *fields, size_t count);
