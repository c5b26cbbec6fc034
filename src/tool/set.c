/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/set.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_scan.h"
#include "base/str.h"
#include "base/utf8.h"

#define ANY_OBJECT "{\"type\":\"object\"}"
#define SPACES     " \t\n\v\f\r"

/* What others see comes first, so that a pointer to it is one to the whole. */
struct tool {
	struct vt_tool public;
	size_t references;
	char *name, *description, *definition;
	char *folded; /* name and description in small letters, for queries */
	struct vt_schema *schema;
};

struct vt_toolset {
	struct vt_tool **tools; /* in the order of their names */
	size_t count, room;
	size_t bytes; /* of all definitions */
	vt_toolset_watch *watch;
	void *user;
};

static int no_memory(struct vt_err *err)
{
	return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
}

/* "TOOL: ...", of which the end is cut if need be, but no character. */
__attribute__((format(printf, 4, 5))) static int fail(struct vt_err *err, const char *name, int num,
						      const char *fmt, ...)
{
	char what[sizeof(err->what)], shown[sizeof(err->what) - VT_TOOL_MAX_NAME - 2];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, args); /* fits: messages are as long at most */
	va_end(args);
	return vt_fail(err, VT_STEP_POLICY, num, "%s: %s", name,
		       vt_utf8_show_text(shown, sizeof(shown), what, strlen(what)));
}

/* ---- tools --------------------------------------------------------------------------------- */

static int check_name(const char *name, struct vt_err *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-.:/";
	char shown[80];
	size_t len = strlen(name);

	if (len == 0)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "a tool must have a name");
	vt_utf8_show_text(shown, sizeof(shown), name, len);
	if (len > VT_TOOL_MAX_NAME)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "%s: the name of a tool has at most %d characters", shown,
			       VT_TOOL_MAX_NAME);
	if (strspn(name, allowed) < len)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "%s: the name of a tool has letters, digits and \"_-.:/\" only",
			       shown);
	return 0;
}

static int check_description(const char *name, const char *text, struct vt_err *err)
{
	size_t len = strlen(text);

	if (len > VT_TOOL_MAX_DESCRIPTION)
		return fail(err, name, E2BIG, "the description is longer than %d KB",
			    VT_TOOL_MAX_DESCRIPTION >> 10);
	if (!vt_utf8_is_valid(text, len))
		return fail(err, name, EINVAL, "the description is not UTF-8");
	return 0;
}

int vt_tool_check_type(const json_t *schema, const char *name, struct vt_err *err)
{
	const char *type = json_string_value(json_object_get(schema, "type"));

	if (!type || strcmp(type, "object") == 0)
		return 0;
	return vt_fail(err, VT_STEP_POLICY, EINVAL,
		       "%s.type: arguments are an object, and \"%s\" allows none", name, type);
}

static int compile(struct tool *tool, const char *text, struct vt_err *err)
{
	size_t len = strlen(text);
	AUTO_JSON json_t *root = NULL;
	struct vt_err inner = { 0 };

	if (len > VT_TOOL_MAX_SCHEMA)
		return fail(err, tool->name, E2BIG, "the schema is longer than %d KB",
			    VT_TOOL_MAX_SCHEMA >> 10);
	int status = vt_json_load_text(text, len, "schema", &root, &inner);

	/* Those who list tools to a model take nothing else. */
	if (status == 0 && !json_is_object(root))
		status = vt_fail(&inner, VT_STEP_POLICY, EINVAL, "schema: want an object");
	if (status == 0)
		status = vt_schema_compile(root, "schema", &tool->schema, &tool->public.warnings,
					   &inner);
	if (status == 0)
		status = vt_tool_check_type(root, "schema", &inner);
	return status < 0 ? fail(err, tool->name, -status, "%s", inner.what) : 0;
}

static void add_quoted(struct vt_str *str, const char *text)
{
	AUTO_JSON json_t *value = json_string(text);
	char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

	if (quoted)
		vt_str_add(str, quoted);
	str->failed = str->failed || !quoted;
	free(quoted);
}

/* A copy that is as long as the text. NULL: out of memory. */
static char *take(struct vt_str *str)
{
	char *text = vt_str_ok(str) ? strdup(str->text) : NULL;

	vt_str_done(str);
	return text;
}

static char *define(const struct tool *tool, const char *schema)
{
	struct vt_str str;

	vt_str_init(&str);
	vt_str_add(&str, "{\"name\":");
	add_quoted(&str, tool->name);
	if (tool->description) {
		vt_str_add(&str, ",\"description\":");
		add_quoted(&str, tool->description);
	}
	/* As it was written: through jansson 0.1 becomes 0.10000000000000001. */
	vt_str_add(&str, ",\"input_schema\":");
	vt_json_add_compact(&str, schema, strlen(schema));
	vt_str_add(&str, "}");
	return take(&str);
}

static void fold(char *text)
{
	for (; *text; text++)
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text | 0x20);
}

/* No word of a query has a line's end in it, so that none is found half in each. */
static char *folded_of(const struct tool *tool)
{
	struct vt_str str;

	vt_str_init(&str);
	vt_str_addf(&str, "%s\n%s", tool->name, tool->description ? tool->description : "");
	char *text = take(&str);

	if (text)
		fold(text);
	return text;
}

int vt_tool_new(const char *name, const char *description, const char *schema,
		struct vt_tool **ret_tool, struct vt_err *err)
{
	int status = check_name(name, err);

	if (status == 0 && description)
		status = check_description(name, description, err);
	if (status < 0)
		return status;
	struct tool *tool = calloc(1, sizeof(*tool));

	if (!tool)
		return no_memory(err);
	schema = schema ? schema : ANY_OBJECT;
	tool->references = 1;
	tool->name = strdup(name);
	tool->description = description ? strdup(description) : NULL;
	if (!tool->name || (description && !tool->description))
		status = no_memory(err);
	if (status == 0)
		status = compile(tool, schema, err);
	if (status == 0) {
		tool->definition = define(tool, schema);
		tool->folded = folded_of(tool);
		status = tool->definition && tool->folded ? 0 : no_memory(err);
	}
	tool->public.name = tool->name;
	tool->public.description = tool->description;
	tool->public.definition = tool->definition;
	tool->public.schema = tool->schema;
	if (status < 0)
		vt_tool_unref(&tool->public);
	else
		*ret_tool = &tool->public;
	return status;
}

struct vt_tool *vt_tool_ref(struct vt_tool *tool)
{
	((struct tool *)tool)->references++;
	return tool;
}

void vt_tool_unref(struct vt_tool *tool)
{
	struct tool *whole = (struct tool *)tool;

	if (!whole || --whole->references > 0)
		return;
	if (tool->release)
		tool->release(tool->owner);
	vt_schema_free(whole->schema);
	free(whole->folded);
	free(whole->definition);
	free(whole->description);
	free(whole->name);
	free(whole);
}

int vt_tool_check(const struct vt_tool *tool, const char *text, size_t len, json_t **ret_arguments,
		  struct vt_err *err)
{
	AUTO_JSON json_t *arguments = NULL;
	struct vt_err inner = { 0 };

	if (!ret_arguments && vt_schema_fits_plainly(tool->schema, text, len))
		return 0;
	int status = vt_json_load_text(text, len, "arguments", &arguments, &inner);

	if (status == 0 && !json_is_object(arguments))
		status = vt_fail(&inner, VT_STEP_POLICY, EINVAL, "arguments: want an object");
	if (status == 0)
		status = vt_schema_check(tool->schema, arguments, "arguments", &inner);
	if (status < 0)
		return fail(err, tool->name, -status, "%s", inner.what);
	if (ret_arguments)
		*ret_arguments = json_incref(arguments);
	return 0;
}

/* ---- sets ---------------------------------------------------------------------------------- */

struct vt_toolset *vt_toolset_new(vt_toolset_watch *watch, void *user)
{
	struct vt_toolset *set = calloc(1, sizeof(*set));

	if (set) {
		set->watch = watch;
		set->user = user;
	}
	return set;
}

void vt_toolset_free(struct vt_toolset *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->count; i++)
		vt_tool_unref(set->tools[i]);
	free(set->tools);
	free(set);
}

/* The index of a tool, or where it would be. */
static size_t place_of(const struct vt_toolset *set, const char *name, bool *ret_found)
{
	size_t low = 0, high = set->count;

	*ret_found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, set->tools[middle]->name);

		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int make_room(struct vt_toolset *set, const char *name, struct vt_err *err)
{
	if (set->count == VT_TOOLSET_MAX_TOOLS)
		return fail(err, name, E2BIG, "there are %d tools already, which is the most",
			    VT_TOOLSET_MAX_TOOLS);
	if (set->count < set->room)
		return 0;
	size_t room = set->room ? set->room * 2 : 16;
	struct vt_tool **tools = reallocarray(set->tools, room, sizeof(struct vt_tool *));

	if (!tools)
		return no_memory(err);
	set->tools = tools;
	set->room = room;
	return 0;
}

static void tell(const struct vt_toolset *set, enum vt_toolset_event event,
		 const struct vt_tool *tool)
{
	if (set->watch)
		set->watch(set->user, event, tool);
}

int vt_toolset_add(struct vt_toolset *set, struct vt_tool *tool, struct vt_err *err)
{
	bool found;
	size_t at = place_of(set, tool->name, &found);
	struct vt_tool *old = found ? set->tools[at] : NULL;
	size_t bytes = set->bytes - (old ? strlen(old->definition) : 0) + strlen(tool->definition);
	int status = bytes <= VT_TOOLSET_MAX_BYTES
			     ? 0
			     : fail(err, tool->name, E2BIG,
				    "with this one, the tools' definitions are over %d MB",
				    VT_TOOLSET_MAX_BYTES >> 20);

	if (status == 0 && !old)
		status = make_room(set, tool->name, err);
	if (status < 0)
		return status;
	if (!old) {
		memmove(&set->tools[at + 1], &set->tools[at],
			(set->count - at) * sizeof(struct vt_tool *));
		set->count++;
	}
	set->bytes = bytes;
	set->tools[at] = vt_tool_ref(tool);
	/* One for the watcher, who may remove it. */
	vt_tool_ref(tool);
	if (!old)
		tell(set, VT_TOOL_ADDED, tool);
	else if (strcmp(old->definition, tool->definition) != 0)
		tell(set, VT_TOOL_CHANGED, tool);
	vt_tool_unref(tool);
	vt_tool_unref(old);
	return 0;
}

int vt_toolset_remove(struct vt_toolset *set, const char *name, struct vt_err *err)
{
	char shown[80];
	bool found;
	size_t at = place_of(set, name, &found);

	if (!found)
		return vt_fail(err, VT_STEP_POLICY, ENOENT, "there is no tool '%s'",
			       vt_utf8_show_text(shown, sizeof(shown), name, strlen(name)));
	struct vt_tool *tool = set->tools[at];

	set->count--;
	memmove(&set->tools[at], &set->tools[at + 1], (set->count - at) * sizeof(struct vt_tool *));
	set->bytes -= strlen(tool->definition);
	tell(set, VT_TOOL_REMOVED, tool);
	vt_tool_unref(tool);
	return 0;
}

struct vt_tool *vt_toolset_find(const struct vt_toolset *set, const char *name)
{
	bool found;
	size_t at = place_of(set, name, &found);

	return found ? set->tools[at] : NULL;
}

size_t vt_toolset_count(const struct vt_toolset *set)
{
	return set->count;
}

struct vt_tool *vt_toolset_at(const struct vt_toolset *set, size_t index)
{
	return set->tools[index];
}

/* ---- the list ------------------------------------------------------------------------------ */

/* words are NUL-terminated, one after the other, and end with an empty one. */
static bool has_words(const struct tool *tool, const char *words)
{
	for (; *words; words += strlen(words) + 1)
		if (!strstr(tool->folded, words))
			return false;
	return true;
}

int vt_toolset_check_query(const char *query, struct vt_err *err)
{
	if (query && strlen(query) > VT_TOOLSET_MAX_QUERY)
		return vt_fail(err, VT_STEP_POLICY, E2BIG, "the query is longer than %d bytes",
			       VT_TOOLSET_MAX_QUERY);
	return 0;
}

/* Cuts a query up, for has_words(). */
static int cut_words(const char *query, char words[static VT_TOOLSET_MAX_QUERY + 2],
		     struct vt_err *err)
{
	char *to = words;
	int r = vt_toolset_check_query(query, err);

	if (r < 0)
		return r;
	for (query += strspn(query, SPACES); *query; query += strspn(query, SPACES)) {
		size_t word = strcspn(query, SPACES);

		memcpy(to, query, word);
		to[word] = '\0';
		fold(to);
		to += word + 1;
		query += word;
	}
	*to = '\0';
	return 0;
}

int vt_toolset_list(const struct vt_toolset *set, const char *query, char **ret_json,
		    struct vt_err *err)
{
	char words[VT_TOOLSET_MAX_QUERY + 2];
	bool first = true;
	struct vt_str str;
	int status = cut_words(query ? query : "", words, err);

	if (status < 0)
		return status;
	vt_str_init(&str);
	vt_str_add(&str, "[");
	for (size_t i = 0; i < set->count; i++) {
		if (!has_words((const struct tool *)set->tools[i], words))
			continue;
		vt_str_add(&str, first ? "" : ",");
		vt_str_add(&str, set->tools[i]->definition);
		first = false;
	}
	vt_str_add(&str, "]");
	char *json = take(&str);

	if (!json)
		return no_memory(err);
	*ret_json = json;
	return 0;
}
