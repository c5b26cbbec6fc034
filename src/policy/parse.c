/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/parse.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "policy/value.h"

/* Longer than any known key; a longer one is cut, and so known to nobody. */
#define KEY_SIZE 96

/* "env.HOME": a variable that stands where its map should. */
static bool is_variable(const char *key, const char *closest)
{
	static const char group[] = "env.";

	if (strncmp(key, group, strlen(group)) != 0)
		return false;
	key += strlen(group);
	return *key && (!closest || vt_field_is_group(closest) ||
			!key[strcspn(key, "abcdefghijklmnopqrstuvwxyz")]);
}

int vt_parse_unknown(const char *key, const struct vt_source *source, struct vt_err *err)
{
	const char *closest = vt_field_closest(key);
	struct vt_shown shown = vt_show(key);

	if (is_variable(key, closest))
		return vt_source_fail(err, source, EINVAL,
				      "unknown key '%s'; variables stand in 'env.set', as in "
				      "{\"env\": {\"set\": {\"NAME\": \"value\"}}}",
				      shown.text);
	if (!closest)
		return vt_source_fail(err, source, EINVAL, "unknown key '%s'; see vitro-policy(5)",
				      shown.text);
	return vt_source_fail(err, source, EINVAL, "unknown key '%s'; did you mean '%s'?",
			      shown.text, closest);
}

static void join(char key[KEY_SIZE], const char *group, const char *name)
{
	(void)snprintf(key, KEY_SIZE, "%s.%s", group, name); /* cut: see KEY_SIZE */
}

/* What is wrong with one text, key by key. */
struct mistakes {
	struct vt_str *lines; /* NULL: the first one ends the reading */
	struct vt_err *first;
	int status; /* the first one's; 0: none so far */
};

/* Takes note of how one key went. Whether to go on with the others. */
static bool note(struct mistakes *mistakes, int status, const struct vt_err *err)
{
	if (status == 0)
		return true;
	if (mistakes->status == 0) {
		mistakes->status = status;
		*mistakes->first = *err;
	}
	if (!mistakes->lines || status == -ENOMEM)
		return false;
	vt_str_addf(mistakes->lines, "%s\n", err->what);
	return mistakes->lines->len < VT_POLICY_MISTAKES;
}

static int check_member(const char *group, const char *name, const struct vt_source *source,
			struct vt_err *err)
{
	char key[KEY_SIZE];

	join(key, group, name);
	if (vt_field_find(key) >= 0)
		return 0;
	if (strcmp(name, "extends") == 0)
		return vt_source_fail(err, source, EINVAL,
				      "'extends' stands at the top of a policy, not in '%s'",
				      group);
	return vt_parse_unknown(key, source, err);
}

static bool check_group(struct mistakes *mistakes, const char *group, const json_t *members,
			const struct vt_source *source)
{
	struct vt_source part = { source->name, group, source->base_dir };
	struct vt_err err;
	const char *name;
	json_t *value;

	if (!json_is_object(members))
		return note(mistakes, vt_value_wrong(members, "an object of keys", &part, &err),
			    &err);
	json_object_foreach((json_t *)members, name, value)
	{
		if (!note(mistakes, check_member(group, name, source, &err), &err))
			return false;
	}
	return true;
}

static int check_key(const char *name, const json_t *value, const struct vt_source *source,
		     struct vt_err *err)
{
	struct vt_source part = { source->name, "extends", source->base_dir };
	const char *dot = strchr(name, '.');
	int field = vt_field_find(name);

	if (strcmp(name, "extends") == 0)
		return json_is_string(value)
			       ? 0
			       : vt_value_wrong(value, "the name of one policy as a string", &part,
						err);
	if (field >= 0 && !dot)
		return 0;
	if (field >= 0)
		return vt_source_fail(err, source, EINVAL,
				      "write '%s' nested, as {\"%.*s\": {\"%s\": ...}}", name,
				      (int)(dot - name), name, dot + 1);
	/* For editors: which schema this file follows. */
	if (strcmp(name, "$schema") == 0)
		return 0;
	return vt_parse_unknown(name, source, err);
}

int vt_parse_check(const struct vt_policy *policy, const json_t *root, const char **ret_extends,
		   const struct vt_source *source, struct vt_err *err)
{
	struct mistakes mistakes = { .lines = policy->mistakes, .first = err };
	const char *name;
	json_t *value;
	struct vt_err one;

	if (!json_is_object(root))
		return vt_value_wrong(root, "a policy, which is an object: {...}", source, err);
	if (json_object_get(root, "defaultAction"))
		return vt_source_fail(err, source, EINVAL,
				      "this is a seccomp profile, and not a policy: --set "
				      "syscalls=%s, or \"syscalls\" in a policy, takes it",
				      vt_show(source->name).text);
	json_object_foreach((json_t *)root, name, value)
	{
		bool goes_on = vt_field_is_group(name)
				       ? check_group(&mistakes, name, value, source)
				       : note(&mistakes, check_key(name, value, source, &one),
					      &one);

		if (!goes_on)
			break;
	}
	if (mistakes.status == 0)
		*ret_extends = json_string_value(json_object_get(root, "extends"));
	return mistakes.status;
}

int vt_parse_apply(struct vt_policy *policy, const json_t *root, const struct vt_source *source,
		   struct vt_err *err)
{
	struct mistakes mistakes = { .lines = policy->mistakes, .first = err };
	struct vt_err one;

	for (int field = 0; field < VT_FIELD_COUNT; field++) {
		const char *key = vt_field_info(field)->key;
		const char *dot = strchr(key, '.');
		struct vt_source part = { source->name, key, source->base_dir };
		const json_t *value;

		if (dot) {
			json_t *group = json_object_getn(root, key, (size_t)(dot - key));

			value = json_object_get(group, dot + 1);
		} else {
			value = json_object_get(root, key);
		}
		if (value &&
		    !note(&mistakes, vt_value_json(policy, field, value, &part, &one), &one))
			break;
	}
	return mistakes.status;
}
