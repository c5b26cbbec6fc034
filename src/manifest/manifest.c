/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest is read in step: jansson's values, which are checked, and the text of each, which has
 * its line and is kept as it was written.
 */
#include "manifest/manifest.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/closest.h"
#include "base/json.h"
#include "manifest/members.h"
#include "manifest/mistakes.h"
#include "manifest/needs.h"
#include "manifest/policies.h"
#include "tool/command.h"
#include "tool/function.h"
#include "tool/set.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KEY_SIZE     32

struct reading {
	struct vt_manifest *manifest;
	struct vt_mistakes mistakes;
	struct vt_policies policies;
	struct vt_manifest_policy policy; /* of tools without their own */
	const char *policy_at;            /* where that stands; NULL: there is none */
	const char **names;               /* as far as they are known; NULL for who has none */
};

static const char *copy(struct reading *r, const char *text, size_t len)
{
	char *made = vt_arena_dupn(r->manifest->arena, text, len);

	/* Seen at the end, as all that is wrong. */
	if (!made)
		r->mistakes.lines->failed = true;
	return made;
}

/* ---- tools ---------------------------------------------------------------------------------- */

enum { NAME, DESCRIPTION, SCHEMA, COMMAND, POLICY, INPUT, PYTHON, NODE, INTERPRETER, TOOL_FIELDS };

struct tool_reading {
	struct reading *r;
	const struct vt_place *place;
	struct vt_manifest_member fields[TOOL_FIELDS];
	struct vt_manifest_tool *tool;
	struct vt_schema *schema; /* NULL: none, or it is wrong */
	bool schema_is_wrong;
	json_t *needs; /* names of arguments that its command cannot do without */
	size_t index;
};

#define WRONG(t, ...) vt_mistakes_add(&(t)->r->mistakes, (t)->place, __VA_ARGS__)

/* The text of a field that must be a string. NULL: it is not there, or none. */
static const char *text_of(struct tool_reading *t, int field)
{
	const struct vt_manifest_member *f = &t->fields[field];

	if (f->value && !json_is_string(f->value))
		WRONG(t, "%s: want a string", f->key);
	return json_is_string(f->value)
		       ? copy(t->r, json_string_value(f->value), json_string_length(f->value))
		       : NULL;
}

static void read_name(struct tool_reading *t)
{
	struct vt_tool *made;
	struct vt_err err;

	t->tool->name = text_of(t, NAME);
	if (!t->fields[NAME].value)
		WRONG(t, "there is no \"name\"");
	if (!t->tool->name)
		return;
	if (vt_tool_new(t->tool->name, NULL, NULL, &made, &err) < 0) {
		WRONG(t, "name: %s", err.what);
		return;
	}
	vt_tool_unref(made);
	t->r->names[t->index] = t->tool->name;
	for (size_t i = 0; i < t->index; i++)
		if (t->r->names[i] && strcmp(t->r->names[i], t->tool->name) == 0) {
			WRONG(t, "name: '%s' is the name of tools[%zu] already", t->tool->name, i);
			return;
		}
}

static void read_description(struct tool_reading *t)
{
	t->tool->description = text_of(t, DESCRIPTION);
	if (t->tool->description && strlen(t->tool->description) > VT_TOOL_MAX_DESCRIPTION)
		WRONG(t, "description: it is longer than %d KB", VT_TOOL_MAX_DESCRIPTION >> 10);
}

static void read_schema(struct tool_reading *t)
{
	const struct vt_manifest_member *f = &t->fields[SCHEMA];
	size_t len = (size_t)(f->span.end - f->span.at);
	struct vt_err err;

	t->schema_is_wrong = true;
	if (f->value && !json_is_object(f->value))
		WRONG(t, "%s: want a JSON schema, which is an object", f->key);
	else if (f->value && len > VT_TOOL_MAX_SCHEMA)
		WRONG(t, "%s: it is longer than %d KB", f->key, VT_TOOL_MAX_SCHEMA >> 10);
	else if (f->value && (vt_schema_compile(f->value, f->key, &t->schema, NULL, &err) < 0 ||
			      vt_tool_check_type(f->value, f->key, &err) < 0))
		WRONG(t, "%s", err.what);
	else
		t->schema_is_wrong = false;
}

/* The words, ending with NULL. NULL: they are none. */
static const char **words_of(struct tool_reading *t)
{
	const struct vt_manifest_member *f = &t->fields[COMMAND];
	size_t count = json_array_size(f->value);

	if (!f->value) {
		WRONG(t, "there is no \"command\", no \"python\", and no \"node\"");
		return NULL;
	}
	if (!json_is_array(f->value)) {
		WRONG(t, "command: want a list of words%s",
		      json_is_string(f->value) ? ", as [\"wc\", \"-l\", \"--\", \"{file}\"]" : "");
		return NULL;
	}
	if (count > VT_COMMAND_MAX_WORDS) {
		WRONG(t, "command: there are more than %d words", VT_COMMAND_MAX_WORDS);
		return NULL;
	}
	const char **words = vt_arena_array(t->r->manifest->arena, count + 1, sizeof(*words));
	bool sound = words;

	t->r->mistakes.lines->failed |= !words;
	for (size_t i = 0; words && i < count; i++) {
		const json_t *word = json_array_get(f->value, i);

		words[i] = json_is_string(word)
				   ? copy(t->r, json_string_value(word), json_string_length(word))
				   : NULL;
		sound = sound && words[i];
		if (!json_is_string(word))
			WRONG(t, "command[%zu]: want a string", i);
	}
	return sound ? words : NULL;
}

/*
 * A program with a '/' in its name is beside the manifest. In a template its folder is text, braces
 * and all.
 */
static const char *find_program(struct tool_reading *t, const char *program, bool in_template)
{
	const char *path = t->r->manifest->path, *slash = strrchr(path, '/');
	struct vt_str text;

	if (*program == '/' || !strchr(program, '/'))
		return program;
	vt_str_init(&text);
	for (; path <= slash; path++) {
		vt_str_addn(&text, path, 1);
		if (in_template && (*path == '{' || *path == '}'))
			vt_str_addn(&text, path, 1);
	}
	vt_str_add(&text, program);
	t->r->mistakes.lines->failed |= !vt_str_ok(&text);
	const char *made = copy(t->r, text.text, text.len);

	vt_str_done(&text);
	return made;
}

/* Without a schema that holds, which arguments there are is not known. */
static void read_command(struct tool_reading *t)
{
	const char **words = words_of(t);
	struct vt_template *made;
	struct vt_err err;

	if (!words)
		return;
	t->tool->command = words;
	if (words[0])
		words[0] = find_program(t, words[0], true);
	if (t->schema_is_wrong || !vt_str_ok(t->r->mistakes.lines))
		return;
	if (vt_template_compile(words, t->schema, "command", &made, &err) < 0) {
		WRONG(t, "%s", err.what);
		return;
	}
	t->tool->program = copy(t->r, vt_template_program(made), strlen(vt_template_program(made)));
	t->r->mistakes.lines->failed |= vt_template_needs(made, t->needs) < 0;
	vt_template_free(made);
}

/* In place of a command, with which it has nothing in common. */
static void read_function(struct tool_reading *t, int field, enum vt_language language)
{
	const int others[] = { COMMAND, INPUT, field == PYTHON ? NODE : PYTHON };
	const char *interpreter = text_of(t, INTERPRETER);
	struct vt_err err;

	for (size_t i = 0; i < COUNT(others); i++)
		if (t->fields[others[i]].value)
			WRONG(t, "%s: does not go with \"%s\"", t->fields[others[i]].key,
			      t->fields[field].key);
	if (interpreter && !*interpreter)
		WRONG(t, "interpreter: it is empty");
	t->tool->language = language;
	t->tool->function = text_of(t, field);
	if (t->tool->function &&
	    vt_tool_check_function(language, t->tool->function, t->fields[field].key, &err) < 0)
		WRONG(t, "%s", err.what);
	t->tool->program = interpreter ? find_program(t, interpreter, false)
				       : vt_language_program(language);
}

static void read_input(struct tool_reading *t)
{
	const char *text = text_of(t, INPUT);
	struct vt_template *made;
	struct vt_err err;

	t->tool->input = text;
	if (!text || t->schema_is_wrong)
		return;
	if (vt_template_compile_input(text, t->schema, "stdin", &made, &err) < 0) {
		WRONG(t, "%s", err.what);
		return;
	}
	t->r->mistakes.lines->failed |= vt_template_needs(made, t->needs) < 0;
	vt_template_free(made);
}

/* Models, people and the server are told the same: what the command needs is required. */
static void keep_schema(struct tool_reading *t)
{
	const struct vt_manifest_member *f = &t->fields[SCHEMA];

	if (t->schema_is_wrong || (!f->value && !json_array_size(t->needs)))
		return;
	t->tool->schema = vt_needs_add(t->r->manifest->arena, f->value, f->span, t->needs);
	t->r->mistakes.lines->failed |= !t->tool->schema;
}

static void read_policy(struct tool_reading *t)
{
	const struct vt_manifest_member *f = &t->fields[POLICY];
	struct reading *r = t->r;

	t->tool->policy = r->policy;
	r->policies.others |= !f->value && !r->policy_at;
	if (f->value)
		(void)vt_policies_read(&r->policies, r->manifest->arena, f->value, t->place,
				       f->span, &t->tool->policy, &r->mistakes); /* told */
}

static void keep_places(struct tool_reading *t)
{
	struct reading *r = t->r;
	struct vt_manifest_places *at = &t->tool->at;
	struct vt_arena *arena = r->manifest->arena;

	at->command = vt_mistakes_place(&r->mistakes, arena, t->place,
					t->fields[INTERPRETER].value ? "interpreter"
					: t->fields[PYTHON].value    ? "python"
					: t->fields[NODE].value      ? "node"
								     : "command");
	at->policy = t->fields[POLICY].value
			     ? vt_mistakes_place(&r->mistakes, arena, t->place, "policy")
		     : r->policy_at ? r->policy_at
				    : vt_mistakes_place(&r->mistakes, arena, t->place, "");
	r->mistakes.lines->failed |= !at->command || !at->policy;
}

static void read_fields(struct tool_reading *t)
{
	read_name(t);
	read_description(t);
	read_schema(t);
	if (t->fields[PYTHON].value) {
		read_function(t, PYTHON, VT_PYTHON);
	} else if (t->fields[NODE].value) {
		read_function(t, NODE, VT_NODE);
	} else {
		if (t->fields[INTERPRETER].value)
			WRONG(t,
			      "interpreter: there is no \"python\" or \"node\" that it could run");
		read_command(t);
		read_input(t);
	}
	read_policy(t);
	keep_schema(t);
	keep_places(t);
}

static void read_tool(struct reading *r, size_t index, const json_t *value,
		      struct vt_json_span span)
{
	char key[KEY_SIZE];
	const struct vt_place place = { span, key };
	struct tool_reading t = {
		.r = r,
		.place = &place,
		.fields = {
			[NAME] = { "name" },
			[DESCRIPTION] = { "description" },
			[SCHEMA] = { "input_schema" },
			[COMMAND] = { "command" },
			[POLICY] = { "policy" },
			[INPUT] = { "stdin" },
			[PYTHON] = { "python" },
			[NODE] = { "node" },
			[INTERPRETER] = { "interpreter" },
		},
		.tool = &r->manifest->tools[index],
		.index = index,
	};

	(void)snprintf(key, sizeof(key), "tools[%zu]", index); /* fits */
	if (!json_is_object(value)) {
		WRONG(&t, "want a tool, which is an object: {...}");
		return;
	}
	t.needs = json_array();
	if (!t.needs) {
		r->mistakes.lines->failed = true;
		return;
	}
	if (vt_members_find(&r->mistakes, value, &place, t.fields, TOOL_FIELDS))
		read_fields(&t);
	vt_schema_free(t.schema);
	json_decref(t.needs);
}

static void read_tools(struct reading *r, const struct vt_manifest_member *field,
		       const struct vt_place *whole)
{
	struct vt_json_span rest = field->span, key, span;
	struct vt_manifest *manifest = r->manifest;
	size_t count = json_array_size(field->value);

	if (!json_is_array(field->value)) {
		vt_mistakes_add(&r->mistakes, whole,
				field->value ? "tools: want a list of tools: [...]"
					     : "there is no \"tools\": a manifest is "
					       "{\"tools\": [...]}");
		return;
	}
	if (count > VT_TOOLSET_MAX_TOOLS) {
		vt_mistakes_add(&r->mistakes, whole, "tools: there are more than %d",
				VT_TOOLSET_MAX_TOOLS);
		return;
	}
	manifest->tools = vt_arena_array(manifest->arena, count + 1, sizeof(*manifest->tools));
	r->names = vt_arena_array(manifest->arena, count + 1, sizeof(*r->names));
	if (!manifest->tools || !r->names) {
		r->mistakes.lines->failed = true;
		return;
	}
	for (size_t i = 0; i < count && r->mistakes.count < VT_MANIFEST_MISTAKES; i++) {
		if (!vt_json_next(&rest, &key, &span)) {
			vt_mistakes_add(&r->mistakes, whole, "tools: this is nested too deeply");
			return;
		}
		read_tool(r, i, json_array_get(field->value, i), span);
	}
	manifest->count = count;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void read_whole(struct reading *r, const json_t *root, struct vt_json_span span)
{
	enum { TOOLS, SHARED, FOR_EDITORS };
	struct vt_manifest_member fields[] = {
		[TOOLS] = { "tools" }, [SHARED] = { "policy" }, [FOR_EDITORS] = { "$schema" }
	};
	const struct vt_place whole = { span, "" };
	const struct vt_manifest_member *shared = &fields[SHARED];

	if (!json_is_object(root)) {
		vt_mistakes_add(&r->mistakes, &whole,
				"want a manifest, which is an object: {\"tools\": [...]}");
		return;
	}
	if (!vt_members_find(&r->mistakes, root, &whole, fields, COUNT(fields)))
		return;
	if (shared->value) {
		(void)vt_policies_read(&r->policies, r->manifest->arena, shared->value, &whole,
				       shared->span, &r->policy, &r->mistakes); /* told */
		r->policy_at = vt_mistakes_place(&r->mistakes, r->manifest->arena, &whole,
						 "policy");
		r->mistakes.lines->failed |= !r->policy_at;
	}
	read_tools(r, &fields[TOOLS], &whole);
}

/* The name that it was given by, from the root. */
static int make_absolute(struct vt_manifest *manifest, const char *path, struct vt_err *err)
{
	char cwd[PATH_MAX];

	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return vt_fail(err, VT_STEP_POLICY, errno, "the working directory has no name");
	manifest->path = *path == '/' ? vt_arena_dup(manifest->arena, path)
				      : vt_arena_printf(manifest->arena, "%s/%s", cwd[1] ? cwd : "",
							path);
	if (!manifest->path)
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	size_t len = (size_t)(strrchr(manifest->path, '/') - manifest->path);
	char *folder = vt_arena_dupn(manifest->arena, manifest->path, len ? len : 1);

	manifest->folder = folder && realpath(folder, cwd) ? vt_arena_dup(manifest->arena, cwd)
							   : folder;
	return manifest->folder ? 0 : vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
}

static int manifest_new(const char *path, struct vt_manifest **ret_manifest, struct vt_err *err)
{
	struct vt_manifest *manifest = calloc(1, sizeof(*manifest));

	if (manifest)
		manifest->arena = vt_arena_new();
	if (!manifest || !manifest->arena) {
		free(manifest);
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	}
	int status = make_absolute(manifest, path, err);

	if (status < 0)
		vt_manifest_free(manifest);
	else
		*ret_manifest = manifest;
	return status;
}

/* As a list that ends with NULL. */
static const char *const *keep_sources(struct vt_arena *arena, const struct vt_str *sources)
{
	const char *all = vt_arena_dupn(arena, sources->text ? sources->text : "", sources->len);
	size_t count = 0;

	for (size_t at = 0; all && at < sources->len; at += strlen(all + at) + 1)
		count++;
	const char **list = all ? vt_arena_array(arena, count + 1, sizeof(*list)) : NULL;

	count = 0;
	for (size_t at = 0; list && at < sources->len; at += strlen(all + at) + 1)
		list[count++] = all + at;
	return list;
}

static int load_text(const char *text, size_t len, const char *path,
		     struct vt_manifest **ret_manifest, struct vt_str *sources,
		     struct vt_str *lines, struct vt_err *err)
{
	struct reading r = { .mistakes = { .file = path, .text = text, .lines = lines },
			     .policy = { .json = "{}" } };
	AUTO_JSON json_t *root = NULL;
	int status = vt_json_load_text(text, len, path, &root, err);

	if (status < 0)
		return status;
	status = manifest_new(path, &r.manifest, err);
	if (status < 0)
		return status;
	r.policies.path = r.manifest->path;
	read_whole(&r, root, vt_json_span(text, len));
	vt_policies_judge(&r.policies, &r.mistakes);
	vt_policies_list(&r.policies, sources);
	vt_policies_done(&r.policies);
	r.manifest->sources = keep_sources(r.manifest->arena, sources);
	r.mistakes.lines->failed |= !vt_str_ok(sources) || !r.manifest->sources;
	if (r.mistakes.count || !vt_str_ok(lines)) {
		vt_manifest_free(r.manifest);
		return vt_mistakes_fail(&r.mistakes, err);
	}
	*ret_manifest = r.manifest;
	return 0;
}

int vt_manifest_load_text(const char *text, size_t len, const char *path,
			  struct vt_manifest **ret_manifest, struct vt_str *sources,
			  struct vt_str *mistakes, struct vt_err *err)
{
	struct vt_str unasked;

	vt_str_init(&unasked);
	int status = load_text(text, len, path, ret_manifest, sources ? sources : &unasked,
			       mistakes, err);

	vt_str_done(&unasked);
	if (status < 0 && mistakes->len == 0)
		vt_str_addf(mistakes, "%s\n", err->what);
	return status;
}

int vt_manifest_load(const char *path, struct vt_manifest **ret_manifest, struct vt_str *sources,
		     struct vt_str *mistakes, struct vt_err *err)
{
	struct vt_str text;

	vt_str_init(&text);
	int status = vt_json_read_file(path, &text, err);

	if (status < 0)
		vt_str_addf(mistakes, "%s\n", err->what);
	else
		status = vt_manifest_load_text(text.text, text.len, path, ret_manifest, sources,
					       mistakes, err);
	vt_str_done(&text);
	return status;
}

void vt_manifest_free(struct vt_manifest *manifest)
{
	if (!manifest)
		return;
	vt_arena_free(manifest->arena);
	free(manifest);
}

int vt_manifest_blame(const struct vt_manifest_tool *tool, struct vt_err *err)
{
	struct vt_err inner = *err;

	return vt_fail(err, inner.step, inner.num, "%s: %s",
		       inner.step == VT_STEP_COMMAND ? tool->at.command : tool->at.policy,
		       inner.what);
}

const struct vt_manifest_tool *vt_manifest_find(const struct vt_manifest *manifest,
						const char *name)
{
	for (size_t i = 0; i < manifest->count; i++)
		if (strcmp(manifest->tools[i].name, name) == 0)
			return &manifest->tools[i];
	return NULL;
}

const char *vt_manifest_closest(const struct vt_manifest *manifest, const char *name)
{
	struct vt_closest closest;

	vt_closest_init(&closest, name);
	for (size_t i = 0; i < manifest->count; i++)
		vt_closest_try(&closest, manifest->tools[i].name, manifest->tools[i].name);
	return closest.best;
}
