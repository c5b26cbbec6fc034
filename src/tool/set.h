/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools by their names: what each is said to be, and what arguments it takes. The client library
 * and the server both stand on it. It is pure data: what a call of a tool does is its owner's
 * business.
 *
 * A tool does not change: one that is added again is another tool of the same name. Whoever holds
 * a reference to one can go on using it after it was removed, so that calls under way are not
 * affected.
 *
 * A set and its tools belong to one thread at a time. Definitions may come from strangers: all
 * sizes are bounded.
 */
#pragma once


#include "tool/schema.h"

enum {
	VT_TOOL_MAX_NAME        = 128,       /* bytes, like all of these */
	VT_TOOL_MAX_DESCRIPTION = 64 << 10,
	VT_TOOL_MAX_SCHEMA      = 256 << 10,
	VT_TOOLSET_MAX_TOOLS    = 4096,
	VT_TOOLSET_MAX_BYTES    = 16 << 20,  /* of all definitions together */
	VT_TOOLSET_MAX_QUERY    = 1024,
};

struct vt_tool {
	const char                *name;
	const char                *description; /* NULL: none */
	const char                *definition;  /* as the list has it: JSON text in one line */
	const struct vt_schema    *schema;
	struct vt_schema_warnings  warnings;    /* what the schema says that is not checked */

	/* Free to be set by who made the tool, before it is added. release is called at its end. */
	void *owner;
	void (*release)(void *owner);
};

/*
 * Arguments are always an object: with a schema, called name, that allows none no call could be
 * made.
 */
int vt_tool_check_type(const json_t *schema, const char *name, struct vt_err *err);

/*
 * Makes a tool. name has letters, digits and "_-.:/"; description may be NULL; schema is the text
 * of a JSON object, and NULL is one that allows any object. -EINVAL: something of this is wrong,
 * and the message begins with the tool's name; -E2BIG: too long; -ENOMEM. The caller has a
 * reference.
 */
int vt_tool_new(const char *name, const char *description, const char *schema,
		struct vt_tool **ret_tool, struct vt_err *err);
/* One more reference; returns tool. */
struct vt_tool *vt_tool_ref(struct vt_tool *tool);
/* One less; the last one ends it. NULL is fine. */
void vt_tool_unref(struct vt_tool *tool);

/*
 * Checks the arguments of a call: the text of a JSON object that fits the schema. The error says
 * tool, place and reason in one line that is safe to print: "read: arguments.path: want a string,
 * found 5". It is -EINVAL, or as vt_schema_check() and vt_json_load_text() have it. *ret_arguments
 * is the caller's; ret_arguments may be NULL.
 */
int vt_tool_check(const struct vt_tool *tool, const char *text, size_t len, json_t **ret_arguments,
		  struct vt_err *err);

struct vt_toolset;

enum vt_toolset_event { VT_TOOL_ADDED = 1, VT_TOOL_REMOVED = 2, VT_TOOL_CHANGED = 3 };

/* Told after the change, and free to change the set in its turn. tool is there until it returns. */
typedef void vt_toolset_watch(void *user, enum vt_toolset_event event, const struct vt_tool *tool);

/* watch may be NULL. The result is NULL when out of memory. */
struct vt_toolset *vt_toolset_new(vt_toolset_watch *watch, void *user);
/* Nobody is told. NULL is fine. */
void vt_toolset_free(struct vt_toolset *set);

/*
 * Adds a tool, with a reference of the set's own, in place of the one of that name if there is
 * one. Then the watcher is told `changed`, or nothing if the definition is the same: a new owner
 * alone shows nowhere. -E2BIG: the set is full; -ENOMEM; the set is as it was.
 */
int vt_toolset_add(struct vt_toolset *set, struct vt_tool *tool, struct vt_err *err);
/* -ENOENT: there is none of that name. */
int vt_toolset_remove(struct vt_toolset *set, const char *name, struct vt_err *err);

/* The set's own, until it is changed: who keeps it takes a reference. NULL: none of that name. */
struct vt_tool *vt_toolset_find(const struct vt_toolset *set, const char *name);
size_t vt_toolset_count(const struct vt_toolset *set);
/* By its place in the order of names; the set's own, as above. */
struct vt_tool *vt_toolset_at(const struct vt_toolset *set, size_t index);

/* -E2BIG: it is too long to be looked for. NULL is fine. */
int vt_toolset_check_query(const char *query, struct vt_err *err);

/*
 * The tools as text, a JSON array of {"name", "description", "input_schema"} in the order of their
 * names, byte by byte; where there is no description, there is no such member. Of a query, words
 * with space between them, every word must be part of the name or of the description. A to Z count
 * as a to z; other letters must be as they are. NULL or no words: all. -E2BIG: the query is too
 * long. Freed with free().
 */
int vt_toolset_list(const struct vt_toolset *set, const char *query, char **ret_json,
		    struct vt_err *err);
