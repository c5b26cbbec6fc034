/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the acts of the self-test reach for, all of it its own: a folder with a secret, one to be
 * granted for reading and one for writing; a process; listeners on the loopback and on unix
 * sockets; a reader of a named pipe.
 *
 * Two processes live as long as it does. The victim waits. The keeper answers at the listeners, and
 * removes the folder when its maker closes a pipe to it, or dies.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct vt_world {
	char  base[PATH_MAX / 2]; /* "" where no folder could be made: why says so */
	char  why[256];
	char  word[40];           /* stands in the victim's command line and environment */
	char  abstract[40];
	int   tcp4, tcp6, udp4;   /* ports, 0 where there is no listener */
	/* a descriptor of the secret folder that every child inherits, or -1 */
	int   leak;
	pid_t victim, keeper;
	int   keeper_fd;          /* closing it ends the keeper */
};

/*
 * Makes it. program is the victim's. shared: cells have another user than the caller, and nothing
 * maps the one to the other, so everybody may write the folder for writing. What this machine does
 * not let be made is left out; an error only where there is no victim or no keeper. The working
 * directory is the secret folder from then on.
 */
int vt_world_make(struct vt_world *world, const char *program, bool shared, struct vt_err *err);

/* Ends it, with all that belongs to it. -errno where the folder could not be removed. */
int vt_world_done(struct vt_world *world, struct vt_err *err);

/* Makes anew what acts may have changed. */
void vt_world_refresh(const struct vt_world *world);

/*
 * Writes words to buf with each {name} filled in. Returns NULL, or why it cannot be: what this
 * world lacks.
 */
const char *vt_world_fill(const struct vt_world *world, const char *words, char *buf, size_t size);

/*
 * Whether a process holds the lock on the file "lock" in the folder for writing. Only those whom
 * the self-test started can; it is killed.
 */
bool vt_world_is_locked(const struct vt_world *world);
