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

static int check_group(const char *group, const json_t *members, const struct vt_source *source,
		       struct vt_err *err)
{
	struct vt_source part = { source->name, group, source->base_dir };
	const char *name;
	json_t *value;

	if (!json_is_object(members))
		return vt_value_wrong(members, "an object of keys", &part, err);
	json_object_foreach((json_t *)members, name, value)
	{
		char key[KEY_SIZE];

		join(key, group, name);
		if (vt_field_find(key) >= 0)
			continue;
		if (strcmp(name, "extends") == 0)
			return vt_source_fail(
				err, source, EINVAL,
				"'extends' stands at the top of a policy, not in '%s'", group);
		return vt_parse_unknown(key, source, err);
	}
	return 0;
}

static int check_key(const char *name, const json_t *value, const struct vt_source *source,
		     struct vt_err *err)
{
	const char *dot = strchr(name, '.');
	int field = vt_field_find(name);

	if (vt_field_is_group(name))
		return check_group(name, value, source, err);
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

int vt_parse_check(const json_t *root, const char **ret_extends, const struct vt_source *source,
		   struct vt_err *err)
{
	const char *name, *extends = NULL;
	json_t *value;

	if (!json_is_object(root))
		return vt_value_wrong(root, "a policy, which is an object: {...}", source, err);
	if (json_object_get(root, "defaultAction"))
		return vt_source_fail(err, source, EINVAL,
				      "this is a seccomp profile, and not a policy: --set "
				      "syscalls=%s, or \"syscalls\" in a policy, takes it",
				      vt_show(source->name).text);
	json_object_foreach((json_t *)root, name, value)
	{
		struct vt_source part = { source->name, "extends", source->base_dir };
		int status;

		if (strcmp(name, "extends") == 0) {
			if (!json_is_string(value))
				return vt_value_wrong(value, "the name of one policy as a string",
						      &part, err);
			extends = json_string_value(value);
			continue;
		}
		status = check_key(name, value, source, err);
		if (status < 0)
			return status;
	}
	*ret_extends = extends;
	return 0;
}

int vt_parse_apply(struct vt_policy *policy, const json_t *root, const struct vt_source *source,
		   struct vt_err *err)
{
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
		if (!value)
			continue;
		int status = vt_value_json(policy, field, value, &part, err);

		if (status < 0)
			return status;
	}
	return 0;
}
