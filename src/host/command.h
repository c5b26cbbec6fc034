/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the program that a person named, the way their shell would, and what it needs beside it:
 * the prefix that it is installed under (a pyenv version, a venv, an nvm node), and the interpreter
 * of a script. Everything here looks at the host and changes nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

struct vt_command {
	const char  *path;       /* absolute, as the occupant will exec it; links are not resolved away */
	const char **prefixes;   /* folders or files to mount read-only at the same place */
	size_t       prefix_count;
	/*
	 * Folders to put in front of PATH: those of search_path in which the program and an interpreter
	 * named through env were found, in the same order, without those of the system that are last.
	 */
	const char **bin_dirs;
	size_t       bin_dir_count;
};

/*
 * name: as typed. With a '/' it is relative to cwd, which is NULL where there is none; otherwise it is looked up on search_path (the
 * caller's PATH, may be NULL: the default one). home may be NULL; pyenv_version is the caller's
 * PYENV_VERSION or NULL. All strings come from arena.
 *
 * -ENOENT: not found, or the interpreter is not (127); -EACCES, -ELOOP and others: found but cannot
 * be executed (126).
 *
 * Rules:
 *  - A pyenv shim (…/shims/NAME beside …/versions) is resolved to the version that pyenv would choose.
 *  - Each hop of a chain of links counts: a venv's python needs the venv and the real prefix, and
 *    "home" of pyvenv.cfg too.
 *  - A program in PREFIX/bin brings PREFIX along only where PREFIX looks like an installation (it has
 *    lib, lib64, libexec or pyvenv.cfg), and is not /, a folder directly in / or /home, the caller's
 *    home or a folder around it, or a .local, nor a link to one; else the file alone.
 *  - For a command that is named by a path, a PREFIX that only a link, a "#!" line or a pyvenv.cfg
 *    leads to must plainly be an interpreter's (vt_prefix_is_interpreter()); else the file alone. An
 *    earlier call may have written those, and must not choose what this one can read. A link among
 *    the folders of the path counts, below the working directory or the home. PATH is the caller's
 *    own: what is found there by a bare name is trusted, and what it leads to.
 *  - What lies under the system's runtime paths (/usr, /bin, /lib, ...) needs nothing.
 *  - A script's "#!" interpreter is followed in the same way, "/usr/bin/env NAME" on search_path too.
 */
int vt_command_find(struct vt_arena *arena, const char *name, const char *search_path,
		    const char *cwd, const char *home, const char *pyenv_version,
		    struct vt_command *ret_command, struct vt_err *err);
