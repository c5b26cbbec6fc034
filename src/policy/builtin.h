/* SPDX-License-Identifier: Apache-2.0 */
/* The policies that come with vitro, by name. A file of the same name is reached as "./strict". */
#pragma once

/* The JSON text of a built-in policy, or NULL. */
const char *vt_builtin_find(const char *name);

/* The name of the built-in policy that a mistyped one was meant to be, or NULL. */
const char *vt_builtin_closest(const char *name);

/* All names, for messages: "default, strict, compute". */
const char *vt_builtin_names(void);
