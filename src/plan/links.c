/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/links.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "host/runtime.h"
#include "plan/fail.h"

enum { MAX_HOPS = 40 }; /* as many links as the kernel follows */

/* Takes a path one name on, or back. "" is the root. */
static bool step_on(char at[PATH_MAX], const char *name, size_t len)
{
	size_t have = strlen(at);

	if (len == 0 || (len == 1 && name[0] == '.'))
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

int vt_links_follow(const struct vt_host *host, struct vt_arena *arena, const char *path,
		    const char *origin,
		    int (*each)(void *arg, const char *link, struct vt_err *err), void *arg,
		    struct vt_err *err)
{
	char at[PATH_MAX] = "", target[PATH_MAX];
	const char *rest = path;
	int hops = 0;

	while (*rest) {
		size_t len = strcspn(rest, "/"), have = strlen(at);
		const char *next = rest + len + (rest[len] == '/');

		if (!step_on(at, rest, len) || hops > MAX_HOPS)
			return vt_fail(err, VT_STEP_PLAN, ELOOP, "%s: '%s': %s", origin, path,
				       strerror(ELOOP));
		rest = next;
		/* A name back is no link, and its folder is on the way already. */
		if (strlen(at) <= have || host->read_link(host, at, target, sizeof(target)) < 0)
			continue;
		int r = each(arg, at, err);

		if (r != 0)
			return r;
		at[target[0] == '/' ? 0 : have] = '\0';
		rest = vt_arena_printf(arena, "%s/%s", target, rest);
		hops++;
		if (!rest)
			return vt_plan_nomem(err);
	}
	return 0;
}

/*
 * A link of root's, for an ordinary user. What a root's cell makes in a granted folder is root's
 * too, since owners are mapped: there the place must be one of the system's.
 */
bool vt_links_trusted(const struct vt_host *host, const char *link)
{
	size_t folder = (size_t)(strrchr(link, '/') - link);
	uid_t owner;

	if (!host->link_owner)
		return true;
	if (host->link_owner(host, link, &owner) < 0 || owner != 0)
		return false;
	return host->uid != 0 || folder == 0 || (folder == 4 && strncmp(link, "/var", 4) == 0) ||
	       vt_path_lies_in(link, "/etc") || vt_runtime_covers(link);
}
