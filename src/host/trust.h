/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose work it is that leads to a program: the caller's and root's, or perhaps that of an earlier
 * cell, which must not choose what a later one can read. And what may come along all the same.
 * Callers say what the policy gives. Everything here looks at the host and changes nothing.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* A path of the host that the policy gives to the cell. */
struct vt_given {
	const char *path;  /* absolute */
	bool writable;
	bool in_place;     /* it is at the same path inside */
};

struct vt_givens {
	const struct vt_given *items;
	size_t count;
};

/* Whether the cell has what is at this path, by this name. */
bool vt_trust_is_shown(const struct vt_givens *givens, const char *path);

/* Whether the cell can read what is really at this path, by whatever name. */
bool vt_trust_is_given(const struct vt_givens *givens, const char *real);

/*
 * Whether every link on the way to path, and path where it is one itself, lies where no cell
 * writes, and nobody else but root and the caller. If so, what is at its end.
 */
bool vt_trust_links(const struct vt_givens *givens, const char *path, char ret_real[PATH_MAX],
		    struct stat *ret_st);

/*
 * By the same rule, whether a file that is no link lies where nobody else but root and the caller
 * writes.
 */
bool vt_trust_file(const struct vt_givens *givens, const char *real, const struct stat *st);

/*
 * A weaker one: whether cells can change neither what is at a path, a file or a folder, nor a link
 * on the way to it. Whoever else may.
 */
bool vt_trust_unwritten(const struct vt_givens *givens, const char *path);

/*
 * Whether a file may come along whoever names it: a native program that everyone may read and
 * execute. Interpreters are that; scripts, which hold what their author wrote into them, are not,
 * nor is what its owner keeps to himself. The folders around it do not count: most people's homes
 * are closed, and pyenv and nvm live there. If not, *ret_why says what it is instead.
 */
bool vt_trust_is_program(int fd, const struct stat *st, const char **ret_why);

/* Opens a path on which no link is. -1 and errno. */
int vt_trust_open(int dir, const char *path, int flags);
