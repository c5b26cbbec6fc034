/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/policies.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/path.h"
#include "host/paths.h"
#include "plan/way.h"
#include "policy/builtin.h"
#include "policy/policy.h"

/* What the policy layer calls a text, which here has a line instead. */
#define TEXT_NAME "policy"

struct reading {
	const char *path;
	const struct vt_place *place;
	struct vt_mistakes *mistakes;
};

/* ---- who can change it ---------------------------------------------------------------------- */

struct guarding {
	const struct vt_policy *policy;
	const char *found; /* what may be written, and has it in it */
};

static bool lies_in(const char *path, const char *granted)
{
	char real[PATH_MAX];

	return realpath(granted, real) && vt_path_lies_in(path, real);
}

/* path is where the file is, or a link on the way to it. */
static void look_at(struct guarding *g, const char *path)
{
	const struct vt_grants *deny = &g->policy->files.deny, *write = &g->policy->files.write;

	for (size_t i = 0; i < deny->count; i++)
		if (lies_in(path, deny->items[i].from))
			return;
	for (size_t i = 0; !g->found && i < write->count; i++)
		if (lies_in(path, write->items[i].from))
			g->found = write->items[i].from;
}

/* Whether a call under the policy could change a file that says what calls may do. */
static bool is_guarded(struct reading *r, const struct vt_policy *policy)
{
	const struct vt_host host = { .step = vt_paths_step };
	struct guarding g = { .policy = policy };
	struct vt_way way;
	struct vt_err err;

	if (policy->require == VT_REQUIRE_BEST_EFFORT || policy->files.write.count == 0)
		return true;
	for (size_t i = 0; !g.found && i < policy->sources.count; i++) {
		const char *source = policy->sources.items[i];

		/* It was read a moment ago: whose way changes now is changed by somebody. */
		if (vt_way_find(&host, policy->arena, source, source, &way, &err) < 0) {
			vt_mistakes_add(r->mistakes, r->place, "policy: %s", err.what);
			return false;
		}
		for (size_t j = 0; j < way.link_count; j++)
			look_at(&g, way.links[j].path);
		look_at(&g, way.real);
		if (g.found)
			vt_mistakes_add(r->mistakes, r->place,
					"policy: files.write: with '%s' the tool could change "
					"'%s', which says what the next call may do: put that "
					"elsewhere, or deny it",
					g.found, source);
	}
	return !g.found;
}

/* ---- reading it ----------------------------------------------------------------------------- */

/* "limits.wall_ms: ..." becomes "policy.limits.wall_ms: ...", and so has a line. */
static void complain(struct reading *r, const char *what, bool of_text)
{
	const char *word = strchr(what, '\'');

	if (strncmp(what, TEXT_NAME ": ", strlen(TEXT_NAME ": ")) == 0)
		what += strlen(TEXT_NAME ": ");
	size_t len = strcspn(what, ": ");

	/* One that it extends has keys of its own. */
	if (of_text && *what == '/')
		vt_mistakes_add(r->mistakes, r->place, "policy.extends: %s", what);
	else if (of_text && what[len] == ':' && what[len + 1] == ' ')
		vt_mistakes_add(r->mistakes, r->place, "policy.%s", what);
	else if (of_text && strncmp(what, "unknown key '", 13) == 0)
		vt_mistakes_add(r->mistakes, r->place, "policy.%.*s: %s",
				(int)strcspn(word + 1, "'"), word + 1, what);
	else
		vt_mistakes_add(r->mistakes, r->place, "policy: %s", what);
}

/* A file's name, from the manifest's folder. NULL: no memory. */
static const char *find_file(struct vt_arena *arena, const char *path, const char *name)
{
	if (*name == '/')
		return vt_arena_dup(arena, name);
	return vt_arena_printf(arena, "%.*s%s", (int)(strrchr(path, '/') + 1 - path), path, name);
}

static int apply(const char *path, const struct vt_manifest_policy *found, struct vt_policy *policy,
		 struct vt_err *err)
{
	int status = vt_policy_load_part(policy, found->json, strlen(found->json), path, TEXT_NAME,
					 err);

	return status == 0 && found->load ? vt_policy_load(policy, found->load, "", err) : status;
}

/* Which files they are, and when they were written: all, or a change of one could go unseen. */
static const char *stamp(struct reading *r, struct vt_arena *arena, const struct vt_policy *policy)
{
	const char *text = NULL;
	char one[VT_FILE_STAMP];

	for (size_t i = 0; i < policy->sources.count; i++) {
		struct stat info;

		if (strcmp(policy->sources.items[i], r->path) == 0 ||
		    stat(policy->sources.items[i], &info) < 0)
			continue;
		vt_file_stamp(&info, one);
		text = vt_arena_printf(arena, "%s%s ", text ? text : "", one);
		if (!text) {
			r->mistakes->lines->failed = true; /* no memory */
			return NULL;
		}
	}
	return text;
}

/* All that is wrong with its keys; else the one thing that kept it from being read. */
static void complain_of_all(struct reading *r, struct vt_str *mistakes, const struct vt_err *err,
			    bool of_text)
{
	char *rest = mistakes->text;

	r->mistakes->lines->failed |= !vt_str_ok(mistakes);
	if (!mistakes->len)
		complain(r, err->what, of_text);
	for (char *line; (line = strsep(&rest, "\n")) && *line;)
		complain(r, line, of_text);
}

static bool is_sound(struct reading *r, struct vt_arena *arena, struct vt_manifest_policy *found)
{
	struct vt_policy *policy;
	struct vt_str mistakes;
	struct vt_err err = { 0 };
	int status = vt_policy_new(&policy, &err);
	bool sound = false;

	vt_str_init(&mistakes);
	if (status == 0) {
		policy->mistakes = &mistakes;
		status = apply(r->path, found, policy, &err);
		sound = status == 0 && is_guarded(r, policy);
		found->stamp = sound ? stamp(r, arena, policy) : NULL;
		vt_policy_free(policy);
	}
	if (status < 0)
		complain_of_all(r, &mistakes, &err, !found->load);
	vt_str_done(&mistakes);
	return sound;
}

bool vt_policies_read(struct vt_arena *arena, const char *path, const json_t *value,
		      const struct vt_place *place, struct vt_json_span span,
		      struct vt_manifest_policy *ret_policy, struct vt_mistakes *mistakes)
{
	struct reading r = { path, place, mistakes };
	struct vt_manifest_policy found = { .json = "{}" };

	if (json_is_object(value)) {
		found.json = vt_arena_dupn(arena, span.at, (size_t)(span.end - span.at));
	} else if (json_is_string(value)) {
		const char *name = json_string_value(value);

		found.load = vt_builtin_find(name) ? vt_arena_dup(arena, name)
						   : find_file(arena, path, name);
	} else {
		vt_mistakes_add(mistakes, place,
				"policy: want an object, or the name of a policy as a string");
		return false;
	}
	if (!found.json || (json_is_string(value) && !found.load)) {
		mistakes->lines->failed = true;
		return false;
	}
	if (!is_sound(&r, arena, &found))
		return false;
	*ret_policy = found;
	return true;
}
