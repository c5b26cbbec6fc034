/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/resolve.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "plan/fail.h"

int vt_resolve(const struct vt_resolver *resolver, const char *path, const char *origin,
	       const char **ret_real, struct vt_err *err)
{
	char real[PATH_MAX];
	int r = resolver->host->resolve(resolver->host, path, real, sizeof(real));

	if (r < 0)
		return vt_fail(err, VT_STEP_PLAN, -r, "%s: '%s': %s", origin, path, strerror(-r));
	*ret_real = vt_arena_dup(resolver->arena, real);
	return *ret_real ? 0 : vt_plan_nomem(err);
}

int vt_resolve_folder(struct vt_resolver *resolver, const struct vt_grant *grant,
		      const char **ret_name, struct vt_err *err)
{
	const char *base = strrchr(grant->from, '/');
	size_t len = (size_t)(base - grant->from);
	bool anew = !resolver->folder || strncmp(resolver->folder, grant->from, len) != 0 ||
		    resolver->folder[len];

	if (anew) {
		resolver->folder = vt_arena_dupn(resolver->arena, grant->from, len);
		if (!resolver->folder)
			return vt_plan_nomem(err);
		int r = vt_resolve(resolver, len ? resolver->folder : "/", grant->origin,
				   &resolver->real_folder, err);

		if (r < 0)
			return r;
	}
	const bool top = strcmp(resolver->real_folder, "/") == 0;
	const char *name = vt_arena_printf(resolver->arena, "%s%s",
					   top ? "" : resolver->real_folder, base);

	if (!name)
		return vt_plan_nomem(err);
	*ret_name = name;
	return anew;
}
