/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <errno.h>
#include <string.h>

#include "policy/parse.h"
#include "policy/value.h"

/* The names of a default list, "LANG, LC_ALL, TZ", one by one. */
static int default_names(struct vt_policy *policy, enum vt_field field, const char *names,
			 const struct vt_source *source, struct vt_err *err)
{
	for (const char *at = names; *at;) {
		size_t len = strcspn(at, ",");
		const char *name = vt_arena_dupn(policy->arena, at, len);

		if (!name)
			return vt_source_nomem(err);
		int status = vt_value_text(policy, field, name, source, err);

		if (status < 0)
			return status;
		at += len;
		at += strspn(at, ", ");
	}
	return 0;
}

/* Lists and maps of other types are empty by default: what their text promises is the plan's to
 * add. */
static int set_default(struct vt_policy *policy, enum vt_field field, struct vt_err *err)
{
	const struct vt_field_row *row = vt_field_row(field);
	struct vt_source source = { "defaults", row->info.key, NULL };

	switch (row->type) {
	case VT_TYPE_PATHS:
	case VT_TYPE_GRANTS:
	case VT_TYPE_PROTECT:
	case VT_TYPE_ENV:
		return 0;
	case VT_TYPE_NAMES:
		return default_names(policy, field, row->info.fallback, &source, err);
	default:
		return vt_value_text(policy, field, row->info.fallback, &source, err);
	}
}

int vt_policy_new(struct vt_policy **ret_policy, struct vt_err *err)
{
	struct vt_arena *arena = vt_arena_new();
	struct vt_policy *policy = arena ? vt_arena_alloc(arena, sizeof(*policy)) : NULL;

	if (!policy) {
		vt_arena_free(arena);
		return vt_source_nomem(err);
	}
	policy->arena = arena;
	for (int field = 0; field < VT_FIELD_COUNT; field++) {
		int status = set_default(policy, field, err);

		if (status < 0) {
			vt_policy_free(policy);
			return status;
		}
	}
	policy->given = 0;
	*ret_policy = policy;
	return 0;
}

void vt_policy_free(struct vt_policy *policy)
{
	if (policy)
		vt_arena_free(policy->arena);
}

int vt_policy_set(struct vt_policy *policy, const char *key, const char *text, const char *base_dir,
		  const char *origin, struct vt_err *err)
{
	int field = vt_field_find(key);
	struct vt_source source = { origin, key, base_dir };

	if (field >= 0)
		return vt_value_text(policy, field, text, &source, err);
	source.key = "";
	if (strcmp(key, "extends") == 0)
		return vt_source_fail(
			err, &source, EINVAL, "'extends' can only stand in a policy file%s",
			strncmp(origin, "--", 2) == 0 ? "; name the policy with -p" : "");
	if (vt_field_is_group(key))
		return vt_source_fail(err, &source, EINVAL, "'%s' is a group of keys, not a key",
				      key);
	return vt_parse_unknown(key, &source, err);
}
