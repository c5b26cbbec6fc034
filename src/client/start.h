/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a supervisor of the program's own: which one, and how, in a program that knows nothing
 * of it.
 *
 * It must not be a child. Whatever signal a child was made with, the kernel sets it to SIGCHLD when
 * the child executes a program; then a wait() of the caller's would take its end for that of
 * another, and a handler would be told. So it is made by a child of no signal that ends at once,
 * and belongs to whoever adopts orphans. Its end is seen on a pidfd.
 *
 * Both are made by clone() with this process's memory, and run while the caller waits: no copy of
 * it is made, however large it is. They have the caller's handlers, so all signals are blocked
 * until none is left of them. Other threads go on meanwhile.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* A supervisor that was started. */
struct vt_start {
	int   pidfd; /* -1: none */
	pid_t owner; /* the process that started it, and no fork of it, may end it */
};

/* Where the socket is in the supervisor, and this program's own file, if it can be read. */
enum { VT_START_SOCKET_FD = 3, VT_START_PROGRAM_FD = 4 };

/*
 * How many descriptors it may have at the least: with fewer the cells that are ready by default do
 * not fit.
 */
enum { VT_START_FILES = 1024 };

/*
 * The program to start, into path: what VITRO_BINARY names, or the one that was installed with this
 * library, or the first `vitro` on PATH. Neither variable counts in a program with more privileges
 * than its caller.
 */
int vt_start_find(char *path, size_t size, struct vt_err *err);

/*
 * Starts `PATH supervise`, with the socket at 3, this program's file at 4, /dev/null at 0 to 2,
 * nothing else open, as many descriptors as it may have, default signals, in a session of its own,
 * so that a terminal's Ctrl-C does not reach it; the environment and the working directory are the
 * caller's.
 */
int vt_start_run(const char *path, int socket, struct vt_start *ret_start, struct vt_err *err);

/* Ends one that was never heard of, and has nothing to clear up. */
void vt_start_kill(const struct vt_start *start);

/*
 * Waits for the end, which the closed socket brings about, and helps after ten seconds. In a fork
 * of the owner it only lets go.
 */
void vt_start_end(struct vt_start *start);
