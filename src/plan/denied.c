/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/denied.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "plan/fail.h"
#include "plan/root_private.h"
#include "plan/way.h"

struct listing {
	const struct vt_root *root;
	const struct vt_host *host;
	struct vt_arena *arena;
	struct vt_denied *denies;
	size_t count, room;
	const char *named; /* what is being listed */
	bool failed;       /* out of memory in the middle of something */
};

/* What lies in a folder comes right after it: '/' is less than any other byte of a name. */
static int by_path(const void *a, const void *b)
{
	const char *one = ((const struct vt_denied *)a)->path;
	const char *other = ((const struct vt_denied *)b)->path;

	while (*one && *one == *other) {
		one++;
		other++;
	}
	int left = *one == '/' ? 1 : (unsigned char)*one;
	int right = *other == '/' ? 1 : (unsigned char)*other;

	return left - right;
}

static int push(struct listing *d, const char *path, const char *origin)
{
	if (d->count == d->room) {
		size_t room = 2 * d->room + 16;
		struct vt_denied *more = vt_arena_array(d->arena, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		if (d->count)
			memcpy(more, d->denies, d->count * sizeof(*more));
		d->denies = more;
		d->room = room;
	}
	d->denies[d->count++] = (struct vt_denied){ .path = path,
						    .named = d->named,
						    .origin = origin };
	return 0;
}

/* One more name of the path that was added last. */
static void push_alias(void *arg, const char *alias)
{
	struct listing *d = arg;
	const char *copy = vt_arena_dup(d->arena, alias);

	if (!copy || push(d, copy, d->denies[d->count - 1].origin) < 0)
		d->failed = true;
}

/* A path, and each other that the host's mounts show the same at. */
static int push_all(struct listing *d, const char *path, const char *origin, struct vt_err *err)
{
	int r = 0;

	if (push(d, path, origin) < 0)
		return vt_plan_nomem(err);
	if (d->host->aliases)
		r = d->host->aliases(d->host, path, push_alias, d);
	if (d->failed)
		return vt_plan_nomem(err);
	return r < 0 ? vt_plan_fail_aliases(origin, path, r, err) : 0;
}

/*
 * A link on the way that the cell can write is the cell's to point elsewhere: then the name that
 * was denied leads to what was not.
 */
static int check_links(const struct listing *d, const struct vt_way *way, const char *origin,
		       struct vt_err *err)
{
	for (size_t i = 0; i < way->link_count; i++)
		if (vt_root_can_write(d->root, way->links[i].path))
			return vt_fail(err, VT_STEP_PLAN, EPERM,
				       "refused: %s: '%s' leads through the symbolic link '%s', "
				       "which the cell could change; deny what it leads to, or "
				       "grant that folder for reading",
				       origin, way->path, way->links[i].path);
	return 0;
}

/* A pattern is the name of no file, and a deny of it would close nothing. */
static int check_pattern(const struct vt_way *way, const char *origin, struct vt_err *err)
{
	if (!strpbrk(way->path, "*?[") || !way->err || way->name != way->real)
		return 0;
	return vt_fail(err, VT_STEP_PLAN, EINVAL,
		       "%s: '%s' does not exist, and denies are paths; there are no patterns: name "
		       "the file or its folder",
		       origin, way->path);
}

/*
 * The name itself, and where it leads if it is a link: that is what is meant, and the host may put
 * something else in the link's place while the call runs.
 */
static int add_deny(struct listing *d, const struct vt_grant *grant, struct vt_err *err)
{
	const char *origin = vt_arena_dup(d->arena, grant->origin);
	struct vt_way way;

	d->named = vt_arena_dup(d->arena, grant->from);
	if (!origin || !d->named)
		return vt_plan_nomem(err);
	int r = vt_way_find(d->host, d->arena, d->named, origin, &way, err);

	if (r == 0)
		r = check_pattern(&way, origin, err);
	if (r == 0)
		r = check_links(d, &way, origin, err);
	if (r == 0)
		r = push_all(d, way.name, origin, err);
	return r == 0 && way.name != way.real ? push_all(d, way.real, origin, err) : r;
}

int vt_denied_list(const struct vt_root *root, const struct vt_grants *grants,
		   struct vt_denied **ret_denied, size_t *ret_count, struct vt_err *err)
{
	struct listing list = {
		.root = root,
		.host = root->host,
		.arena = root->arena,
	};
	size_t kept = 0;

	for (size_t i = 0; i < grants->count; i++) {
		int r = add_deny(&list, &grants->items[i], err);

		if (r < 0)
			return r;
	}
	if (list.count)
		qsort(list.denies, list.count, sizeof(*list.denies), by_path);
	for (size_t i = 0; i < list.count; i++)
		if (!kept || !vt_path_lies_in(list.denies[i].path, list.denies[kept - 1].path))
			list.denies[kept++] = list.denies[i];
	*ret_denied = list.denies;
	*ret_count = kept;
	return 0;
}
