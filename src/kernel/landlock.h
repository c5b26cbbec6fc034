/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock: which rights a kernel knows, and a ruleset built and entered by the child. The rights
 * of each ABI are a table; a kernel newer than the table is used as the newest row that is known.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* What an ABI can handle. */
struct vt_landlock_abi {
	uint64_t fs, net, scoped;
};

/* All zero for abi 0. Pure. */
struct vt_landlock_abi vt_landlock_rights(int abi);

/* The rights for reading and executing, and those for writing (without device nodes). Pure. */
uint64_t vt_landlock_read(void);
uint64_t vt_landlock_write(void);

/* Child side: a ruleset that handles these. Returns its descriptor. */
int vt_landlock_new(const struct vt_landlock_abi *handled, struct vt_err *err);
/* Allows rights below path (relative to root_fd; "" is root_fd itself). */
int vt_landlock_allow(int ruleset, int root_fd, const char *path, uint64_t rights,
		      struct vt_err *err);
/* Allows them below an absolute path, through links, if it leads to this inode; else -ESTALE. */
int vt_landlock_allow_inode(int ruleset, const char *path, uint64_t dev, uint64_t ino,
			    uint64_t rights, struct vt_err *err);
/* Allows them below what is open, whatever its name is by now. `what` is for the error. */
int vt_landlock_allow_fd(int ruleset, int fd, uint64_t rights, const char *what,
			 struct vt_err *err);
/* Enters it for good; no_new_privs must be set. */
int vt_landlock_enter(int ruleset, struct vt_err *err);
