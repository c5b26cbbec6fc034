/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/policies.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/path.h"
#include "host/mounts.h"
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

/* One that was read, as far as that went. */
struct vt_policies_one {
	struct vt_policies_one *next;
	struct vt_policy *policy;
	struct vt_place place;
	char key[32]; /* the place's */
	bool sound;
};

/* ---- who can change them -------------------------------------------------------------------- */

/* Where a file is, a link on the way to it, or another name of one of these. */
struct spot {
	struct spot *next;
	const char *path;
};

/* A file that says what calls may do. */
struct source {
	struct source *next;
	const char *path;
	struct spot *spots;
	bool firm; /* some of those who stand on it are not for best effort */
};

struct judging {
	const struct vt_policies *all;
	struct vt_arena *arena;
	struct vt_mounts mounts;
	struct source *sources;
	struct vt_mistakes *mistakes;
	struct source *source; /* that is followed */
	int unknown;           /* its other names: a negative errno, or 0 */
};

static bool has_source(const struct vt_policy *policy, const char *path)
{
	size_t i = 0;

	while (i < policy->sources.count && strcmp(policy->sources.items[i], path) != 0)
		i++;
	return i < policy->sources.count;
}

static bool writes(const struct vt_policies_one *one)
{
	return one->sound && one->policy->files.write.count;
}

static void add_spot(void *arg, const char *path)
{
	struct judging *j = arg;
	struct spot *spot = vt_arena_alloc(j->arena, sizeof(*spot));
	const char *copy = vt_arena_dup(j->arena, path);

	if (!spot || !copy) {
		j->mistakes->lines->failed = true; /* no memory */
		return;
	}
	*spot = (struct spot){ j->source->spots, copy };
	j->source->spots = spot;
}

static void add_spots(struct judging *j, const char *path)
{
	int r;

	add_spot(j, path);
	r = vt_mounts_aliases(&j->mounts, path, add_spot, j);
	j->unknown = r < 0 ? r : j->unknown;
}

/* It was read a moment ago: whose way changes now is changed by somebody. */
static void find_spots(struct judging *j, const struct vt_place *place)
{
	const struct vt_host host = { .step = vt_paths_step };
	const char *path = j->source->path;
	struct vt_way way;
	struct vt_err err;

	if (vt_way_find(&host, j->arena, path, path, &way, &err) < 0) {
		vt_mistakes_add(j->mistakes, place, "policy: %s", err.what);
		return;
	}
	for (size_t i = 0; i < way.link_count; i++)
		add_spots(j, way.links[i].path);
	add_spots(j, way.real);
}

/* Each once, in their order. */
static void find_sources(struct judging *j)
{
	struct source **last = &j->sources;

	for (const struct vt_policies_one *one = j->all->first; one; one = one->next) {
		for (size_t i = 0; i < one->policy->sources.count; i++) {
			const char *path = one->policy->sources.items[i];
			struct source *at = j->sources;

			while (at && strcmp(at->path, path) != 0)
				at = at->next;
			if (!at && (at = vt_arena_alloc(j->arena, sizeof(*at)))) {
				*at = (struct source){ .path = path };
				*last = at;
				last = &at->next;
			}
			if (at)
				at->firm |= one->policy->require != VT_REQUIRE_BEST_EFFORT;
			else
				j->mistakes->lines->failed = true;
		}
	}
}

/* Where the grants lead; what is not there is NULL. */
static const char **find_places(struct judging *j, const struct vt_grants *grants)
{
	const char **places = vt_arena_array(j->arena, grants->count + 1, sizeof(*places));
	char real[PATH_MAX];

	j->mistakes->lines->failed |= !places;
	for (size_t i = 0; places && i < grants->count; i++)
		places[i] = realpath(grants->items[i].from, real) ? vt_arena_dup(j->arena, real)
								  : NULL;
	return places;
}

/* Which of the places it lies in; count: in none. */
static size_t find_around(const char *path, const char *const *places, size_t count)
{
	size_t i = 0;

	while (i < count && !(places[i] && vt_path_lies_in(path, places[i])))
		i++;
	return i;
}

/* Under best effort it may change what nobody else stands on: plan/sources.h. */
static void judge(struct judging *j, const struct vt_policies_one *one)
{
	const struct vt_grants *write = &one->policy->files.write, *deny = &one->policy->files.deny;
	const char **written = find_places(j, write), **denied = find_places(j, deny);

	for (const struct source *source = j->sources; written && denied && source;
	     source = source->next) {
		if (one->policy->require == VT_REQUIRE_BEST_EFFORT && !source->firm)
			continue;
		for (const struct spot *spot = source->spots; spot; spot = spot->next) {
			size_t at = find_around(spot->path, written, write->count);

			if (at == write->count ||
			    find_around(spot->path, denied, deny->count) < deny->count)
				continue;
			vt_mistakes_add(j->mistakes, &one->place,
					"policy: files.write: with '%s' the tool could change "
					"'%s', which says what the next call may do: put that "
					"elsewhere, or deny it",
					write->items[at].from, source->path);
			return;
		}
	}
}

/* Each against what all of them stand on, also where another one could not be read. */
void vt_policies_judge(const struct vt_policies *all, struct vt_mistakes *mistakes)
{
	struct judging j = { .all = all, .arena = vt_arena_new(), .mistakes = mistakes };
	const struct vt_policies_one *writing = all->first;

	while (writing && !writes(writing))
		writing = writing->next;
	mistakes->lines->failed |= !j.arena;
	if (!j.arena || !writing) {
		vt_arena_free(j.arena);
		return;
	}
	vt_mounts_init(&j.mounts);
	find_sources(&j);
	for (j.source = j.sources; j.source; j.source = j.source->next) {
		j.source->firm |= all->others && strcmp(j.source->path, all->path) == 0;
		find_spots(&j, &writing->place);
	}
	if (j.unknown)
		vt_mistakes_add(mistakes, &writing->place,
				"policy: files.write: where else the files are mounted that say "
				"what calls may do cannot be found out: %s",
				strerror(-j.unknown));
	for (const struct vt_policies_one *one = all->first; one; one = one->next)
		if (writes(one))
			judge(&j, one);
	vt_mounts_done(&j.mounts);
	vt_arena_free(j.arena);
}

void vt_policies_list(const struct vt_policies *all, struct vt_str *out)
{
	vt_str_addn(out, all->path, strlen(all->path) + 1);
	for (const struct vt_policies_one *one = all->first; one; one = one->next)
		for (size_t i = 0; i < one->policy->sources.count; i++) {
			const char *path = one->policy->sources.items[i];
			const struct vt_policies_one *before = all->first;

			while (before != one && !has_source(before->policy, path))
				before = before->next;
			if (before == one && strcmp(path, all->path) != 0)
				vt_str_addn(out, path, strlen(path) + 1);
		}
}

void vt_policies_done(struct vt_policies *all)
{
	while (all->first) {
		struct vt_policies_one *one = all->first;

		all->first = one->next;
		vt_policy_free(one->policy);
		free(one);
	}
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

/* It stays with the others, to be judged with them. */
static bool is_sound(struct reading *r, struct vt_policies *all,
		     const struct vt_manifest_policy *found)
{
	struct vt_policies_one *one = calloc(1, sizeof(*one));
	struct vt_str mistakes;
	struct vt_err err = { 0 };

	if (!one || vt_policy_new(&one->policy, &err) < 0) {
		r->mistakes->lines->failed = true;
		free(one);
		return false;
	}
	struct vt_policies_one **last = &all->first;

	while (*last)
		last = &(*last)->next;
	*last = one;
	(void)snprintf(one->key, sizeof(one->key), "%s", r->place->key); /* fits */
	one->place = (struct vt_place){ r->place->span, one->key };
	vt_str_init(&mistakes);
	one->policy->mistakes = &mistakes;
	one->sound = apply(r->path, found, one->policy, &err) == 0;
	one->policy->mistakes = NULL;
	if (!one->sound)
		complain_of_all(r, &mistakes, &err, !found->load);
	vt_str_done(&mistakes);
	return one->sound;
}

bool vt_policies_read(struct vt_policies *all, struct vt_arena *arena, const json_t *value,
		      const struct vt_place *place, struct vt_json_span span,
		      struct vt_manifest_policy *ret_policy, struct vt_mistakes *mistakes)
{
	struct reading r = { all->path, place, mistakes };
	struct vt_manifest_policy found = { .json = "{}" };

	if (json_is_object(value)) {
		found.json = vt_arena_dupn(arena, span.at, (size_t)(span.end - span.at));
	} else if (json_is_string(value)) {
		const char *name = json_string_value(value);

		found.load = vt_builtin_find(name) ? vt_arena_dup(arena, name)
						   : find_file(arena, all->path, name);
	} else {
		vt_mistakes_add(mistakes, place,
				"policy: want an object, or the name of a policy as a string");
		return false;
	}
	if (!found.json || (json_is_string(value) && !found.load)) {
		mistakes->lines->failed = true;
		return false;
	}
	if (!is_sound(&r, all, &found))
		return false;
	*ret_policy = found;
	return true;
}
