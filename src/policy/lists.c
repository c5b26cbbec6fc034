/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "policy/paths.h"
#include "policy/value.h"

/* Room for "files.write[4294967295].from". */
#define KEY_SIZE 64

/*
 * Makes room for one more item. Arrays double at each power of two, so that no capacity need be
 * kept; what an arena abandons is bounded by what it holds.
 */
static int grow(struct vt_arena *arena, void **items, size_t count, size_t size,
		const struct vt_source *source, struct vt_err *err)
{
	if (count >= VT_LIST_MOST)
		return vt_source_fail(err, source, E2BIG, "more than %d entries", VT_LIST_MOST);
	if (count & (count - 1))
		return 0;
	void *more = vt_arena_array(arena, count ? count * 2 : 1, size);

	if (!more)
		return vt_source_nomem(err);
	if (count)
		memcpy(more, *items, count * size);
	*items = more;
	return 0;
}

/* A list starts empty at the first source that sets it, even if with nothing. */
static void begin(struct vt_policy *policy, enum vt_field field)
{
	if (vt_policy_gave(policy, field))
		return;
	switch (vt_field_row(field)->type) {
	case VT_TYPE_NAMES:
	case VT_TYPE_PROTECT:
	case VT_TYPE_ENV:
		*(struct vt_strings *)vt_value_member(policy, field) = (struct vt_strings){ 0 };
		break;
	default:
		*(struct vt_grants *)vt_value_member(policy, field) = (struct vt_grants){ 0 };
		break;
	}
	vt_value_mark(policy, field);
}

static int add_string(struct vt_policy *policy, struct vt_strings *list, const char *text,
		      const struct vt_source *source, struct vt_err *err)
{
	void *items = list->items;
	int status = grow(policy->arena, &items, list->count, sizeof(*list->items), source, err);

	if (status < 0)
		return status;
	list->items = items;
	const char *copy = vt_arena_dup(policy->arena, text);

	if (!copy)
		return vt_source_nomem(err);
	list->items[list->count++] = copy;
	return 0;
}

int vt_list_add_source(struct vt_policy *policy, const char *path, const struct vt_source *source,
		       struct vt_err *err)
{
	return add_string(policy, &policy->sources, path, source, err);
}

static int check_name(const char *name, const struct vt_source *source, struct vt_err *err)
{
	if (!*name)
		return vt_source_fail(err, source, EINVAL, "the name of the variable is empty");
	for (const char *at = name; *at; at++) {
		if (*at == '=' || (unsigned char)*at < 0x20 || *at == 0x7f)
			return vt_source_fail(
				err, source, EINVAL,
				"'%s' cannot be the name of a variable: it has %s in it",
				vt_show(name).text, *at == '=' ? "a '='" : "a control character");
	}
	return 0;
}

/* "*" stands alone, and swallows what is listed beside it. */
static int add_name(struct vt_policy *policy, enum vt_field field, const char *name,
		    const struct vt_source *source, struct vt_err *err)
{
	struct vt_strings *list = vt_value_member(policy, field);
	int status = check_name(name, source, err);

	if (status < 0)
		return status;
	if (strcmp(name, "*") == 0)
		list->count = 0;
	else if (strchr(name, '*'))
		return vt_source_fail(err, source, EINVAL,
				      "'%s': there are no patterns; \"*\" alone passes all",
				      vt_show(name).text);
	else if (list->count == 1 && strcmp(list->items[0], "*") == 0)
		return 0;
	return add_string(policy, list, name, source, err);
}

/* A name, or a path below any folder: what git and editors look for lies beside the rest. */
static int add_protected(struct vt_policy *policy, enum vt_field field, const char *name,
			 const struct vt_source *source, struct vt_err *err)
{
	int status = vt_path_check(source, name, err);

	if (status < 0)
		return status;
	if (*name == '/')
		return vt_source_fail(
			err, source, EINVAL,
			"'%s' is a path of the host, want a name such as ci/run.sh; a "
			"grant for reading, --read, keeps one path as it is",
			vt_show(name).text);
	if (strpbrk(name, "*?["))
		return vt_source_fail(err, source, EINVAL, "'%s': there are no patterns",
				      vt_show(name).text);
	for (const char *part = name, *end; *part; part = end + (*end == '/')) {
		size_t len = strcspn(part, "/");

		end = part + len;
		if (len == 0 || strncmp(part, "..", len) == 0 || (*end == '/' && !end[1]))
			return vt_source_fail(err, source, EINVAL,
					      "'%s': want a name, or names with a '/' between them",
					      vt_show(name).text);
	}
	return add_string(policy, vt_value_member(policy, field), name, source, err);
}

static int add_variable(struct vt_policy *policy, enum vt_field field, const char *name,
			const char *value, const struct vt_source *source, struct vt_err *err)
{
	struct vt_strings *list = vt_value_member(policy, field);
	int status = check_name(name, source, err);

	if (status < 0)
		return status;
	const char *pair = vt_arena_printf(policy->arena, "%s=%s", name, value);
	size_t len = strlen(name) + 1;

	if (!pair)
		return vt_source_nomem(err);
	for (size_t i = 0; i < list->count; i++) {
		if (strncmp(list->items[i], pair, len) == 0) {
			list->items[i] = pair;
			return 0;
		}
	}
	return add_string(policy, list, pair, source, err);
}

/* What later messages call a grant: "files.read[0] of p.json"; a flag is its own name. */
static const char *grant_origin(struct vt_arena *arena, const struct vt_source *source)
{
	struct vt_shown shown = vt_show(source->name);

	if (strncmp(source->name, "--", 2) == 0)
		return vt_arena_dup(arena, shown.text);
	if (vt_source_is_key(source))
		return vt_arena_dup(arena, source->key);
	return vt_arena_printf(arena, "%s of %s", source->key, shown.text);
}

static int add_grant(struct vt_policy *policy, enum vt_field field, const char *from,
		     const char *to, const struct vt_source *source, struct vt_err *err)
{
	struct vt_grants *list = vt_value_member(policy, field);
	void *items = list->items;
	int status = grow(policy->arena, &items, list->count, sizeof(*list->items), source, err);

	if (status < 0)
		return status;
	list->items = items;
	const char *origin = grant_origin(policy->arena, source);

	if (!origin)
		return vt_source_nomem(err);
	list->items[list->count++] = (struct vt_grant){ from, to, origin };
	return 0;
}

static int add_path(struct vt_policy *policy, enum vt_field field, const char *text,
		    const struct vt_source *source, struct vt_err *err)
{
	const char *path;
	int status = vt_path_resolve(policy->arena, source, text, &path, err);

	return status < 0 ? status : add_grant(policy, field, path, path, source, err);
}

/* One of the two paths of a move, with its own key in messages: files.read[0].from. */
static int move_path(struct vt_arena *arena, const json_t *move, const char *member,
		     const char **ret_path, const struct vt_source *source, struct vt_err *err)
{
	const json_t *value = json_object_get(move, member);
	char key[KEY_SIZE];
	struct vt_source part = { source->name, key, source->base_dir };

	if (!value)
		return vt_source_fail(err, source, EINVAL,
				      "a move has \"from\" and \"to\"; there is no \"%s\"", member);
	(void)snprintf(key, sizeof(key), "%s.%s", source->key, member); /* keys are short */
	if (!json_is_string(value))
		return vt_value_wrong(value, "a path as a string", &part, err);
	if (strcmp(member, "to") == 0)
		return vt_path_place(arena, &part, json_string_value(value), ret_path, err);
	return vt_path_resolve(arena, &part, json_string_value(value), ret_path, err);
}

static int add_move(struct vt_policy *policy, enum vt_field field, const json_t *move,
		    const struct vt_source *source, struct vt_err *err)
{
	const char *name, *from, *to;
	json_t *value;

	json_object_foreach((json_t *)move, name, value)
	{
		if (strcmp(name, "from") != 0 && strcmp(name, "to") != 0)
			return vt_source_fail(err, source, EINVAL,
					      "unknown key '%s'; a move has \"from\" and \"to\"",
					      vt_show(name).text);
	}
	int status = move_path(policy->arena, move, "from", &from, source, err);

	if (status < 0)
		return status;
	status = move_path(policy->arena, move, "to", &to, source, err);
	return status < 0 ? status : add_grant(policy, field, from, to, source, err);
}

/* One element of a list: a string, or a move where moves are taken. */
static int add_element(struct vt_policy *policy, enum vt_field field, const json_t *value,
		       const struct vt_source *source, struct vt_err *err)
{
	enum vt_type type = vt_field_row(field)->type;

	if (type == VT_TYPE_GRANTS && json_is_object(value))
		return add_move(policy, field, value, source, err);
	if (!json_is_string(value))
		return vt_value_wrong(
			value,
			type == VT_TYPE_NAMES || type == VT_TYPE_PROTECT ? "a name as a string"
			: type == VT_TYPE_PATHS                          ? "a path as a string"
						: "a path or {\"from\": path, \"to\": path}",
			source, err);
	if (type == VT_TYPE_NAMES)
		return add_name(policy, field, json_string_value(value), source, err);
	if (type == VT_TYPE_PROTECT)
		return add_protected(policy, field, json_string_value(value), source, err);
	return add_path(policy, field, json_string_value(value), source, err);
}

static int add_map(struct vt_policy *policy, enum vt_field field, const json_t *map,
		   const struct vt_source *source, struct vt_err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)map, name, value)
	{
		int status;

		if (!json_is_string(value)) {
			char want[160];

			(void)snprintf(want, sizeof(want), "a string for '%s'", vt_show(name).text);
			return vt_value_wrong(value, want, source, err);
		}
		status = add_variable(policy, field, name, json_string_value(value), source, err);
		if (status < 0)
			return status;
	}
	return 0;
}

int vt_list_json(struct vt_policy *policy, enum vt_field field, const json_t *value,
		 const struct vt_source *source, struct vt_err *err)
{
	enum vt_type type = vt_field_row(field)->type;
	bool map = type == VT_TYPE_ENV;

	if (map ? !json_is_object(value) : !json_is_array(value))
		return vt_value_wrong(value, vt_type_want(type), source, err);
	begin(policy, field);
	if (map)
		return add_map(policy, field, value, source, err);
	if (type == VT_TYPE_PROTECT && !json_array_size(value))
		((struct vt_strings *)vt_value_member(policy, field))->count = 0;
	size_t index;
	json_t *element;

	json_array_foreach((json_t *)value, index, element)
	{
		char key[KEY_SIZE];
		struct vt_source part = { source->name, key, source->base_dir };
		int status;

		(void)snprintf(key, sizeof(key), "%s[%zu]", vt_field_info(field)->key, index);
		status = add_element(policy, field, element, &part, err);
		if (status < 0)
			return status;
	}
	return 0;
}

/* "K=V" sets; "K" alone passes the caller's on, beside what is passed already, defaults included.
 */
static int set_variable(struct vt_policy *policy, const char *text, const struct vt_source *source,
			struct vt_err *err)
{
	const char *equals = strchr(text, '=');

	if (!equals) {
		vt_value_mark(policy, VT_FIELD_ENV_PASS);
		return add_name(policy, VT_FIELD_ENV_PASS, text, source, err);
	}
	const char *name = vt_arena_dupn(policy->arena, text, (size_t)(equals - text));

	if (!name)
		return vt_source_nomem(err);
	begin(policy, VT_FIELD_ENV_SET);
	return add_variable(policy, VT_FIELD_ENV_SET, name, equals + 1, source, err);
}

static bool looks_like_json(enum vt_type type, const char *text)
{
	if (type == VT_TYPE_ENV)
		return text[0] == '{';
	return text[0] == '[' || (text[0] == '{' && type == VT_TYPE_GRANTS);
}

/* A whole JSON list or map, or one move. */
static int set_json(struct vt_policy *policy, enum vt_field field, const char *text,
		    const struct vt_source *source, struct vt_err *err)
{
	AUTO_JSON json_t *root = NULL;
	char name[KEY_SIZE];
	bool any = strcmp(source->name, "--set") == 0; /* which alone does not tell the key */

	(void)snprintf(name, sizeof(name), "%s%s%s", source->name, any ? " " : "",
		       any ? source->key : ""); /* both are short */
	int status = vt_json_load_text(text, strlen(text), name, &root, err);

	if (status < 0)
		return status;
	if (json_is_array(root) || vt_field_row(field)->type == VT_TYPE_ENV)
		return vt_list_json(policy, field, root, source, err);
	begin(policy, field);
	return add_element(policy, field, root, source, err);
}

int vt_list_text(struct vt_policy *policy, enum vt_field field, const char *text,
		 const struct vt_source *source, struct vt_err *err)
{
	enum vt_type type = vt_field_row(field)->type;

	if (looks_like_json(type, text))
		return set_json(policy, field, text, source, err);
	if (type == VT_TYPE_ENV)
		return set_variable(policy, text, source, err);
	begin(policy, field);
	if (type == VT_TYPE_NAMES)
		return add_name(policy, field, text, source, err);
	if (type == VT_TYPE_PROTECT && strcmp(text, "none") == 0) {
		((struct vt_strings *)vt_value_member(policy, field))->count = 0;
		return 0;
	}
	if (type == VT_TYPE_PROTECT)
		return add_protected(policy, field, text, source, err);
	return add_path(policy, field, text, source, err);
}
