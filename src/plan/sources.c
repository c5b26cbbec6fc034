/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/sources.h"

#include <errno.h>
#include <stdbool.h>

#include "base/path.h"
#include "plan/fail.h"
#include "plan/way.h"

struct checking {
	struct vt_plan *plan;
	const struct vt_policy *policy;
	const struct vt_host *host;
	const char *source; /* as it was named */
	const char *meaning;
	bool never;  /* it is not the caller's to give away */
	bool closed; /* nor to be read */
	bool warned;
};

static bool is_denied(const struct checking *c, const char *path)
{
	for (size_t i = 0; i < c->plan->denial_count; i++)
		if (vt_path_lies_in(path, c->plan->denials[i].path))
			return true;
	return false;
}

struct around {
	const struct vt_plan *plan;
	bool reading;
	const struct vt_build *found; /* what may be written, or read, and a path lies in */
};

static void find_around(void *arg, const char *path)
{
	struct around *around = arg;

	for (size_t i = 0; !around->found && i < around->plan->build_count; i++) {
		const struct vt_build *build = &around->plan->builds[i];

		if (build->act == VT_ACT_BIND && (build->writable || around->reading) &&
		    vt_path_lies_in(path, build->from))
			around->found = build;
	}
}

/* Other names that cannot be found out may be what a call reaches it by. */
static int fail_aliases(const struct checking *c, const char *path, int r, struct vt_err *err)
{
	/* Where best effort allows the worst, its own name still counts. */
	if (!c->never && c->policy->require == VT_REQUIRE_BEST_EFFORT)
		return 0;
	return vt_plan_fail_aliases(c->closed ? "files" : "files.write", path, r, err);
}

/* What a call may reach and path lies in, by any of its names; NULL: nothing. */
static int find_reachable(const struct checking *c, const char *path,
			  const struct vt_build **ret_found, struct vt_err *err)
{
	struct around around = { .plan = c->plan, .reading = c->closed };
	int r = 0;

	find_around(&around, path);
	if (!around.found && c->host->aliases)
		r = c->host->aliases(c->host, path, find_around, &around);
	r = r < 0 && !around.found ? fail_aliases(c, path, r, err) : 0;
	if (r == 0)
		*ret_found = around.found;
	return r;
}

/* path is where the source is, or a link on the way to it. */
static int check(struct checking *c, const char *path, struct vt_err *err)
{
	const struct vt_build *around = NULL;
	int r = find_reachable(c, path, &around, err);

	if (r < 0 || !around || c->warned || is_denied(c, path))
		return r;
	if (c->closed)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: %s: with '%s' a call could read '%s', which %s, and so keep it "
			"locked: deny it (files.deny)",
			around->writable ? "files.write" : "files.read", around->from, c->source,
			c->meaning);
	if (c->never)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: files.write: with '%s' a call could change '%s', which %s: "
			"deny it (files.deny)",
			around->from, c->source, c->meaning);
	if (c->policy->require != VT_REQUIRE_BEST_EFFORT)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: files.write: with '%s' the command could change '%s', "
			       "which %s: put that elsewhere, or deny it (--deny); --set "
			       "require=best-effort would run it",
			       around->from, c->source, c->meaning);
	const char *text = vt_arena_printf(
		c->plan->arena, "files.write: with '%s' the command can change '%s', which %s",
		around->from, c->source, c->meaning);

	if (!text)
		return vt_plan_nomem(err);
	vt_plan_warn(c->plan, text);
	c->warned = true;
	return 0;
}

/* Every link on the way to the source, and what it leads to. What is not there could be put there.
 */
static int check_way(struct checking *c, const char *origin,
		     int (*each)(struct checking *, const char *, struct vt_err *),
		     struct vt_err *err)
{
	struct vt_way way;
	int r = vt_way_find(c->host, c->plan->arena, c->source, origin, &way, err);

	for (size_t i = 0; r == 0 && i < way.link_count; i++)
		r = each(c, way.links[i].path, err);
	return r == 0 ? each(c, way.real, err) : r;
}

/* how: which of them they are, and what they mean. */
static int check_all(const struct checking *how, const struct vt_strings *paths, struct vt_err *err)
{
	bool any = how->policy->files.write.count || how->closed;
	int r = 0;

	for (size_t i = 0; r == 0 && any && i < paths->count; i++) {
		struct checking c = *how;

		c.source = paths->items[i];
		r = check_way(&c, "--policy", check, err);
	}
	return r;
}

/* By whatever name it goes: who speaks to a server is its user. */
static int check_sockets(const struct vt_plan *plan, const struct vt_strings *kept,
			 const struct vt_host *host, struct vt_err *err)
{
	struct vt_path own;

	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		for (size_t j = 0; build->socket && j < kept->count; j++)
			if (host->look(host, kept->items[j], &own) == 0 && build->dev == own.dev &&
			    build->ino == own.ino)
				return vt_fail(err, VT_STEP_PLAN, EPERM,
					       "refused: files.sockets: '%s' is the server's own",
					       build->from);
	}
	return 0;
}

int vt_sources_check(struct vt_plan *plan, const struct vt_policy *policy,
		     const struct vt_host *host, const struct vt_request *request,
		     struct vt_err *err)
{
	struct checking how = { .plan = plan, .policy = policy, .host = host };

	how.meaning = "says what the next call may do";
	int r = check_all(&how, &policy->sources, err);

	how.never = true;
	how.meaning = "is the server's own";
	if (r == 0)
		r = check_all(&how, &request->kept, err);
	how.closed = true;
	how.meaning = "is the server's audit log";
	if (r == 0)
		r = check_all(&how, &request->closed, err);
	return r < 0 ? r : check_sockets(plan, &request->kept, host, err);
}

static int find_reached(struct checking *c, const char *path, struct vt_err *err)
{
	const struct vt_build *around = NULL;
	int r = find_reachable(c, path, &around, err);

	return r < 0 ? r : around ? 1 : 0;
}

/* What cannot be found out may be. */
bool vt_sources_reach(const struct vt_plan *plan, const struct vt_host *host, const char *path)
{
	struct vt_plan looked_at = *plan; /* with memory of its own for that */
	struct checking c = { .plan = &looked_at, .host = host, .source = path, .never = true };
	struct vt_err err;

	looked_at.arena = vt_arena_new();
	bool reaches = !looked_at.arena || check_way(&c, path, find_reached, &err) != 0;

	vt_arena_free(looked_at.arena);
	return reaches;
}

struct inside {
	const char *folder;
	bool found; /* something in it, or it */
};

static void find_inside(void *arg, const char *path)
{
	struct inside *inside = arg;

	inside->found |= vt_path_lies_in(path, inside->folder);
}

/* path is what is executed, free of links, or a link on the way to it. */
static int check_run(struct checking *c, const char *path, struct vt_err *err)
{
	const struct vt_build *reaches = NULL;
	int r = find_reachable(c, path, &reaches, err);

	for (size_t i = 0; r == 0 && !reaches && i < c->plan->build_count; i++) {
		const struct vt_build *build = &c->plan->builds[i];
		struct inside inside = { .folder = path };

		/* What a pool has put aside is there by its host path as well. */
		if (!vt_build_is_written(build))
			continue;
		find_inside(&inside, build->from);
		if (!inside.found && c->host->aliases)
			r = c->host->aliases(c->host, build->from, find_inside, &inside);
		r = r < 0 && !inside.found ? fail_aliases(c, build->from, r, err) : 0;
		if (inside.found)
			reaches = build;
	}
	if (r < 0 || !reaches)
		return r;
	return vt_fail(err, VT_STEP_PLAN, EPERM,
		       "refused: files.write: with '%s' a call could change '%s', which %s: grant "
		       "folders beside it, or keep vitro elsewhere",
		       reaches->from, c->source, c->meaning);
}

int vt_sources_check_run(struct vt_plan *plan, const struct vt_policy *policy,
			 const struct vt_host *host, const struct vt_strings *paths,
			 struct vt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && policy->files.write.count && i < paths->count; i++) {
		struct checking c = { .plan = plan,
				      .policy = policy,
				      .host = host,
				      .source = paths->items[i],
				      .never = true,
				      .meaning = "vitro runs outside of cells" };

		r = check_way(&c, "files.write", check_run, err);
	}
	return r;
}
