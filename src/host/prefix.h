/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PREFIX of a program in PREFIX/bin: whether it is one installation that can be shown whole or in
 * part, or a folder that happens to have a bin.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether it holds more of a person's or a system's life than one installation: /, a folder
 * directly in / or /home, home or a folder around it, a .local. By name alone. home may be NULL.
 */
bool vt_prefix_is_too_wide(const char *prefix, const char *home);

/* Whether it looks like an installation: any project with a lib beside its bin does. */
bool vt_prefix_is_installation(const char *prefix);

/* A program in the prefix's bin, or a link there that leads to it. */
struct vt_prefix_program {
	const char *name;      /* in bin */
	const char *real_name; /* of the file itself, wherever it is */
	uint64_t dev, ino;
};

/* Something of a prefix, and what it is. */
struct vt_prefix_part {
	const char *name;
	uint64_t dev, ino;
	char closed[NAME_MAX + 16]; /* what of it not everyone may read, in the prefix; "":
				       nothing seen */
};

enum { VT_PREFIX_PARTS = 3 };

/*
 * What an interpreter needs of its prefix, where somebody named it whose word is not enough for all
 * of it: lib and lib64, where they are that interpreter's own. For python3.12 that is where bin has
 * that very file, lib a python3.12, and that the os.py which Python knows its library by; for node,
 * ruby and perl where it is node_modules, ruby, perl5 or site_perl. In a venv its pyvenv.cfg too.
 * Nothing by another program that happens to be beside: a project may well have a lib/node_modules.
 * dir is the prefix. How many there are.
 *
 * Of each part its own mode is looked at, and that of such a folder in it; what else is in it is
 * too much to look at for every call.
 */
size_t vt_prefix_find_parts(int dir, const struct vt_prefix_program *program,
			    struct vt_prefix_part parts[VT_PREFIX_PARTS]);

/* Where a venv's own Python lies, as its pyvenv.cfg says: "home = /opt/python/bin". */
bool vt_prefix_read_venv_home(const char *prefix, char home[PATH_MAX]);
