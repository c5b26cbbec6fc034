/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/closest.h"

/* Of each type: its class, what holds it in struct vt_policy, and its word in tables for a person.
 */
#define KIND_MS       NUMERIC, int64_t, "milliseconds"
#define KIND_KB       NUMERIC, int64_t, "KB"
#define KIND_MB       NUMERIC, int64_t, "MB"
#define KIND_COUNT    NUMERIC, int64_t, "count"
#define KIND_NUMBER   NUMERIC, double, "number"
#define KIND_PATH     TEXTUAL, const char *, "path"
#define KIND_PATHS    TEXTUAL, struct vt_grants, "paths"
#define KIND_GRANTS   TEXTUAL, struct vt_grants, "paths"
#define KIND_NAMES    TEXTUAL, struct vt_strings, "names"
#define KIND_PROTECT  TEXTUAL, struct vt_strings, "names"
#define KIND_ENV      TEXTUAL, struct vt_strings, "map"
#define KIND_NETWORK  TEXTUAL, enum vt_network, "word"
#define KIND_SYSCALLS TEXTUAL, enum vt_syscalls, "word or path"
#define KIND_REQUIRE  TEXTUAL, enum vt_require, "word"

#define CLASS_OF(class, ctype, word) class
#define CTYPE_OF(class, ctype, word) ctype
#define WORD_OF(class, ctype, word)  word
#define CALL(macro, ...)             macro(__VA_ARGS__)
#define PASTE_(a, b)                 a##b
#define PASTE(a, b)                  PASTE_(a, b)

/* fields.def gives defaults and ranges as bare tokens; what they mean depends on the class. */
#define FALLBACK_NUMERIC(value)    ((value) == -1 ? "none" : #value)
#define FALLBACK_TEXTUAL(value)    value
#define DEFAULT_NUMERIC(value)     (value)
#define DEFAULT_TEXTUAL(value)     0
#define RANGE_NUMERIC(least, most) #least " to " #most
#define RANGE_TEXTUAL(least, most) ""
#define BY_CLASS(prefix, kind)     PASTE(prefix, CALL(CLASS_OF, KIND_##kind))

/* clang-format off */
static const struct vt_field_row rows[VT_FIELD_COUNT] = {
#define FIELD(id, name, kind, member, def, low, high, option, operand, text) \
	[VT_FIELD_##id] = { \
		.info = { \
			.key = name, \
			.type = CALL(WORD_OF, KIND_##kind), \
			.fallback = BY_CLASS(FALLBACK_, kind)(def), \
			.range = BY_CLASS(RANGE_, kind)(low, high), \
			.flag = option, \
			.argument = operand, \
			.sentence = text, \
		}, \
		.type = VT_TYPE_##kind, \
		.offset = offsetof(struct vt_policy, member), \
		.number = BY_CLASS(DEFAULT_, kind)(def), \
		.least = low, \
		.most = high, \
	},
#include "policy/fields.def"
#undef FIELD
};

/* Members are written through their offset, so that each must be what its type says. */
#define FIELD(id, name, kind, member, ...) \
	_Static_assert(__builtin_types_compatible_p(CALL(CTYPE_OF, KIND_##kind), \
			__typeof__(((struct vt_policy *)0)->member)), name " has another type");
#include "policy/fields.def"
#undef FIELD
/* clang-format on */

_Static_assert(VT_FIELD_COUNT <= 64, "struct vt_policy.given has 64 bits");

static const char *const wants[] = {
	[VT_TYPE_MS] = "a number of milliseconds or a string such as \"5s\"",
	[VT_TYPE_KB] = "a number of KB or a string such as \"64K\"",
	[VT_TYPE_MB] = "a number of MB or a string such as \"256M\"",
	[VT_TYPE_COUNT] = "a whole number",
	[VT_TYPE_NUMBER] = "a number",
	[VT_TYPE_PATH] = "a path as a string",
	[VT_TYPE_PATHS] = "a list of paths",
	[VT_TYPE_GRANTS] = "a list of paths or {\"from\": path, \"to\": path}",
	[VT_TYPE_NAMES] = "a list of names",
	[VT_TYPE_PROTECT] = "a list of names",
	[VT_TYPE_ENV] = "an object of strings",
	[VT_TYPE_NETWORK] = "\"none\", \"loopback\" or \"host\"; there is no list of hosts yet, "
			    "so give the code a tool that makes the requests",
	[VT_TYPE_SYSCALLS] = "\"default\", \"strict\" or the path of an OCI seccomp profile, with "
			     "a '/' or ending in .json",
	[VT_TYPE_REQUIRE] = "\"full\", \"strict\" or \"best-effort\"",
};

/* The order is that of the enumerations in policy.h. */
static const char *const network_words[] = { "none", "loopback", "host", NULL };
static const char *const syscalls_words[] = { "default", "strict", NULL };
static const char *const require_words[] = { "best-effort", "full", "strict", NULL };

const struct vt_field_row *vt_field_row(enum vt_field field)
{
	return &rows[field];
}

const struct vt_field_info *vt_field_info(enum vt_field field)
{
	return &rows[field].info;
}

int vt_field_find(const char *key)
{
	for (int field = 0; field < VT_FIELD_COUNT; field++) {
		if (strcmp(rows[field].info.key, key) == 0)
			return field;
	}
	return -ENOENT;
}

bool vt_type_is_numeric(enum vt_type type)
{
	return type <= VT_TYPE_NUMBER;
}

const char *vt_type_want(enum vt_type type)
{
	return wants[type];
}

const char *const *vt_type_words(enum vt_type type)
{
	switch (type) {
	case VT_TYPE_NETWORK:
		return network_words;
	case VT_TYPE_SYSCALLS:
		return syscalls_words;
	case VT_TYPE_REQUIRE:
		return require_words;
	default:
		return NULL;
	}
}

const char *vt_require_name(enum vt_require require)
{
	return require_words[require];
}

bool vt_field_is_group(const char *group)
{
	size_t len = strlen(group);

	for (int field = 0; field < VT_FIELD_COUNT; field++) {
		const char *key = rows[field].info.key;

		if (strncmp(key, group, len) == 0 && key[len] == '.')
			return true;
	}
	return false;
}

/* A flag's name is another word for its key: "limits.timeout" means limits.wall_ms. */
static void try_flag(struct vt_closest *closest, const struct vt_field_info *info, size_t group)
{
	char known[VT_CLOSEST_LONGEST + 2]; /* cut: too long to be tried */
	const char *name = info->flag + strlen("--");

	(void)snprintf(known, sizeof(known), "%.*s%s", (int)group, info->key, name);
	vt_closest_try(closest, known, info->key);
}

const char *vt_field_closest(const char *key)
{
	static const char *const others[] = { "limits", "files", "env", "extends" };
	struct vt_closest closest;

	vt_closest_init(&closest, key);
	for (int field = 0; field < VT_FIELD_COUNT; field++) {
		const struct vt_field_info *info = vt_field_info(field);
		const char *dot = strchr(info->key, '.');
		/* A key may come without its group, as in {"wall_ms": 500}. */
		size_t group = dot && strchr(key, '.') ? (size_t)(dot + 1 - info->key) : 0;

		vt_closest_try(&closest, info->key, info->key);
		if (dot && !group)
			vt_closest_try(&closest, dot + 1, info->key);
		if (info->flag)
			try_flag(&closest, info, group);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		vt_closest_try(&closest, others[i], others[i]);
	return closest.best;
}
