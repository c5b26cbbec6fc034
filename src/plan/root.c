/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/root.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "plan/fail.h"
#include "plan/root_private.h"

enum { MAX_LINK_HOPS = 8 };

struct vt_root *vt_root_new(struct vt_arena *arena, const struct vt_host *host)
{
	struct vt_root *root = vt_arena_alloc(arena, sizeof(*root));

	if (!root)
		return NULL;
	*root = (struct vt_root){ .arena = arena, .host = host };
	root->top = vt_arena_alloc(arena, sizeof(*root->top));
	if (!root->top)
		return NULL;
	*root->top = (struct vt_node){ .name = "", .path = "", .act = VT_ACT_DIR, .mode = 0755 };
	return root;
}

/* Orders a node's name against the first len bytes of another. */
static int compare(const struct vt_node *node, const char *name, size_t len)
{
	int order = strncmp(node->name, name, len);

	return order ? order : node->name[len] != '\0';
}

/*
 * Children are in the order of their names, and paths mostly come in that order too: then the last
 * one answers at once, and a folder of a thousand grants is planned in linear time.
 */
static struct vt_node *find_child(const struct vt_node *parent, const char *name, size_t len)
{
	if (!parent->last_child || compare(parent->last_child, name, len) < 0)
		return NULL;
	if (compare(parent->last_child, name, len) == 0)
		return parent->last_child;
	for (struct vt_node *child = parent->children; child; child = child->next)
		if (compare(child, name, len) == 0)
			return child;
	return NULL;
}

static void insert_child(struct vt_node *parent, struct vt_node *child)
{
	struct vt_node **link = &parent->children;

	if (!parent->last_child || strcmp(parent->last_child->name, child->name) < 0) {
		if (parent->last_child)
			link = &parent->last_child->next;
		parent->last_child = child;
	} else {
		while (strcmp((*link)->name, child->name) < 0)
			link = &(*link)->next;
	}
	child->next = *link;
	*link = child;
}

static struct vt_node *add_child(struct vt_root *root, struct vt_node *parent, const char *name,
				 size_t len)
{
	struct vt_node *child = vt_arena_alloc(root->arena, sizeof(*child));

	if (!child)
		return NULL;
	child->name = vt_arena_dupn(root->arena, name, len);
	child->path = vt_arena_printf(root->arena, "%s%s%.*s", parent->path,
				      *parent->path ? "/" : "", (int)len, name);
	if (!child->name || !child->path)
		return NULL;
	child->parent = parent;
	child->act = VT_ACT_DIR;
	child->mode = 0755;
	child->shown = parent->shown || parent->act == VT_ACT_BIND;
	insert_child(parent, child);
	root->count++;
	return child;
}

const struct vt_node *vt_node_mount(const struct vt_node *node)
{
	while (node && node->act != VT_ACT_BIND)
		node = node->parent;
	return node;
}

const char *vt_node_host_path(const struct vt_root *root, const struct vt_node *mount,
			      const struct vt_node *node)
{
	const char *rest = node->path + strlen(mount->path);

	return vt_arena_printf(root->arena, "%s%s", mount->from, rest);
}

/* What a name other than that of a child means, in the target of a link. */
static struct vt_node *special(struct vt_node *at, const char *name, size_t len)
{
	if (len == 0 || (len == 1 && name[0] == '.'))
		return at;
	if (len == 2 && name[0] == '.' && name[1] == '.')
		return at->parent ? at->parent : at;
	return NULL;
}

/*
 * Walks to the node at path, making what is missing. A link of the cell's own on the way is
 * followed, so that /bin/x and /usr/bin/x are one place.
 */
static int walk(struct vt_root *root, const char *path, struct vt_node **ret_node,
		struct vt_err *err)
{
	struct vt_node *at = root->top;
	int hops = 0;

	while (*path) {
		size_t len = strcspn(path, "/");
		struct vt_node *known = special(at, path, len);

		if (known) {
			at = known;
			path += len + (path[len] == '/');
			continue;
		}
		struct vt_node *child = find_child(at, path, len);

		if (!child)
			child = add_child(root, at, path, len);
		if (!child)
			return vt_plan_nomem(err);
		path += len;
		if (child->act == VT_ACT_LINK && *path) {
			if (++hops > MAX_LINK_HOPS)
				return vt_fail(err, VT_STEP_PLAN, ELOOP, "too many links in '/%s'",
					       child->path);
			const char *target = child->from;

			path = vt_arena_printf(root->arena, "%s%s", target, path);
			if (!path)
				return vt_plan_nomem(err);
			at = *target == '/' ? root->top : at;
			continue;
		}
		at = child;
	}
	*ret_node = at;
	return 0;
}

/* A place inside a granted folder must be there already: nothing is made on the host. */
static int check_place(struct vt_root *root, const struct vt_node *node, const char *origin,
		       const char *from, mode_t mode, struct vt_err *err)
{
	const struct vt_node *around = vt_node_mount(node->parent);
	struct vt_path place;

	if (!around)
		return 0;
	const char *path = vt_node_host_path(root, around, node);

	if (!path)
		return vt_plan_nomem(err);
	if (root->host->look(root->host, path, &place) < 0)
		return vt_fail(
			err, VT_STEP_PLAN, ENOENT,
			"%s: '%s' cannot be placed at '/%s': '%s' is granted and has no such entry",
			origin, from, node->path, around->from);
	if (S_ISDIR(place.mode) != S_ISDIR(mode))
		return vt_fail(
			err, VT_STEP_PLAN, ENOTDIR,
			"%s: '%s' cannot be placed at '/%s': one is a folder, the other is not",
			origin, from, node->path);
	return 0;
}

static int check_kind(const struct vt_entry *entry, mode_t mode, struct vt_err *err)
{
	if (entry->socket && S_ISSOCK(mode))
		return 0;
	if (entry->socket)
		return vt_fail(err, VT_STEP_PLAN, ENOTSOCK, "%s: '%s' is no socket", entry->origin,
			       entry->from);
	if (S_ISDIR(mode) || S_ISREG(mode) || (entry->device && S_ISCHR(mode)))
		return 0;
	return vt_fail(err, VT_STEP_PLAN, EINVAL,
		       "%s: '%s' is %s, and only files and folders can be granted%s", entry->origin,
		       entry->from,
		       S_ISSOCK(mode)   ? "a socket"
		       : S_ISFIFO(mode) ? "a pipe"
					: "a device",
		       S_ISSOCK(mode) ? "; --socket lets the cell connect to it" : "");
}

/* Whether a mount shows `from` at `node` already, with the rights that it is to have. */
static bool shows(const struct vt_root *root, const struct vt_node *mount,
		  const struct vt_node *node, const char *from, bool writable, bool granted)
{
	/* Of grants inside each other the inner one counts; of the same place the one for writing.
	 */
	bool narrows = granted && !writable && mount && mount->writable && mount != node;

	if (!mount || (writable && !mount->writable) || narrows)
		return false;
	const char *path = vt_node_host_path(root, mount, node);

	return path && strcmp(path, from) == 0;
}

struct vt_node *vt_node_next(const struct vt_node *top, struct vt_node *node)
{
	if (node->children)
		return node->children;
	while (node != top && !node->next)
		node = node->parent;
	return node == top ? NULL : node->next;
}

/*
 * What came before the mount around it is part of that now: its place must be there on the host,
 * and what the mount shows anyway needs none of its own.
 */
static int absorb(struct vt_root *root, struct vt_node *mount, struct vt_err *err)
{
	for (struct vt_node *node = mount->children; node; node = vt_node_next(mount, node)) {
		const struct vt_node *around = vt_node_mount(node->parent);

		node->shown = true;
		if (node->act != VT_ACT_BIND ||
		    (!node->device && !node->socket && !node->mapped &&
		     shows(root, around, node, node->from, node->writable, node->granted))) {
			node->act = VT_ACT_DIR;
			continue;
		}
		int r = check_place(root, node, node->origin, node->from, node->mode, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* What is no name of a file to who wrote it is one here. */
static const char *missing_advice(const struct vt_entry *entry)
{
	if (strpbrk(entry->from, "*?["))
		return "; there are no patterns: name the file or its folder";
	if (strchr(entry->from, '$'))
		return "; there are no variables: write the whole path";
	return entry->writable ? "; make it first" : "";
}

/* "data:/in" is how others write a move. */
static int fail_missing(const struct vt_entry *entry, int num, struct vt_err *err)
{
	const char *named = entry->way ? entry->way->path : entry->from;
	const char *colon = num == ENOENT ? strstr(named, ":/") : NULL;

	if (colon)
		return vt_fail(err, VT_STEP_PLAN, num,
			       "%s: '%s': %s; to show a path at another place inside: "
			       "{\"from\": \"%.*s\", \"to\": \"%s\"}",
			       entry->origin, named, strerror(num), (int)(colon - named), named,
			       colon + 1);
	return vt_fail(err, VT_STEP_PLAN, num, "%s: '%s': %s%s", entry->origin, named,
		       strerror(num), num == ENOENT ? missing_advice(entry) : "");
}

/* 1: it is there; 0: it is not, and need not be. */
static int look(const struct vt_root *root, const struct vt_entry *entry, struct vt_path *ret_seen,
		struct vt_err *err)
{
	int r = 0;

	if (!entry->way)
		r = root->host->look(root->host, entry->from, ret_seen);
	else if (entry->way->err)
		r = -entry->way->err;
	else
		*ret_seen = entry->way->seen;
	if (r < 0 && !entry->optional)
		return fail_missing(entry, -r, err);
	return r == 0;
}

static int mount_seen(struct vt_root *root, const struct vt_entry *entry,
		      const struct vt_path *seen, struct vt_err *err)
{
	struct vt_node *node;
	int r = check_kind(entry, seen->mode, err);

	if (r < 0)
		return r;
	r = walk(root, entry->to, &node, err);
	if (r < 0 ||
	    (!entry->device && !entry->socket &&
	     shows(root, vt_node_mount(node), node, entry->from, entry->writable, entry->granted)))
		return r;
	if (node->act == VT_ACT_BIND && strcmp(node->from, entry->from) != 0)
		return vt_fail(err, VT_STEP_PLAN, EEXIST,
			       "%s: '%s' and '%s' cannot both be at '%s'", entry->origin,
			       node->from, entry->from, entry->to);
	if (node->act == VT_ACT_DIR && node->children && !S_ISDIR(seen->mode))
		return vt_fail(err, VT_STEP_PLAN, ENOTDIR,
			       "%s: '%s' is no folder, but '%s' must be one", entry->origin,
			       entry->from, entry->to);
	r = check_place(root, node, entry->origin, entry->from, seen->mode, err);
	if (r < 0)
		return r;
	node->act = VT_ACT_BIND;
	node->from = vt_arena_dup(root->arena, entry->from);
	node->origin = vt_arena_dup(root->arena, entry->origin);
	node->writable |= entry->writable;
	node->device = entry->device;
	node->socket = entry->socket;
	node->granted = entry->granted;
	node->mapped = entry->mapped;
	node->mode = seen->mode;
	node->seen = *seen;
	if (!node->from || !node->origin)
		return vt_plan_nomem(err);
	return absorb(root, node, err);
}

int vt_root_mount(struct vt_root *root, const struct vt_entry *entry, struct vt_err *err)
{
	struct vt_path seen;
	int r = look(root, entry, &seen, err);

	return r <= 0 ? r : mount_seen(root, entry, &seen, err);
}

int vt_root_link_or_mount(struct vt_root *root, const struct vt_entry *entry, struct vt_err *err)
{
	char target[PATH_MAX];
	struct vt_path seen, itself;
	struct vt_node *node;
	int r = look(root, entry, &seen, err);

	if (r <= 0)
		return r;
	if (!seen.link ||
	    root->host->step(root->host, entry->from, &itself, target, sizeof(target)) < 0 ||
	    !itself.link)
		return mount_seen(root, entry, &seen, err);
	r = walk(root, entry->to, &node, err);
	if (r < 0)
		return r;
	/* With a grant below it, it can be no link: then it is the folder that the link leads to.
	 */
	if (node->children)
		return mount_seen(root, entry, &seen, err);
	return vt_root_own(root, VT_ACT_LINK, entry->to, target, 0777, err);
}

bool vt_root_covers(const struct vt_root *root, const char *to)
{
	const struct vt_node *at = root->top;

	while (at && *to) {
		size_t len = strcspn(to, "/");

		if (len) {
			at = find_child(at, to, len);
			if (at && at->act == VT_ACT_BIND)
				return true;
		}
		to += len + (to[len] == '/');
	}
	return false;
}

bool vt_root_can_write(const struct vt_root *root, const char *path)
{
	for (struct vt_node *node = root->top->children; node; node = vt_node_next(root->top, node))
		if (node->act == VT_ACT_BIND && node->writable && vt_path_lies_in(path, node->from))
			return true;
	return false;
}

int vt_root_own(struct vt_root *root, enum vt_act act, const char *to, const char *from,
		mode_t mode, struct vt_err *err)
{
	struct vt_node *node;

	if (vt_root_covers(root, to))
		return 0;
	int r = walk(root, to, &node, err);

	if (r < 0)
		return r;
	if (node->children && act != VT_ACT_DIR && act != VT_ACT_SCRATCH)
		return 0; /* something of the user's is below it: it stays a folder */
	node->act = act;
	node->mode = mode;
	if (!from)
		return 0;
	node->from = vt_arena_dup(root->arena, from);
	return node->from ? 0 : vt_plan_nomem(err);
}

/* ---- the list ------------------------------------------------------------------------------ */

struct listing {
	struct vt_plan *plan;
	struct vt_build *builds;
	struct vt_idmap *idmaps;
	bool map_owners;
};

static int idmap_for(struct listing *list, const struct vt_node *node)
{
	struct vt_plan *plan = list->plan;

	if (!list->map_owners || !node->mapped || !node->seen.idmap)
		return -1;
	for (size_t i = 0; i < plan->idmap_count; i++)
		if (list->idmaps[i].uid == node->seen.uid && list->idmaps[i].gid == node->seen.gid)
			return (int)i;
	list->idmaps[plan->idmap_count] = (struct vt_idmap){ node->seen.uid, node->seen.gid };
	return (int)plan->idmap_count++;
}

static void list_build(struct listing *list, const struct vt_node *node, enum vt_act act)
{
	struct vt_build *build = &list->builds[list->plan->build_count];

	/* A bare cell has the host's own root: nothing is built, and what shows is said by rules.
	 */
	if (list->plan->bare && act != VT_ACT_BIND)
		return;
	list->plan->build_count++;
	*build = (struct vt_build){
		.act = act,
		.to = node->path,
		.from = act == VT_ACT_FILE && node->act == VT_ACT_BIND ? "" : node->from,
		.mode = act == VT_ACT_DIR && node->act == VT_ACT_BIND ? 0755 : node->mode,
		.writable = node->writable,
		.granted = node->granted,
		.nested = node->shown,
		.device = node->device,
		.socket = act == VT_ACT_BIND && node->socket,
		.idmap = act == VT_ACT_BIND ? idmap_for(list, node) : -1,
		.dev = node->seen.dev,
		.ino = node->seen.ino,
		.uid = node->seen.uid,
		.gid = node->seen.gid,
		.veil = act == VT_ACT_BIND ? node->veil : NULL,
	};
}

/* What must be there before the act itself: a mount needs a place to be mounted on. */
static void list_place(struct listing *list, const struct vt_node *node)
{
	if (node->shown)
		return;
	if (node->act == VT_ACT_SCRATCH || node->act == VT_ACT_PROC)
		list_build(list, node, VT_ACT_DIR);
	else if (node->act == VT_ACT_BIND)
		list_build(list, node, S_ISDIR(node->mode) ? VT_ACT_DIR : VT_ACT_FILE);
}

/* Parents before children. */
static void list_nodes(struct listing *list, const struct vt_node *top)
{
	for (struct vt_node *node = top->children; node; node = vt_node_next(top, node)) {
		list_place(list, node);
		if (!(node->shown && node->act == VT_ACT_DIR))
			list_build(list, node, node->act);
	}
}

int vt_root_finish(struct vt_root *root, struct vt_plan *plan, struct vt_err *err)
{
	struct listing list = {
		.plan = plan,
		/* a place and an act for each node, at the most */
		.builds = vt_arena_array(root->arena, 2 * root->count + 1, sizeof(struct vt_build)),
		.idmaps = vt_arena_array(root->arena, root->count + 1, sizeof(struct vt_idmap)),
		.map_owners = plan->own_ids && !plan->bare,
	};

	if (!list.builds || !list.idmaps)
		return vt_plan_nomem(err);
	plan->build_count = 0;
	plan->idmap_count = 0;
	list_nodes(&list, root->top);
	plan->builds = list.builds;
	plan->idmaps = list.idmaps;
	return 0;
}
