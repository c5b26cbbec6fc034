/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the program that a person named, the way their shell would, and what it needs beside it:
 * the prefix that it is installed under (a pyenv version, a venv, an nvm node), and the interpreter
 * of a script. Everything here looks at the host and changes nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/trust.h"

/*
 * A folder or a file to mount read-only at the same place, if it still is the one that was judged.
 */
struct vt_need {
	const char *path;
	uint64_t    dev, ino;
};

struct vt_command {
	const char     *path;     /* absolute, as the occupant will exec it; links are not
				     resolved away */
	struct vt_need *prefixes;
	size_t          prefix_count;
	/*
	 * Folders to put in front of PATH: those of search_path in which the program and an
	 * interpreter named through env were found, in the same order, without those of the system
	 * that are last.
	 */
	const char    **bin_dirs;
	size_t          bin_dir_count;
};

/* Where a name is looked for, and what the cell gets anyway. Strings may be NULL. */
struct vt_lookup {
	const char *search_path;   /* the caller's PATH; NULL: the default one */
	const char *cwd;           /* NULL: it is gone */
	const char *home;
	const char *pyenv_version; /* the caller's PYENV_VERSION */
	struct vt_givens givens;
};

/*
 * name: as typed. With a '/' it is relative to cwd; otherwise it is looked up on search_path. All
 * strings come from arena.
 *
 * -ENOENT: not found, or the interpreter is not (127); -EACCES, -ELOOP and others: found but cannot
 * be executed (126). -EPERM: refused, of VT_STEP_PLAN, for what it would bring along.
 *
 * Rules:
 *  - A pyenv shim (…/shims/NAME beside …/versions) is resolved to the version that pyenv would
 *    choose.
 *  - Each hop of a chain of links counts: a venv's python needs the venv and the real prefix, and
 *    "home" of pyvenv.cfg too.
 *  - A program in PREFIX/bin brings PREFIX along only where PREFIX looks like an installation (it
 *    has lib, lib64, libexec or pyvenv.cfg), and is not /, a folder directly in / or /home, the
 *    caller's home or a folder around it, or a .local, nor a link to one; else the file alone.
 *  - That is for what the caller names. What a link, a "#!" line or a pyvenv.cfg leads to may be
 *    the choice of an earlier call, which must not choose what this one can read. So it is where
 *    the command is named by a path; a link among the folders of the path counts, below the working
 *    directory or the home. PATH is the caller's own: what is found there by a bare name is
 *    trusted, and what it leads to, but for what lies where the policy lets cells write, or
 *    somebody else than root and the caller may.
 *  - What is led to like that comes along only where the policy gives it anyway, or it is a native
 *    program that everyone may read and execute (vt_trust_is_program()); else -EPERM. Of its PREFIX
 *    comes what an interpreter needs (vt_prefix_find_parts()), if that is what it is; -EPERM where
 *    not everyone may read that.
 *  - What lies under the system's runtime paths (/usr, /bin, /lib, ...) needs nothing, nor does
 *    what the policy gives in its place.
 *  - A script's "#!" interpreter is followed in the same way, "/usr/bin/env NAME" on search_path
 *    too.
 */
int vt_command_find(struct vt_arena *arena, const char *name, const struct vt_lookup *lookup,
		    struct vt_command *ret_command, struct vt_err *err);
