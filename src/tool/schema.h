/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON schemas of tools' inputs: compiled once, then every call's arguments are checked against
 * them in the client, before a cell is used. What is understood is draft 2020-12 as tools use it;
 * schema_keywords.c lists it. References are local ("#/$defs/x"); nothing is ever fetched. A
 * keyword that is not understood is accepted with a warning, since a schema may be richer than its
 * checker; one that is understood and wrong is an error.
 *
 * Schemas and values may both be hostile: sizes, depths and the work of one check are bounded,
 * regular expressions included. A check that meets a bound fails. Compiled schemas do not change,
 * and any number of threads may check against one.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum {
	VT_SCHEMA_MAX_NODES    = 10000,   /* schemas in a schema */
	VT_SCHEMA_MAX_VALUES   = 100000,  /* JSON values in it, annotations included */
	VT_SCHEMA_MAX_DEPTH    = 128,     /* of a schema as JSON */
	VT_SCHEMA_MAX_NESTING  = 512,     /* of schemas applied in one another, in a check */
	VT_SCHEMA_MAX_PATTERN  = 4096,    /* bytes of one regular expression */
	VT_SCHEMA_MAX_PATTERNS = 4 << 20, /* bytes of all, compiled */
	VT_SCHEMA_MAX_WARNINGS = 32,
	VT_SCHEMA_MAX_STEPS    = 2000000, /* of one check: some 50 ms of work */
};

struct vt_schema;

/* What a schema says that is not checked, one line for each keyword. The schema owns it. */
struct vt_schema_warnings {
	const char *const *items;
	size_t             count;
};

/*
 * Compiles a schema. name is what messages call it ("inputSchema"); an error is -EINVAL (it is
 * wrong; the message begins with the place, "inputSchema.properties.path.type"), -E2BIG (it is too
 * big) or -ENOMEM. root is copied. ret_warnings may be NULL. The caller owns *ret_schema:
 * vt_schema_free().
 */
int vt_schema_compile(const json_t *root, const char *name, struct vt_schema **ret_schema,
		      struct vt_schema_warnings *ret_warnings, struct vt_err *err);

/*
 * Checks a value. name is what messages call it ("arguments"). 0: it is valid. -EINVAL: it is not,
 * and one message says where, what is wanted and what was found, in a line that is safe to print:
 * "arguments.files[2].name: want a string, found 5". -E2BIG: finding out would take too much work.
 * -EILSEQ: a text is not UTF-8. -ENOMEM. Nothing is allocated but for a pattern, propertyNames and
 * uniqueItems of many.
 */
int vt_schema_check(const struct vt_schema *schema, const json_t *value, const char *name,
		    struct vt_err *err);

/*
 * Whether a value that is JSON text fits, seen without reading it in full. False: that is not
 * known, and it takes vt_schema_check() to tell.
 */
bool vt_schema_fits_plainly(const struct vt_schema *schema, const char *text, size_t len);

/* What it was compiled from; the schema's own. */
const json_t *vt_schema_source(const struct vt_schema *schema);

/* NULL is fine. */
void vt_schema_free(struct vt_schema *schema);
