/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest: a file that names tools, each a command or a function of Python or Node with a schema
 * and a policy; vitro-tools(5). Reading one runs nothing and starts nothing. What comes of it does
 * not change: a file that was changed is another manifest.
 *
 * Manifests are written by people, and by programs for people: every mistake is told, with its line
 * and its key, up to a bound; and all sizes are bounded. A manifest is refused if one of its tools
 * could write to it, or to a policy of any of them: the tool would say what the next one may do.
 * What holds the tools is the supervisor's to judge once more, by what it mounts.
 */
#pragma once

#include <stddef.h>

#include "host/interpreter.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum { VT_MANIFEST_MISTAKES = 20 }; /* that are told of one file */

/* What a tool may do. */
struct vt_manifest_policy {
	const char *json;  /* its object, as it was written; "{}": only defaults */
	/* instead: a built-in policy, or the absolute path of a file; NULL: none */
	const char *load;
};

/*
 * Where something stands, for messages: "FILE:LINE: tools[1].command"; command: or what is in place
 * of it.
 */
struct vt_manifest_places {
	const char *command, *policy;
};

struct vt_manifest_tool {
	const char               *name;
	const char               *description; /* NULL: none */
	/* as it was written, and what the command needs is required; NULL: any object */
	const char               *schema;
	/* a template; ends with NULL; NULL: function is set */
	const char *const        *command;
	const char               *function;    /* instead: as its language names it */
	enum vt_language          language;    /* of the function */
	/* that it runs, as it is looked for; of a function, the interpreter */
	const char               *program;
	const char               *input;       /* NULL: the arguments as JSON */
	struct vt_manifest_policy policy;
	struct vt_manifest_places at;
};

struct vt_manifest {
	struct vt_arena         *arena;
	const char              *path;   /* absolute, as it was named */
	/* that it is in, free of links as far as it is there: of Python's modules */
	const char              *folder;
	struct vt_manifest_tool *tools;  /* in the order of the file */
	size_t                   count;
	/*
	 * itself, and the files that its policies were read from: absolute, as named; ends with
	 * NULL
	 */
	const char *const       *sources;
};

/*
 * Reads the manifest at path. Where it is wrong, each line of mistakes says "FILE:LINE: KEY: what";
 * the error is the first of them. What keeps it from being read at all is the one mistake.
 * sources, which may be NULL, gets those of the manifest as far as they are known, also where it is
 * wrong: each with its NUL.
 */
int vt_manifest_load(const char *path, struct vt_manifest **ret_manifest, struct vt_str *sources,
		     struct vt_str *mistakes, struct vt_err *err);

/* The same of text; path is what messages call it, and what its relative paths are relative to. */
int vt_manifest_load_text(const char *text, size_t len, const char *path,
			  struct vt_manifest **ret_manifest, struct vt_str *sources,
			  struct vt_str *mistakes, struct vt_err *err);

/*
 * Of an error that came of a tool later, when its command or its policy was tried: says where that
 * stands, before what it says already. Returns its negative errno.
 */
int vt_manifest_blame(const struct vt_manifest_tool *tool, struct vt_err *err);

/* NULL is fine. */
void vt_manifest_free(struct vt_manifest *manifest);

/* The tool of that name; NULL: there is none. */
const struct vt_manifest_tool *vt_manifest_find(const struct vt_manifest *manifest,
						const char *name);
/* The name that is nearest to one that there is not; NULL: none is near. */
const char *vt_manifest_closest(const struct vt_manifest *manifest, const char *name);
