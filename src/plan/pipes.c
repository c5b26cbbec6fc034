/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/pipes.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "plan/fail.h"
#include "plan/root_private.h"

/* Whether Landlock lets what is mounted there be written, since it lets what is around it be. */
static bool lies_in_writable(const struct vt_node *node)
{
	for (node = node->parent; node; node = node->parent)
		if (node->act == VT_ACT_SCRATCH || (node->act == VT_ACT_BIND && node->writable))
			return true;
	return false;
}

/* A file by itself is no pipe: that was looked at. */
static bool has_open_pipes(const struct vt_root *root, const struct vt_node *node)
{
	if (node->act != VT_ACT_BIND || node->writable || node->veil || !S_ISDIR(node->mode))
		return false;
	return root->host->landlock_abi == 0 || lies_in_writable(node);
}

/* Why no veil can be had, or NULL. */
static const char *find_obstacle(const struct vt_root *root, const struct vt_plan *plan,
				 const struct vt_node *mount)
{
	const struct vt_host *host = root->host;
	struct vt_layer layer = { .overlay = { ENOSYS, "an overlay" } };
	struct vt_path seen = mount->seen;
	int r = 0;

	seen.idmap = seen.idmap && mount->mapped && plan->own_ids;
	if (host->layer)
		r = host->layer(host, mount->from, &seen, &layer);
	if (r < 0 || layer.overlay.err)
		return strerror(r < 0 ? -r : layer.overlay.err);
	return layer.submounts ? "other file systems are mounted in it" : NULL;
}

static int veil_pipes(struct vt_root *root, struct vt_plan *plan, struct vt_node *mount,
		      struct vt_err *err)
{
	const char *obstacle = find_obstacle(root, plan, mount);

	if (obstacle) {
		/* One is named, for all. */
		if (!plan->open_pipes)
			plan->open_pipes = vt_arena_printf(
				root->arena,
				"named pipes in folders for reading, as in '%s', can be written "
				"to: no overlay of it can be had (%s)",
				mount->from, obstacle);
		return plan->open_pipes ? 0 : vt_plan_nomem(err);
	}
	struct vt_veil *veil = vt_arena_alloc(root->arena, sizeof(*veil));

	if (!veil)
		return vt_plan_nomem(err);
	*veil = (struct vt_veil){
		.name = vt_arena_printf(root->arena, "veil-%zu", plan->veil_count),
		.mode = mount->seen.mode,
		.work = -1,
	};
	if (!veil->name)
		return vt_plan_nomem(err);
	mount->veil = veil;
	plan->veil_count++;
	plan->veiled_pipes = true;
	return 0;
}

int vt_pipes_decide(struct vt_root *root, struct vt_plan *plan, struct vt_err *err)
{
	int r = 0;

	/* The rules of a bare cell are about the host's own paths, where nothing is mounted. */
	if (plan->bare)
		return 0;
	for (struct vt_node *node = root->top->children; r == 0 && node;
	     node = vt_node_next(root->top, node))
		if (has_open_pipes(root, node))
			r = veil_pipes(root, plan, node, err);
	return r;
}
