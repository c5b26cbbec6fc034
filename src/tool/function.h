/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function of an interpreter's language as a tool: how it is named, "module:function" in Python
 * and "file#export" in Node, and what the interpreter is told that holds it ready. Nothing is
 * executed here. docs/wire.md has the other side: pools of python and node, in mode json.
 */
#pragma once

#include <vitro.h>

#include "base/err.h"
#include "host/interpreter.h"

/*
 * Of a symbol too. With a NUL and the id of a call, of at most 63 bytes, the supervisor takes 512.
 */
enum { VT_TOOL_MAX_FUNCTION = 448 };

/* The function that a tool is, and its language; NULL: it is something else. */
const char *vt_tool_function(const struct vitro_tool *tool, enum vt_language *ret_language);

/* The interpreter, where none is named; and what functions of its language are called. */
const char *vt_language_program(enum vt_language language);
const char *vt_language_name(enum vt_language language);

/* Whether it is the name of one. key is what the message calls it: "python: want ...". */
int vt_tool_check_function(enum vt_language language, const char *function, const char *key,
			   struct vt_err *err);

/*
 * The setup of its pool: the module is imported ahead of calls, from that folder too; NULL: from
 * none. It says which file the module is there, so that one that was changed makes another pool.
 * *ret_setup is freed with free().
 */
int vt_tool_set_up(enum vt_language language, const char *function, const char *folder,
		   char **ret_setup, struct vt_err *err);
