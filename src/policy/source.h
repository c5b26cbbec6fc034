/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a value comes from: what messages name, and what its relative paths are relative to. Every
 * error of the policy layer reads "source: key: what is wrong", made here.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct vt_source {
	const char *name;     /* "policy.json", "--timeout" */
	const char *key;      /* "limits.wall_ms", "files.read[2].from"; "" where there is none */
	const char *base_dir; /* absolute; NULL: relative paths are errors */
};

/* Fills *err, step VT_STEP_POLICY, and returns -num. The name is escaped; fmt's texts are not. */
int vt_source_fail(struct vt_err *err, const struct vt_source *source, int num, const char *fmt,
		   ...) __attribute__((format(printf, 4, 5)));

/* The same for want of memory. */
int vt_source_nomem(struct vt_err *err);

#ifdef VITRO_ANALYZED /* as of vt_fail() */
#define vt_source_fail(...)  vt_negative(vt_source_fail(__VA_ARGS__))
#define vt_source_nomem(...) vt_negative(vt_source_nomem(__VA_ARGS__))
#endif

/* Whether its name is that of the key, as for one that was set by a function. */
bool vt_source_is_key(const struct vt_source *source);

/* A user's text as a message can show it: escaped, and cut when it is long. */
struct vt_shown {
	char text[100];
};

/* Used as vt_show(x).text within one expression. */
struct vt_shown vt_show(const char *text);
