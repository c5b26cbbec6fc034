/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes hold by an open descriptor alone: memfds, which need not be mapped, and files of
 * the private folder's file system that have no name any more, or never had one. No folder and no
 * mapping shows these. Not seen are descriptors on their way through a socket, and a nameless file
 * that is mapped and closed. Runs in the supervisor and its looker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Told apart; beyond three quarters of them one that is open twice counts twice. */
enum { VT_HELD_FILES = 4096 };

struct vt_held {
	bool     memfds;         /* to be looked for */
	bool     nameless;       /* the same; then: where */
	uint64_t dev, mount;     /* mount 0: not known */
	int64_t  memfd_bytes, nameless_bytes;
	unsigned count;
	struct { uint64_t dev, ino; } files[VT_HELD_FILES]; /* ino 0: a free place */
};

/* Looks for nameless files as well, on the file system of this open folder. */
void vt_held_want_nameless(struct vt_held *held, int folder_fd);

/*
 * Adds what the process, or the thread, of this folder of proc holds, each file once. *left is as
 * for vt_proc_walk(). Returns 0 or a negative errno: -EACCES where memfds are looked for, and a
 * process that is not dumpable has one. Nameless files of such a process are not seen.
 */
int vt_held_look(struct vt_held *held, int dir, unsigned *left);

/* Whether a file is among those that were found. The device is as smaps has it. */
bool vt_held_knows(const struct vt_held *held, unsigned major, unsigned minor, uint64_t ino);
