/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/shade.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "host/mounts.h"
#include "launch/cover.h"

/* Of which a process that has not begun needs nothing, and policies can grant nothing. */
#define STAGE "dev"

struct shading {
	const struct vt_plan *plan;
	const struct vt_covering *covering;
	struct vt_mounts mounts;
	const struct vt_build *written; /* whose other names are told */
	struct vt_err *err;
	int status;
};

/* Then it is under the other's cover; and what a call has made of the way there is of no account.
 */
static bool lies_in_another(const struct vt_plan *plan, const struct vt_build *written)
{
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *other = &plan->builds[i];

		if (vt_build_is_written(other) && strcmp(other->from, written->from) != 0 &&
		    vt_path_lies_in(written->from, other->from))
			return true;
	}
	return false;
}

/*
 * What is gone from its place is so by the host's own doing: no call can move what it was granted.
 */
static int shade(struct shading *s, const char *path)
{
	int r = vt_cover_path(s->covering, path);

	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r;
}

/*
 * One file of a folder would lose its cover with its name, which calls can remove; and what lies
 * below the stage is not to be seen now.
 */
static void shade_alias(void *arg, const char *alias)
{
	struct shading *s = arg;
	struct stat st;

	if (s->status < 0)
		return;
	if (vt_path_lies_in(alias, "/" STAGE) ||
	    (S_ISDIR(s->written->mode) && lstat(alias, &st) == 0 && !S_ISDIR(st.st_mode)))
		s->status = vt_fail_at(
			s->err, VT_STEP_MOUNTS, EPERM,
			"keep from what is loaded ahead of calls, which may write it:", alias);
	else
		s->status = shade(s, alias);
	if (s->status == -EACCES) /* then nor will the zygote */
		s->status = 0;
}

static int list_all(const struct vt_covering *covering, void *user)
{
	struct shading *s = user;
	const struct vt_plan *plan = s->plan;

	s->covering = covering;
	for (size_t i = 0; s->status == 0 && i < plan->build_count; i++) {
		s->written = &plan->builds[i];
		if (!vt_build_is_written(s->written) || lies_in_another(plan, s->written))
			continue;
		s->status = shade(s, s->written->from);
		if (s->status == 0 &&
		    vt_mounts_aliases(&s->mounts, s->written->from, shade_alias, s) < 0)
			s->status = vt_fail_at(s->err, VT_STEP_MOUNTS, EIO,
					       "find the other names of", s->written->from);
	}
	return s->status;
}

int vt_shade_written(const struct vt_plan *plan, struct vt_err *err)
{
	struct shading s = { .plan = plan, .err = err };
	bool any = false;

	for (size_t i = 0; i < plan->build_count; i++)
		any |= vt_build_is_written(&plan->builds[i]);
	if (!any)
		return 0;
	vt_mounts_init(&s.mounts);
	/* By these, and not by the covers, are there other names. */
	int r = vt_mounts_know(&s.mounts)
			? vt_cover(STAGE, list_all, &s, err)
			: vt_fail_at(err, VT_STEP_MOUNTS, EIO, "read", "/proc/self/mountinfo");

	vt_mounts_done(&s.mounts);
	return r;
}
