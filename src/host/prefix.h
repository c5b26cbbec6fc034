/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PREFIX of a program in PREFIX/bin: whether it is one installation that can be shown whole, or a
 * folder that happens to have a bin. Used by command.c alone.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/*
 * Whether it holds more of a person's or a system's life than one installation: /, a folder directly
 * in / or /home, home or a folder around it, a .local. By name alone. home may be NULL.
 */
bool vt_prefix_is_too_wide(const char *prefix, const char *home);

/* Whether it looks like an installation: any project with a lib beside its bin does. */
bool vt_prefix_is_installation(const char *prefix);

/*
 * Whether it plainly is that of an interpreter, or of packages for one: lib has node_modules, ruby,
 * perl5 or site_perl, or a pythonVERSION that is a program in bin too. Not lib/NAME for any program
 * bin/NAME: a Ruby gem's sources are laid out like that, and a good many other projects.
 */
bool vt_prefix_is_interpreter(const char *prefix);

/* Where a venv's own Python lies, as its pyvenv.cfg says: "home = /opt/python/bin". */
bool vt_prefix_read_venv_home(const char *prefix, char home[PATH_MAX]);
