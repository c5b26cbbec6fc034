/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/oci.h"
#include "policy/paths.h"

/* Enumerations are stored by their number. */
_Static_assert(sizeof(enum vt_network) == sizeof(unsigned) &&
		       sizeof(enum vt_syscalls) == sizeof(unsigned) &&
		       sizeof(enum vt_require) == sizeof(unsigned),
	       "an enumeration is as large as an unsigned int");

int(vt_value_wrong)(const json_t *value, const char *want, const struct vt_source *source,
		    struct vt_err *err)
{
	char number[40];
	const char *found = number;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		found = "an object";
		break;
	case JSON_ARRAY:
		found = "a list";
		break;
	case JSON_STRING:
		return vt_source_fail(err, source, EINVAL, "found the string \"%s\", want %s",
				      vt_show(json_string_value(value)).text, want);
	case JSON_INTEGER:
	case JSON_REAL:
		(void)snprintf(number, sizeof(number), "the number %.15g",
			       json_number_value(value)); /* 35 bytes at most */
		break;
	case JSON_TRUE:
		found = "true";
		break;
	case JSON_FALSE:
		found = "false";
		break;
	case JSON_NULL:
		found = "null";
		break;
	}
	return vt_source_fail(err, source, EINVAL, "found %s, want %s", found, want);
}

static int word_text(struct vt_policy *policy, enum vt_field field, const char *text,
		     const struct vt_source *source, struct vt_err *err)
{
	enum vt_type type = vt_field_row(field)->type;
	const char *const *words = vt_type_words(type);

	for (unsigned value = 0; words[value]; value++) {
		if (strcmp(words[value], text) == 0) {
			memcpy(vt_value_member(policy, field), &value, sizeof(value));
			vt_value_mark(policy, field);
			return 0;
		}
	}
	return vt_source_fail(err, source, EINVAL, "'%s' is not known, want %s", vt_show(text).text,
			      vt_type_want(type));
}

static int path_text(struct vt_policy *policy, enum vt_field field, const char *text,
		     const struct vt_source *source, struct vt_err *err)
{
	const char *path;
	int status = vt_path_resolve(policy->arena, source, text, &path, err);

	if (status < 0)
		return status;
	*(const char **)vt_value_member(policy, field) = path;
	vt_value_mark(policy, field);
	return 0;
}

/* A file is told from a word by its look, so that a misspelled word is not looked for as a file. */
static bool is_profile(const char *text)
{
	const char *end = strrchr(text, '.');

	return strchr(text, '/') || (end && strcmp(end, ".json") == 0);
}

static int profile_text(struct vt_policy *policy, enum vt_field field, const char *text,
			const struct vt_source *source, struct vt_err *err)
{
	const enum vt_syscalls value = VT_SYSCALLS_PROFILE;
	const char *path;
	int status = vt_path_resolve(policy->arena, source, text, &path, err);

	if (status < 0)
		return status;
	struct vt_err why = { 0 };

	/* Who asks for the profile is named too: its own name says nothing of that. */
	status = vt_oci_load(policy->arena, path, policy->plain_files, &policy->profile, &why);
	if (status < 0)
		return vt_source_fail(err, source, why.num, "%s", why.what);
	status = vt_list_add_source(policy, path, source, err);
	if (status < 0)
		return status;
	memcpy(vt_value_member(policy, field), &value, sizeof(value));
	vt_value_mark(policy, field);
	return 0;
}

int vt_value_text(struct vt_policy *policy, enum vt_field field, const char *text,
		  const struct vt_source *source, struct vt_err *err)
{
	enum vt_type type = vt_field_row(field)->type;

	if (vt_type_is_numeric(type))
		return vt_number_text(policy, field, text, source, err);
	if (type == VT_TYPE_SYSCALLS && is_profile(text))
		return profile_text(policy, field, text, source, err);
	if (vt_type_words(type))
		return word_text(policy, field, text, source, err);
	if (type == VT_TYPE_PATH)
		return path_text(policy, field, text, source, err);
	return vt_list_text(policy, field, text, source, err);
}

int vt_value_json(struct vt_policy *policy, enum vt_field field, const json_t *value,
		  const struct vt_source *source, struct vt_err *err)
{
	enum vt_type type = vt_field_row(field)->type;

	if (vt_type_is_numeric(type))
		return vt_number_json(policy, field, value, source, err);
	if (!vt_type_words(type) && type != VT_TYPE_PATH)
		return vt_list_json(policy, field, value, source, err);
	if (!json_is_string(value))
		return vt_value_wrong(value, vt_type_want(type), source, err);
	return vt_value_text(policy, field, json_string_value(value), source, err);
}
