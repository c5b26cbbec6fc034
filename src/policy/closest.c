/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/closest.h"
#include "policy/fields.h"

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
