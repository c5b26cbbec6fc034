/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/reach.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "plan/fail.h"
#include "plan/way.h"

/*
 * The host path that a path inside shows, and whether a mount does; else out is path itself. Cut:
 * then it is not there.
 */
static bool host_path(const struct vt_plan *plan, const char *path, char out[PATH_MAX])
{
	bool mounted = false;

	(void)snprintf(out, PATH_MAX, "%s", path);
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (build->act != VT_ACT_BIND || !vt_path_lies_in(path + 1, build->to))
			continue;
		(void)snprintf(out, PATH_MAX, "%s%s", build->from, path + 1 + strlen(build->to));
		mounted = true;
	}
	return mounted;
}

/* ---- the working directory ----------------------------------------------------------------- */

/* It is on the host, and not inside under that name. What to do about it. */
static int fail_unshown(const struct vt_plan *plan, const char *real, struct vt_err *err)
{
	const char *own = vt_plan_own_place(plan->cwd);
	char place[PATH_MAX];

	if (!own)
		own = vt_plan_own_place(real);
	if (vt_plan_denies(plan, real))
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: the working directory '%s' is denied by the policy",
			       plan->cwd);
	if (own)
		return vt_fail(err, VT_STEP_PLAN, ENOENT,
			       "refused: the working directory '%s' is not there inside, and "
			       "cannot be granted: the cell has a %s of its own; work in a folder "
			       "elsewhere",
			       plan->cwd, own);
	if (vt_plan_finds(plan, real, place))
		return vt_fail(err, VT_STEP_PLAN, ENOENT,
			       "refused: the working directory '%s' is at '%s' inside: --cwd %s "
			       "(files.cwd)",
			       plan->cwd, place, place);
	return vt_fail(err, VT_STEP_PLAN, ENOENT,
		       "refused: the working directory '%s' is not there inside; grant it: --read "
		       "%s (files.read)",
		       plan->cwd, plan->cwd);
}

static int check_cwd(struct vt_plan *plan, const struct vt_host *host, struct vt_err *err)
{
	char path[PATH_MAX];
	struct vt_path seen;
	struct vt_way way;
	bool shown = vt_plan_shows(plan, plan->cwd);
	bool mounted = host_path(plan, plan->cwd, path);

	plan->cwd_private = plan->scratch && vt_path_lies_in(plan->cwd, plan->scratch);
	/* The cell's own, as /tmp is: a look at the host's says nothing, and costs a probe of it.
	 */
	if (plan->cwd_private || (!mounted && shown && !plan->bare))
		return 0;
	int r = host->look(host, path, &seen);
	bool there = r == 0, missing = r == -ENOENT || r == -ENOTDIR;

	if (there) {
		plan->cwd_dev = seen.dev;
		plan->cwd_ino = seen.ino;
	}

	if ((!shown && !there) || (mounted && missing))
		return vt_fail(err, VT_STEP_PLAN, ENOENT,
			       "refused: the working directory '%s' does not exist; make it first, "
			       "or name another (files.cwd)",
			       plan->cwd);
	if (there && !S_ISDIR(seen.mode))
		return vt_fail(err, VT_STEP_PLAN, ENOTDIR,
			       "refused: the working directory '%s' is a file, not a folder",
			       plan->cwd);
	if (shown)
		return 0;
	r = vt_way_find(host, plan->arena, path, "files.cwd", &way, err);
	return r < 0 ? r : fail_unshown(plan, way.real, err);
}

/* ---- a user who owns nothing --------------------------------------------------------------- */

static bool is_cells_own(const struct vt_plan *plan, const struct vt_path *seen)
{
	return seen->uid >= plan->id_base && seen->uid - plan->id_base < plan->id_count;
}

/* The first on the way to path, and path itself, that others than its owner do not get through. */
static bool find_closed(const struct vt_plan *plan, const struct vt_host *host, const char *path,
			char ret_closed[PATH_MAX], struct vt_path *ret_seen)
{
	size_t len = 0;

	do {
		len += 1 + strcspn(path + len + 1, "/");
		(void)snprintf(ret_closed, PATH_MAX, "%.*s", (int)len, path); /* it was looked at */
		/* What cannot be looked at is for the launcher to find. */
		if (host->look(host, ret_closed, ret_seen) < 0 || is_cells_own(plan, ret_seen))
			continue;
		if (!(ret_seen->mode & (S_ISDIR(ret_seen->mode) ? S_IXOTH : S_IROTH)))
			return true;
	} while (path[len]);
	return false;
}

static void name_owner(const struct vt_path *seen, char out[32])
{
	if (seen->uid == 0)
		(void)snprintf(out, 32, "root");
	else
		(void)snprintf(out, 32, "user %u", seen->uid);
}

static int check_way(const struct vt_plan *plan, const struct vt_host *host, const char *what,
		     const char *path, struct vt_err *err)
{
	char closed[PATH_MAX], owner[32];
	struct vt_path seen;

	if (!find_closed(plan, host, path, closed, &seen))
		return 0;
	name_owner(&seen, owner);
	return vt_fail(err, VT_STEP_PLAN, EACCES,
		       "refused: %s '%s' is out of the cell's reach: '%s' belongs to %s and is "
		       "closed to others, and without user namespaces a root's cell has a user of "
		       "its own; chmod o+%s %s, or run vitro as an ordinary user",
		       what, path, closed, owner, S_ISDIR(seen.mode) ? "x" : "r", closed);
}

static int warn_unwritable(struct vt_plan *plan, const struct vt_host *host, const char *path,
			   struct vt_err *err)
{
	char owner[32];
	struct vt_path seen;

	if (host->look(host, path, &seen) < 0 || is_cells_own(plan, &seen) || (seen.mode & S_IWOTH))
		return 0;
	name_owner(&seen, owner);
	const char *text = vt_arena_printf(
		plan->arena,
		"files.write: '%s' belongs to %s, and others may not write to it, the cell's user "
		"included; chmod or chown it, or run vitro as an ordinary user",
		path, owner);

	if (!text)
		return vt_plan_nomem(err);
	vt_plan_warn(plan, text);
	return 0;
}

/* ---- the private folders of other calls ---------------------------------------------------- */

enum grants { GRANTS_NONE, GRANTS_READ, GRANTS_WRITE };

static enum grants grants_of(const struct vt_plan *plan)
{
	enum grants most = GRANTS_NONE;

	for (size_t i = 0; i < plan->build_count; i++)
		if (plan->builds[i].granted && most != GRANTS_WRITE)
			most = plan->builds[i].writable ? GRANTS_WRITE : GRANTS_READ;
	return most;
}

struct around {
	const struct vt_plan *plan;
	const struct vt_build
		*found; /* the grant that a place lies in; one for writing, if there is */
};

static void find_around(void *arg, const char *place)
{
	struct around *around = arg;

	for (size_t i = 0; i < around->plan->build_count; i++) {
		const struct vt_build *build = &around->plan->builds[i];

		if (build->granted && vt_path_lies_in(place, build->from) &&
		    (!around->found || (build->writable && !around->found->writable)))
			around->found = build;
	}
}

/*
 * They belong to the same user, and a grant of the place that all of them are made in is one of
 * each of them. Whoever may write there can replace them too, as they are made and removed.
 */
static int check_place(struct vt_plan *plan, const struct vt_policy *policy,
		       const struct vt_host *host, struct vt_err *err)
{
	const enum grants grants = grants_of(plan);
	struct around around = { .plan = plan };
	struct vt_way way;

	if (grants == GRANTS_NONE)
		return 0;
	int r = vt_way_find(host, plan->arena, host->scratch, "TMPDIR", &way, err);

	if (r < 0)
		return r;
	const char *place = way.real;

	find_around(&around, place);
	r = host->aliases ? host->aliases(host, place, find_around, &around) : 0;
	/* Where else it is mounted is not known, and what can be written there might be. */
	if (r < 0 && grants == GRANTS_WRITE && policy->require != VT_REQUIRE_BEST_EFFORT)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: files.write: whether '%s', where private folders are made, "
			"lies in what is granted cannot be told, since /proc/self/mountinfo "
			"cannot be read; --set require=best-effort would run it",
			place);
	if (!around.found)
		return 0;
	const bool writable = around.found->writable;

	if (writable && policy->require != VT_REQUIRE_BEST_EFFORT)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: files.write: with '%s' the cell could change the private folders "
			"of the caller's other calls, which are made in '%s' here; grant a folder "
			"below that, or set TMPDIR to a folder of your own that is not granted; "
			"--set require=best-effort would run it",
			around.found->from, place);
	const char *text = vt_arena_printf(
		plan->arena,
		"files.%s: with '%s' the cell can read%s the private folders of the caller's other "
		"calls, which are made in '%s'",
		writable ? "write" : "read", around.found->from, writable ? " and change" : "",
		place);

	if (!text)
		return vt_plan_nomem(err);
	vt_plan_warn(plan, text);
	return 0;
}

int vt_reach_check(struct vt_plan *plan, const struct vt_policy *policy, const struct vt_host *host,
		   struct vt_err *err)
{
	int r = check_cwd(plan, host, err);

	if (r == 0 && plan->bare && !plan->own_ids)
		r = check_place(plan, policy, host, err);
	if (r < 0 || !plan->bare || !plan->own_ids)
		return r;
	for (size_t i = 0; r == 0 && i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (!build->granted)
			continue;
		r = check_way(plan, host,
			      build->writable ? "files.write:" : "files.read:", build->from, err);
		if (r == 0 && build->writable)
			r = warn_unwritable(plan, host, build->from, err);
	}
	if (r == 0 && !vt_path_lies_in(plan->cwd, plan->scratch))
		r = check_way(plan, host, "the working directory", plan->cwd, err);
	return r;
}
