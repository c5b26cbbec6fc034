/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a manifest, line by line: "FILE:LINE: KEY: what". */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/json_scan.h"
#include "base/str.h"

struct vt_mistakes {
	const char    *file;  /* as messages call it */
	const char    *text;  /* of the file, for its lines */
	struct vt_str *lines; /* each is safe to print */
	size_t         count; /* that were made; lines has no more than VT_MANIFEST_MISTAKES */
};

/* A value of the file, and the key that leads to it: "tools[2]"; "" for the whole. */
struct vt_place {
	struct vt_json_span span;
	const char         *key;
};

/*
 * Adds a mistake in a value. A message may begin with where in it: "policy.limits: what"; then the
 * line is of that.
 */
void vt_mistakes_add(struct vt_mistakes *mistakes, const struct vt_place *place, const char *fmt,
		     ...)
	__attribute__((format(printf, 3, 4)));

/* "FILE:LINE: KEY" of a path within a value, as far as it leads. NULL: no memory. */
const char *vt_mistakes_place(const struct vt_mistakes *mistakes, struct vt_arena *arena,
			      const struct vt_place *place, const char *path);

/* The error that stands for all of them: the first. Returns its negative errno. */
int vt_mistakes_fail(const struct vt_mistakes *mistakes, struct vt_err *err);
