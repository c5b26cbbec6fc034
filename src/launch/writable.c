/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/writable.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"

/* Who is told, and of what. */
struct telling {
	const struct vt_plan *plan;
	int (*each)(void *user, const char *path);
	void *user;
};

static int tell_path(const struct telling *to, const char *place, const char *rest)
{
	char path[2 * PATH_MAX];

	(void)snprintf(path, sizeof(path), "/%s%s", place, rest); /* plans have no longer ones */
	return to->each(to->user, path);
}

/* What follows a mount's place, there, and wherever cells have what the hull keeps aside. */
static int tell_place(const struct telling *to, const struct vt_build *mount, const char *rest)
{
	const struct vt_plan *plan = to->plan;
	int r = tell_path(to, mount->to, rest);

	for (size_t i = 0; r == 0 && i < plan->build_count; i++)
		if (plan->builds[i].inner && strcmp(plan->builds[i].from, mount->to) == 0)
			r = tell_path(to, plan->builds[i].to, rest);
	return r;
}

/*
 * A folder for writing may be shown once more, for reading, under another name: as part of what
 * lies around it, or a part of it by itself. Where a veil is over that, its inodes are others.
 */
static int tell_aliases(const struct telling *to, const struct vt_build *written)
{
	const struct vt_plan *plan = to->plan;

	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];
		int r = 0;

		if (build->act != VT_ACT_BIND || build->inner)
			continue;
		if (vt_path_lies_in(build->from, written->from))
			r = tell_place(to, build, "");
		else if (vt_path_lies_in(written->from, build->from))
			r = tell_place(to, build,
				       written->from + (build->from[1] ? strlen(build->from) : 0));
		if (r != 0)
			return r;
	}
	return 0;
}

int vt_writable_list(const struct vt_plan *plan, int (*each)(void *user, const char *path),
		     void *user)
{
	const struct telling to = { plan, each, user };
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		/* Itself is one of them. */
		if (vt_build_is_written(build))
			r = tell_aliases(&to, build);
	}
	return r;
}
