/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/pooled.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "plan/fail.h"

#define ASIDE ".vitro-aside"

static bool lies_in_scratch(const struct vt_plan *plan, const struct vt_build *build)
{
	for (size_t i = 0; i < plan->build_count; i++)
		if (plan->builds[i].act == VT_ACT_SCRATCH &&
		    vt_path_lies_in(build->to, plan->builds[i].to) &&
		    strcmp(build->to, plan->builds[i].to) != 0)
			return true;
	return false;
}

static bool is_per_cell(const struct vt_plan *plan, const struct vt_build *build)
{
	return build->act == VT_ACT_SCRATCH || build->act == VT_ACT_PROC ||
	       build->act == VT_ACT_MASK || lies_in_scratch(plan, build);
}

struct showing {
	const struct vt_plan *plan;
	bool elsewhere; /* something that can be written is also shown where no cover would stay */
};

static void find_shown(void *arg, const char *alias)
{
	struct showing *showing = arg;
	const struct vt_plan *plan = showing->plan;

	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		showing->elsewhere |= build->act == VT_ACT_BIND &&
				      (!build->writable || !S_ISDIR(build->mode)) &&
				      (vt_path_lies_in(alias, build->from) ||
				       vt_path_lies_in(build->from, alias));
	}
}

/*
 * A cover is mounted on a name of a file system. The kernel takes it away with the name, in all
 * namespaces, and a file has others by then: so none holds on a single file in a folder that can
 * be written, shown at another place than that.
 */
static bool is_part_shown(const struct vt_plan *plan, const struct vt_build *written)
{
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (build->act == VT_ACT_BIND && !build->device && !S_ISDIR(build->mode) &&
		    strcmp(build->from, written->from) != 0 &&
		    vt_path_lies_in(build->from, written->from) &&
		    !vt_path_lies_in(build->to, written->to))
			return true;
	}
	return false;
}

bool vt_pooled_loads_ahead(const struct vt_plan *plan, const struct vt_host *host)
{
	struct showing showing = { .plan = plan };

	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (!vt_build_is_written(build))
			continue;
		if (plan->bare || is_part_shown(plan, build) ||
		    (host->aliases && host->aliases(host, build->from, find_shown, &showing) < 0))
			return false;
	}
	return !showing.elsewhere;
}

struct dividing {
	struct vt_arena *arena;
	struct vt_build *builds;
	size_t count, aside;
};

static void add(struct dividing *d, struct vt_build build)
{
	d->builds[d->count++] = build;
}

/* A mount of the host's at a place that only a cell has: the hull keeps it aside. */
static int put_aside(struct dividing *d, const struct vt_build *build, struct vt_err *err)
{
	const char *name = vt_arena_printf(d->arena, ASIDE "/%zu", d->aside);
	struct vt_build place = { .act = VT_ACT_DIR, .to = name, .mode = 0755, .idmap = -1 };
	struct vt_build mount = *build, copy = *build;

	if (!name)
		return vt_plan_nomem(err);
	if (!S_ISDIR(build->mode)) {
		place.act = VT_ACT_FILE;
		place.from = "";
	}
	if (d->aside++ == 0)
		add(d,
		    (struct vt_build){ .act = VT_ACT_DIR, .to = ASIDE, .mode = 0755, .idmap = -1 });
	add(d, place);
	mount.to = name;
	mount.nested = false;
	add(d, mount);
	copy.per_cell = copy.inner = true;
	copy.from = name;
	copy.veil = NULL;
	copy.guards = NULL;
	copy.guard_count = 0;
	copy.idmap = -1;
	add(d, copy);
	return 0;
}

static int divide(struct dividing *d, const struct vt_plan *plan, const struct vt_build *build,
		  struct vt_err *err)
{
	struct vt_build copy = *build;

	if (!is_per_cell(plan, build)) {
		add(d, copy);
		return 0;
	}
	if (build->act == VT_ACT_BIND)
		return put_aside(d, build, err);
	/* The spawner's, which cells cover. A kernel mounts no proc where none is to be seen. */
	if (build->act == VT_ACT_PROC) {
		copy.writable = true;
		add(d, copy);
		copy.writable = false;
	}
	copy.per_cell = true;
	add(d, copy);
	return 0;
}

int vt_pooled_divide(struct vt_plan *plan, struct vt_err *err)
{
	/* At the most three for one, and the stage, the folder aside and its cover. */
	struct dividing d = {
		.arena = plan->arena,
		.builds = vt_arena_array(plan->arena, plan->build_count * 3 + 3,
					 sizeof(*plan->builds)),
	};
	int r = 0;

	if (!d.builds)
		return vt_plan_nomem(err);
	add(&d, (struct vt_build){
			.act = VT_ACT_DIR, .to = VT_POOLED_STAGE, .mode = 0755, .idmap = -1 });
	for (size_t i = 0; r == 0 && i < plan->build_count; i++)
		r = divide(&d, plan, &plan->builds[i], err);
	if (r < 0)
		return r;
	if (d.aside)
		add(&d, (struct vt_build){ .act = VT_ACT_MASK,
					   .to = ASIDE,
					   .from = VT_POOLED_STAGE,
					   .idmap = -1,
					   .per_cell = true });
	plan->builds = d.builds;
	plan->build_count = d.count;
	return 0;
}
