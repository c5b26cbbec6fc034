/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/needs.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"

#define KEY "\"required\""

static bool has(const json_t *list, const char *name)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *one = json_string_value(json_array_get(list, i));

		if (one && strcmp(one, name) == 0)
			return true;
	}
	return false;
}

/* Those that it lacks, each in quotation marks. Names of arguments have nothing to escape. */
static size_t add_missing(struct vt_str *out, const json_t *required, const json_t *needs)
{
	size_t count = 0;

	for (size_t i = 0; i < json_array_size(needs); i++) {
		const char *name = json_string_value(json_array_get(needs, i));

		if (name && !has(required, name))
			vt_str_addf(out, "%s\"%s\"", count++ ? ", " : "", name);
	}
	return count;
}

/* The text of the list. One whose key is written with escapes is not found. */
static bool find_list(struct vt_json_span span, struct vt_json_span *ret_list)
{
	struct vt_json_span key, value;

	while (vt_json_next(&span, &key, &value))
		if ((size_t)(key.end - key.at) == strlen(KEY) &&
		    memcmp(key.at, KEY, strlen(KEY)) == 0) {
			*ret_list = value;
			return true;
		}
	return false;
}

/* Into the list, before its end; or as a member, before all others. */
static void splice(struct vt_str *out, const json_t *value, struct vt_json_span span,
		   const char *missing)
{
	const json_t *required = json_object_get(value, "required");
	struct vt_json_span list;

	if (required && find_list(span, &list)) {
		vt_str_addn(out, span.at, (size_t)(list.end - 1 - span.at));
		vt_str_addf(out, "%s%s", json_array_size(required) ? ", " : "", missing);
		vt_str_addn(out, list.end - 1, (size_t)(span.end - list.end) + 1);
	} else if (!required) {
		vt_str_addf(out, "{" KEY ": [%s]%s", missing, json_object_size(value) ? ", " : "");
		vt_str_addn(out, span.at + 1, (size_t)(span.end - span.at) - 1);
	} else {
		vt_str_addn(out, span.at, (size_t)(span.end - span.at));
	}
}

const char *vt_needs_add(struct vt_arena *arena, const json_t *value, struct vt_json_span span,
			 const json_t *needs)
{
	static const char any[] = "{\"type\": \"object\"}";
	AUTO_JSON json_t *made_of = value ? NULL : json_pack("{s:s}", "type", "object");
	struct vt_str missing, text;

	vt_str_init(&missing);
	vt_str_init(&text);
	if (!value) {
		value = made_of;
		span = vt_json_span(any, strlen(any));
	}
	if (add_missing(&missing, json_object_get(value, "required"), needs))
		splice(&text, value, span, missing.text);
	else
		vt_str_addn(&text, span.at, (size_t)(span.end - span.at));
	const char *made = vt_str_ok(&missing) && vt_str_ok(&text) && value
				   ? vt_arena_dupn(arena, text.text, text.len)
				   : NULL;

	vt_str_done(&missing);
	vt_str_done(&text);
	return made;
}
