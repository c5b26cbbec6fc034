/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/deny.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "plan/denied.h"
#include "plan/fail.h"
#include "plan/root_private.h"

struct denying {
	struct vt_root *root;
	const struct vt_host *host;
	struct vt_arena *arena;
	struct vt_plan *plan;
	struct vt_denied *denies;
	size_t count;
};

/* A veil while its names are being found. */
struct veiling {
	struct denying *d;
	const struct vt_node *mount;
	struct vt_veiled *names;
	size_t count, room;
	const char *last; /* the path that was closed last; NULL: none */
};

/* The deny that a host path lies in, or NULL. */
static struct vt_denied *deny_around(const struct denying *d, const char *path)
{
	for (size_t i = 0; i < d->count; i++)
		if (vt_path_lies_in(path, d->denies[i].path))
			return &d->denies[i];
	return NULL;
}

/* ---- what is denied as a whole ------------------------------------------------------------- */

static bool is_needed(struct vt_node *top)
{
	for (struct vt_node *node = top->children; node; node = vt_node_next(top, node))
		if (node->act != VT_ACT_DIR)
			return true;
	return false;
}

static void unlink_node(struct vt_node *node)
{
	struct vt_node *parent = node->parent, *before = NULL;

	for (struct vt_node *at = parent->children; at != node; at = at->next)
		before = at;
	if (before)
		before->next = node->next;
	else
		parent->children = node->next;
	if (parent->last_child == node)
		parent->last_child = before;
}

static int drop_mounts(struct denying *d, struct vt_err *err)
{
	struct vt_node *top = d->root->top, *next;

	for (struct vt_node *node = top->children; node; node = next) {
		struct vt_denied *deny = node->act == VT_ACT_BIND ? deny_around(d, node->from)
								  : NULL;

		next = vt_node_next(top, node);
		if (!deny)
			continue;
		if (node->device)
			return vt_fail(err, VT_STEP_PLAN, EPERM,
				       "refused: %s: '%s': the cell has a /dev of its own",
				       deny->origin, deny->path);
		deny->used = true;
		node->act = VT_ACT_DIR;
		node->mode = 0755;
		node->from = NULL;
		node->writable = node->granted = node->mapped = false;
	}
	/* What is left without anything in it is not there; parents come first, so look twice. */
	for (struct vt_node *node = top->children; node; node = next) {
		bool gone = node->act == VT_ACT_DIR && node->origin && !is_needed(node);

		next = vt_node_next(top, node);
		node->shown = node->parent->shown || node->parent->act == VT_ACT_BIND;
		if (!gone)
			continue;
		/* Below it is nothing but folders: the walk goes on after them. */
		while (next && next->parent && vt_path_lies_in(next->path, node->path))
			next = vt_node_next(top, next);
		unlink_node(node);
	}
	return 0;
}

/* ---- veils --------------------------------------------------------------------------------- */

static struct vt_veiled *add_name(struct veiling *v, enum vt_veiled_kind kind, const char *path,
				  size_t len, mode_t mode)
{
	if (v->count == v->room) {
		size_t room = 2 * v->room + 16;
		struct vt_veiled *more = vt_arena_array(v->d->arena, room, sizeof(*more));

		if (!more)
			return NULL;
		if (v->count)
			memcpy(more, v->names, v->count * sizeof(*more));
		v->names = more;
		v->room = room;
	}
	const char *copy = vt_arena_dupn(v->d->arena, path, len);

	if (!copy)
		return NULL;
	v->names[v->count] = (struct vt_veiled){ kind, copy, mode };
	return &v->names[v->count++];
}

static int close_name(struct veiling *v, struct vt_denied *deny, const char *path, size_t len,
		      enum vt_veiled_kind kind, struct vt_err *err)
{
	const struct vt_veiled *name = add_name(v, kind, path, len, 0);

	if (!name)
		return vt_plan_nomem(err);
	v->last = name->path;
	if (path[len] == '\0')
		return 0;
	deny->closed = vt_arena_printf(v->d->arena, "%s/%s", v->mount->from, name->path);
	return deny->closed ? 0 : vt_plan_nomem(err);
}

/* Whoever may not look into a folder cannot mount in it either: then it is closed as a whole. */
static int close_around(struct veiling *v, struct vt_denied *deny, struct vt_err *err)
{
	struct vt_veiled *way = v->count ? &v->names[v->count - 1] : NULL;

	if (!way || way->kind != VT_VEILED_WAY)
		return vt_fail(err, VT_STEP_PLAN, EACCES, "%s: '%s': %s", deny->origin, deny->path,
			       strerror(EACCES));
	way->kind = VT_VEILED_FOLDER;
	v->last = way->path;
	deny->closed = vt_arena_printf(v->d->arena, "%s/%s", v->mount->from, way->path);
	return deny->closed ? 0 : vt_plan_nomem(err);
}

/* One part of the way to a denied name: 1 where there is more to come, 0 where it ends. */
static int veil_part(struct veiling *v, struct vt_denied *deny, const char *path, size_t len,
		     struct vt_err *err)
{
	const struct vt_host *host = v->d->host;
	const bool writable = v->mount->writable, last = path[len] == '\0';
	const char *whole = vt_arena_printf(v->d->arena, "%s/%.*s", v->mount->from, (int)len, path);
	struct vt_path seen;

	if (!whole)
		return vt_plan_nomem(err);
	int r = host->look(host, whole, &seen);

	if (r == -EACCES && writable)
		return close_around(v, deny, err);
	/* What is not there is closed from there on: a folder in its place would be one too many.
	 */
	if (r < 0)
		return close_name(v, deny, path, len, VT_VEILED_FILE, err);
	if (last)
		return close_name(
			v, deny, path, len,
			S_ISDIR(seen.mode) && !seen.link ? VT_VEILED_FOLDER : VT_VEILED_FILE, err);
	if (!S_ISDIR(seen.mode))
		return vt_fail(err, VT_STEP_PLAN, ENOTDIR, "%s: '%s': '%s' is no folder",
			       deny->origin, deny->path, whole);
	return add_name(v, VT_VEILED_WAY, path, len, seen.mode) ? 1 : vt_plan_nomem(err);
}

/* How much of a path is a folder on the way that is there already. */
static size_t known_way(const struct veiling *v, const char *path)
{
	for (size_t i = v->count; i > 0; i--) {
		const struct vt_veiled *name = &v->names[i - 1];

		if (name->kind == VT_VEILED_WAY && vt_path_lies_in(path, name->path))
			return strlen(name->path);
		/* Paths come in order: once the first parts differ, so do all before. */
		if (strncmp(name->path, path, strcspn(path, "/") + 1) != 0)
			break;
	}
	return 0;
}

static int veil_deny(struct veiling *v, struct vt_denied *deny, struct vt_err *err)
{
	const char *path = deny->path + strlen(v->mount->from) + 1;
	size_t len = known_way(v, path);
	int r;

	if (v->last && vt_path_lies_in(path, v->last))
		return 0;
	do {
		len += path[len] == '/';
		len += strcspn(path + len, "/");
		r = veil_part(v, deny, path, len, err);
	} while (r > 0);
	return r;
}

/* ---- whether it can hold ------------------------------------------------------------------- */

static int check_layer(const struct denying *d, const struct vt_node *mount,
		       const struct vt_denied *deny, struct vt_err *err)
{
	struct vt_path seen = mount->seen;
	struct vt_layer layer = { .overlay = { ENOSYS, "an overlay" } };
	int r = 0;

	seen.idmap = seen.idmap && mount->mapped && d->plan->own_ids;
	if (d->plan->bare)
		layer.overlay = d->host->userns;
	else if (d->host->layer)
		r = d->host->layer(d->host, mount->from, &seen, &layer);
	if (r < 0)
		return vt_fail(err, VT_STEP_PLAN, -r, "%s: '%s': %s", deny->origin, mount->from,
			       strerror(-r));
	if (layer.overlay.err)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: %s: '%s' cannot be kept closed inside '%s' here (%s: %s); "
			       "grant the folders beside it instead%s",
			       deny->origin, deny->path, mount->from, layer.overlay.tried,
			       strerror(layer.overlay.err),
			       d->plan->bare ? "; `vitro doctor` says what to do" : "");
	if (layer.submounts)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: %s: '%s' cannot be kept closed inside '%s', which has other "
			"file systems mounted in it; grant the folders beside it instead",
			deny->origin, deny->path, mount->from);
	if (mount->writable && !layer.upper)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: %s: '%s' cannot be kept closed inside '%s', whose kind of file "
			"system cannot be written through an overlay; grant it for reading, or "
			"the folders beside what is denied",
			deny->origin, deny->path, mount->from);
	return 0;
}

/* The way from a folder to what lies in it, or is it. */
static const char *way_from(const char *base, const char *path)
{
	path += strlen(base);
	return path + (*path == '/');
}

/* A work folder in `folder`, with `base` around it and the mount. Whether that does. */
static bool take_work(struct denying *d, const char *from, const char *folder, const char *base,
		      struct vt_veil *veil)
{
	struct vt_path seen;

	if (vt_root_can_write(d->root, folder) || !d->host->can_work ||
	    d->host->can_work(d->host, from, folder, base, &seen) < 0)
		return false;
	veil->base = base;
	veil->base_dev = seen.dev;
	veil->base_ino = seen.ino;
	veil->base_to_folder = way_from(base, from);
	veil->base_to_work = way_from(base, folder);
	veil->work_parent = folder;
	return true;
}

/*
 * Around the folder, as near as can be: that is on the same mount most often. Else where everybody
 * can make folders. Never where the cell itself could reach into it.
 */
static int find_work(struct denying *d, const struct vt_node *mount, const struct vt_denied *deny,
		     struct vt_veil *veil, struct vt_err *err)
{
	static const char *const open_to_all[] = { "/tmp", "/var/tmp" };
	size_t len = strlen(mount->from);

	while (len > 0) {
		while (mount->from[--len] != '/')
			;
		const char *folder = vt_arena_dupn(d->arena, mount->from, len ? len : 1);

		if (!folder)
			return vt_plan_nomem(err);
		if (take_work(d, mount->from, folder, folder, veil))
			return 0;
	}
	for (size_t i = 0; i < sizeof(open_to_all) / sizeof(open_to_all[0]); i++)
		if (!vt_path_lies_in(open_to_all[i], mount->from) &&
		    take_work(d, mount->from, open_to_all[i], "/", veil))
			return 0;
	return vt_fail(err, VT_STEP_PLAN, EPERM,
		       "refused: %s: '%s' cannot be kept closed inside '%s': that needs a folder "
		       "beside it, on the same mount, in which you may write and the cell may not; "
		       "grant a folder further down, or for reading",
		       deny->origin, deny->path, mount->from);
}

static int make_veil(struct denying *d, struct vt_node *mount, struct veiling *v,
		     const struct vt_denied *first, struct vt_err *err)
{
	struct vt_veil *veil = vt_arena_alloc(d->arena, sizeof(*veil));
	int r = veil ? check_layer(d, mount, first, err) : vt_plan_nomem(err);

	if (r < 0)
		return r;
	*veil = (struct vt_veil){
		.name = vt_arena_printf(d->arena, "veil-%zu", d->plan->veil_count),
		.mode = mount->seen.mode,
		.names = v->names,
		.count = v->count,
		.work = -1,
	};
	if (!veil->name)
		return vt_plan_nomem(err);
	if (mount->writable) {
		r = find_work(d, mount, first, veil, err);
		if (r < 0)
			return r;
		veil->work = (int)d->plan->work_count++;
	}
	mount->veil = veil;
	d->plan->veil_count++;
	d->plan->veiled_count += v->count;
	return 0;
}

static int veil_mount(struct denying *d, struct vt_node *mount, struct vt_err *err)
{
	struct veiling v = { .d = d, .mount = mount };
	struct vt_denied *first = NULL;

	for (size_t i = 0; i < d->count; i++) {
		if (!vt_path_lies_in(d->denies[i].path, mount->from))
			continue;
		first = first ? first : &d->denies[i];
		d->denies[i].used = true;
		int r = veil_deny(&v, &d->denies[i], err);

		if (r < 0)
			return r;
	}
	return first ? make_veil(d, mount, &v, first, err) : 0;
}

/* What was to be mounted at a place that is closed now has none. */
static int check_places(struct denying *d, struct vt_err *err)
{
	struct vt_node *top = d->root->top;

	for (struct vt_node *node = top->children; node; node = vt_node_next(top, node)) {
		const struct vt_node *around = vt_node_mount(node->parent);

		if (node->act != VT_ACT_BIND || !around || !around->veil)
			continue;
		const char *place = vt_node_host_path(d->root, around, node);
		const struct vt_denied *deny = place ? deny_around(d, place) : NULL;

		if (!place)
			return vt_plan_nomem(err);
		if (deny)
			return vt_fail(err, VT_STEP_PLAN, EPERM,
				       "refused: %s: '%s' cannot be placed at '/%s', which is "
				       "denied by %s",
				       node->origin, node->from, node->path, deny->origin);
	}
	return 0;
}

/* One entry of a policy may name more than one path: a link, where it leads, where else it is. */
static bool is_used(const struct denying *d, const char *origin)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->denies[i].origin == origin && d->denies[i].used)
			return true;
	return false;
}

/* A deny that takes nothing away is a slip most often: of the name, or of what it is relative to.
 */
static int warn_unused(struct denying *d, struct vt_err *err)
{
	enum { ENOUGH = 2 };
	const char *last = NULL;
	size_t told = 0;

	for (size_t i = 0; i < d->count && told < ENOUGH; i++) {
		const struct vt_denied *deny = &d->denies[i];

		if (deny->used || deny->origin == last || is_used(d, deny->origin))
			continue;
		const char *text = vt_arena_printf(d->arena,
						   "%s: '%s' lies in nothing that the cell could "
						   "see, so it denies nothing",
						   deny->origin, deny->named);

		if (!text)
			return vt_plan_nomem(err);
		vt_plan_warn(d->plan, text);
		told++;
		last = deny->origin;
	}
	return 0;
}

static int list_denials(struct denying *d, struct vt_err *err)
{
	struct vt_denial *denials = vt_arena_array(d->arena, d->count + 1, sizeof(*denials));

	if (!denials)
		return vt_plan_nomem(err);
	for (size_t i = 0; i < d->count; i++)
		denials[i] = (struct vt_denial){ d->denies[i].path, d->denies[i].closed };
	d->plan->denials = denials;
	d->plan->denial_count = d->count;
	return 0;
}

int vt_deny_decide(struct vt_root *root, const struct vt_policy *policy, struct vt_plan *plan,
		   struct vt_err *err)
{
	struct denying d = {
		.root = root,
		.host = root->host,
		.arena = root->arena,
		.plan = plan,
	};
	int r = vt_denied_list(root, &policy->files.deny, &d.denies, &d.count, err);

	if (r < 0 || d.count == 0)
		return r;
	r = drop_mounts(&d, err);
	for (struct vt_node *node = root->top->children; r == 0 && node;
	     node = vt_node_next(root->top, node))
		if (node->act == VT_ACT_BIND)
			r = veil_mount(&d, node, err);
	if (r == 0)
		r = check_places(&d, err);
	if (r == 0)
		r = warn_unused(&d, err);
	return r < 0 ? r : list_denials(&d, err);
}
