/* SPDX-License-Identifier: Apache-2.0 */
/* The table of fields as the parser and the schema see it: fields.def with types and places. */
#pragma once

#include <stddef.h>

#include "policy/policy.h"

enum vt_type {
	VT_TYPE_MS,
	VT_TYPE_KB,
	VT_TYPE_MB,
	VT_TYPE_COUNT,  /* a whole number */
	VT_TYPE_NUMBER, /* any number, kept as a double */
	VT_TYPE_PATH,
	VT_TYPE_PATHS,  /* plain paths, kept as grants with from == to */
	VT_TYPE_GRANTS, /* paths, each of which may be moved */
	VT_TYPE_NAMES,
	VT_TYPE_PROTECT, /* relative paths; with none of them the default ones go, too */
	VT_TYPE_ENV,
	VT_TYPE_NETWORK,
	VT_TYPE_SYSCALLS,
	VT_TYPE_REQUIRE
};

struct vt_field_row {
	struct vt_field_info info;
	enum vt_type         type;
	size_t               offset; /* of the member of struct vt_policy */
	double               number; /* the default of a numeric field; -1: none */
	double               least, most;
};

const struct vt_field_row *vt_field_row(enum vt_field field);

/* Whether values of the type are plain numbers (with or without a unit). */
bool vt_type_is_numeric(enum vt_type type);

/* What a policy file writes for the type, to follow "want": "a list of names". */
const char *vt_type_want(enum vt_type type);

/* An enumeration's words in the order of its values, ended by NULL; NULL for other types. */
const char *const *vt_type_words(enum vt_type type);

/* Whether some key has the form "group.x". */
bool vt_field_is_group(const char *group);

/* The known key or group closest to a mistyped key; NULL if none is close. */
const char *vt_field_closest(const char *key);
