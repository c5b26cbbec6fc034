/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Python function as a tool: how it is named, "module:function", and what the interpreter is told that holds it
 * ready. Nothing is executed here. docs/wire.md has the other side: pools of python, in mode json.
 */
#pragma once

#include "base/err.h"

/* With a NUL and the id of a call, of at most 63 bytes, the supervisor takes 512. */
enum { VT_TOOL_MAX_FUNCTION = 448 };

#define VT_TOOL_PYTHON "python3" /* the interpreter, where none is named */

/* Whether it is the name of one. key is what the message calls it: "python: want ...". */
int vt_tool_check_python(const char *function, const char *key, struct vt_err *err);

/*
 * The setup of its pool: the module is imported ahead of calls, from that folder too; NULL: from none. It says which file
 * the module is there, so that one that was changed makes another pool. *ret_setup is freed with free().
 */
int vt_tool_set_up_python(const char *function, const char *folder, char **ret_setup,
			  struct vt_err *err);
