/* SPDX-License-Identifier: Apache-2.0 */
/* What of the host exists inside, and where, judged from the plan alone. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "plan/plan.h"

enum { MAX_LINK_HOPS = 8 };

/* Whether a path lies in what a veil keeps closed. */
static bool is_closed(const struct vt_build *build, const char *path)
{
	const struct vt_veil *veil = build->veil;

	if (!veil || !vt_path_lies_in(path, build->to) || strcmp(path, build->to) == 0)
		return false;
	path += strlen(build->to) + 1;
	for (size_t i = 0; i < veil->count; i++)
		if (veil->names[i].kind != VT_VEILED_WAY &&
		    vt_path_lies_in(path, veil->names[i].path))
			return true;
	return false;
}

/* Goes on from a folder by a path's names; false: that is too long for a path. */
static bool descend(char at[PATH_MAX], const char *path)
{
	while (*path) {
		size_t len = strcspn(path, "/"), used = strlen(at);
		const char *name = path;

		path += len + (path[len] == '/');
		if (len == 0 || (len == 1 && name[0] == '.'))
			continue;
		if (len == 2 && name[0] == '.' && name[1] == '.') {
			char *slash = strrchr(at, '/');

			*(slash ? slash : at) = '\0';
			continue;
		}
		if (used + len + 2 > PATH_MAX)
			return false;
		(void)snprintf(at + used, PATH_MAX - used, "%s%.*s", used ? "/" : "", (int)len,
			       name); /* fits */
	}
	return true;
}

/* Where a path below one of the cell's own links leads. Paths are relative to the root. */
static bool follow(const struct vt_build *link, const char *path, char out[PATH_MAX])
{
	const char *rest = path + strlen(link->to);

	out[0] = '\0';
	if (*link->from != '/' && (!descend(out, link->to) || !descend(out, "..")))
		return false;
	return descend(out, link->from) && descend(out, rest);
}

static bool shows(const struct vt_plan *plan, const char *path, int hops)
{
	const struct vt_build *link = NULL;
	char led[PATH_MAX];
	bool shown = !*path;

	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];
		bool itself = strcmp(path, build->to) == 0;

		if (!itself && !((build->act == VT_ACT_BIND || build->act == VT_ACT_LINK) &&
				 vt_path_lies_in(path, build->to)))
			continue;
		/* The innermost comes last. */
		link = build->act == VT_ACT_LINK && !itself ? build : NULL;
		shown = !link && !is_closed(build, path);
	}
	return link ? hops < MAX_LINK_HOPS && follow(link, path, led) && shows(plan, led, hops + 1)
		    : shown;
}

bool vt_plan_shows(const struct vt_plan *plan, const char *path)
{
	if (plan->scratch && vt_path_lies_in(path, plan->scratch))
		return true;
	while (*path == '/')
		path++;
	return shows(plan, path, 0);
}

bool vt_plan_finds(const struct vt_plan *plan, const char *path, char ret_place[PATH_MAX])
{
	const struct vt_build *best = NULL;
	char place[PATH_MAX];

	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (build->act == VT_ACT_BIND && vt_path_lies_in(path, build->from) &&
		    (!best || strlen(build->from) > strlen(best->from)))
			best = build;
	}
	if (!best || snprintf(place, sizeof(place), "/%s%s", best->to, path + strlen(best->from)) >=
			     PATH_MAX)
		return false;
	if (!vt_plan_shows(plan, place))
		return false;
	(void)snprintf(ret_place, PATH_MAX, "%s", place); /* as long as place is */
	return true;
}

bool vt_plan_denies(const struct vt_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->denial_count; i++) {
		const struct vt_denial *denial = &plan->denials[i];

		if (vt_path_lies_in(path, denial->closed ? denial->closed : denial->path))
			return true;
	}
	return false;
}
