/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/way.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "host/runtime.h"
#include "plan/fail.h"

enum { MAX_LINKS = 40 }; /* as many as the kernel follows */

/* Takes a path one name on, or back. "" is the root. False: it is too long. */
static bool step_on(char at[PATH_MAX], const char *name, size_t len)
{
	size_t have = strlen(at);

	if (len == 1 && name[0] == '.')
		return true;
	if (len == 2 && name[0] == '.' && name[1] == '.') {
		while (have && at[--have] != '/')
			;
		at[have] = '\0';
		return true;
	}
	return snprintf(at + have, PATH_MAX - have, "/%.*s", (int)len, name) <
	       (int)(PATH_MAX - have);
}

int vt_way_fail(const struct vt_way *way, const char *origin, int num, struct vt_err *err)
{
	return vt_fail(err, VT_STEP_PLAN, num, "%s: '%s': %s", origin, way->path,
		       num == ESTALE ? "replaced while it was being looked at" : strerror(num));
}

/* What is at a place whose folder was no link a moment ago. -ESTALE: it has become one. */
static int look_at(const struct vt_host *host, const char *at, struct vt_way *way,
		   char target[PATH_MAX])
{
	int r = host->step(host, *at ? at : "/", &way->seen, target, PATH_MAX);

	if (r == -ELOOP || r == -ESTALE)
		return -ESTALE;
	way->err = -r;
	return 0;
}

/* Notes the link at a place, and that it was the last name of the path, if it was. */
static int note(struct vt_arena *arena, const char *at, bool last, struct vt_way *way)
{
	struct vt_link *links = (struct vt_link *)way->links;

	if (!links)
		way->links = links = vt_arena_array(arena, MAX_LINKS, sizeof(*links));
	const char *path = links ? vt_arena_dup(arena, at) : NULL;

	if (!path)
		return -ENOMEM;
	links[way->link_count++] = (struct vt_link){ path, way->seen.uid };
	if (last && !way->name)
		way->name = path;
	return 0;
}

/* Name by name. */
static int walk(const struct vt_host *host, struct vt_arena *arena, char at[PATH_MAX],
		struct vt_way *way)
{
	const char *rest = way->path;
	char target[PATH_MAX];
	bool looked = false;
	int r;

	while (*(rest += strspn(rest, "/"))) {
		const size_t len = strcspn(rest, "/"), have = strlen(at);

		if (!step_on(at, rest, len))
			return -ENAMETOOLONG;
		rest += len;
		/* What follows something that is not there is a name only. */
		looked = strlen(at) > have && !way->err;
		if (!looked)
			continue;
		r = look_at(host, at, way, target);
		if (r < 0)
			return r;
		if (way->err || !way->seen.link)
			continue;
		if (way->link_count == MAX_LINKS)
			return -ELOOP;
		if (note(arena, at, !rest[strspn(rest, "/")], way) < 0)
			return -ENOMEM;
		at[target[0] == '/' ? 0 : have] = '\0';
		rest = vt_arena_printf(arena, "%s%s", target, rest);
		looked = false;
		if (!rest)
			return -ENOMEM;
	}
	r = looked || way->err ? 0 : look_at(host, at, way, target);
	return r == 0 && !way->err && way->seen.link ? -ESTALE : r;
}

int vt_way_find(const struct vt_host *host, struct vt_arena *arena, const char *path,
		const char *origin, struct vt_way *ret_way, struct vt_err *err)
{
	struct vt_way way = { .path = path };
	char at[PATH_MAX] = "", target[PATH_MAX];
	int r = host->step(host, path, &way.seen, target, sizeof(target));

	/* On most ways there is no link: then that was all. Not every host tells a link on it. */
	if (r == -ELOOP || r == -ENOTDIR || r == -ESTALE || (r == 0 && way.seen.link)) {
		r = walk(host, arena, at, &way);
		if (r < 0)
			return r == -ENOMEM ? vt_plan_nomem(err)
					    : vt_way_fail(&way, origin, -r, err);
		way.real = vt_arena_dup(arena, *at ? at : "/");
	} else {
		way.err = -r;
		way.real = vt_arena_dup(arena, path);
	}
	if (!way.real)
		return vt_plan_nomem(err);
	if (!way.name)
		way.name = way.real;
	*ret_way = way;
	return 0;
}

/*
 * A link of root's, for an ordinary user. What a root's cell makes in a granted folder is root's
 * too, since owners are mapped: there the place must be one of the system's.
 */
bool vt_link_is_trusted(const struct vt_host *host, const struct vt_link *link)
{
	size_t folder = (size_t)(strrchr(link->path, '/') - link->path);

	if (link->owner != 0)
		return false;
	return host->uid != 0 || folder == 0 ||
	       (folder == 4 && strncmp(link->path, "/var", 4) == 0) ||
	       vt_path_lies_in(link->path, "/etc") || vt_runtime_covers(link->path);
}
