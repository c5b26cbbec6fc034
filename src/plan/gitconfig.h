/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of the configuration of a git repository, the paths that git executes or reads more configuration
 * from: include.path, includeIf.*.path, core.hooksPath; and core.worktree. The text may be
 * anybody's. Pure.
 */
#pragma once

#include <stddef.h>

enum vt_gitconfig_path {
	VT_GITCONFIG_INCLUDE, /* relative to the file's folder */
	VT_GITCONFIG_HOOKS,   /* relative to the work tree */
	VT_GITCONFIG_TREE,    /* where a module says that this is: relative to the file's folder */
};

/* Calls each with every such value, as git unquotes it, if it is shorter than PATH_MAX. */
void vt_gitconfig_paths(const char *text, size_t len,
			void (*each)(void *arg, enum vt_gitconfig_path kind, const char *value),
			void *arg);
