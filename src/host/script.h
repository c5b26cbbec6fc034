/* SPDX-License-Identifier: Apache-2.0 */
/* The "#!" line of a script, read as the kernel reads it. Used by command.c alone. */
#pragma once

#include <stdbool.h>

enum { VT_SCRIPT_HEAD = 256 }; /* as much as the kernel reads of a script to find its interpreter */

struct vt_script {
	char interpreter[VT_SCRIPT_HEAD];
	char argument[VT_SCRIPT_HEAD]; /* all of the rest, as the kernel passes it */
};

/* Whether the file is a script, and whose. What cannot be read is none: the kernel will say. */
bool vt_script_read(const char *path, struct vt_script *ret_script);

/*
 * The program that env is to run: the whole argument, or with -S the first word that is neither an
 * option nor an assignment. NULL: none. Changes argument.
 */
const char *vt_script_env_program(char *argument);
