/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a seccomp profile of the OCI runtime specification, with what Docker and Podman add to it
 * (includes, excludes, archMap, errno by name). A profile is checked as a whole: whatever is not
 * understood is an error, since a misspelled condition would widen a rule.
 *
 * What it says is the same on every machine; what it means on this one is kernel/seccomp_oci.h's.
 */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "base/err.h"
#include "kernel/seccomp_oci.h"

/* Reads the file at path, which is absolute. *ret_profile is in the arena. */
int vt_oci_load(struct vt_arena *arena, const char *path, bool plain,
		const struct vt_oci_profile **ret_profile, struct vt_err *err);

/* The same from JSON that was read; name is what messages call it. */
int vt_oci_parse(struct vt_arena *arena, const json_t *root, const char *name,
		 const struct vt_oci_profile **ret_profile, struct vt_err *err);
