/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What supervisor, init and occupant say to each other on the status socket, a SOCK_SEQPACKET pair
 * that only they hold: vitro's own code, before anything untrusted runs, and init after it. The
 * occupant's end is closed by exec.
 *
 * In a pool the supervisor has such a socket to the spawner of the hull, which the inits of cells
 * share until they are built, and one to each zygote.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

enum vt_note_kind {
	VT_NOTE_GO,      /* supervisor → init: ids are mapped, go on */
	VT_NOTE_RUNNING, /* init → supervisor, with descriptors: the occupant's pidfd, root, proc */
	VT_NOTE_LISTENER, /* occupant → supervisor, with one descriptor: its filter's listener */
	VT_NOTE_FAILED,  /* init or occupant → supervisor: err says what; nothing of the call ran */
	VT_NOTE_ENDED,   /* init → supervisor: the occupant's wait status */
	VT_NOTE_EMPTY, /* a bare cell's init → supervisor, who wanted its end: no process is left */

	/* of pools; those about one cell have its number */
	VT_NOTE_HULL,    /* the hull's init → supervisor, with descriptors: its namespaces */
	VT_NOTE_PLAN,    /* supervisor → spawner or zygote, with the plan's image; to a zygote
			    the hull's namespaces too */
	VT_NOTE_READY,   /* spawner or zygote → supervisor: it takes orders now */
	VT_NOTE_MAKE,    /* supervisor → spawner, with the cgroup's joins: make a cell */
	VT_NOTE_MADE,    /* spawner → supervisor, with a pidfd: its init lives */
	VT_NOTE_REFRESH, /* supervisor → spawner, with a number in place of a cell's: have veils
			    look again */
	VT_NOTE_REFRESHED, /* spawner → supervisor, with the same number: what the host has
			      changed shows */
	VT_NOTE_UNGUARDED, /* spawner → supervisor, in place of that: a protected name is not what
			      was mounted, or is mounted on no more, so that a new hull is wanted */
	VT_NOTE_LOOK,    /* supervisor → spawner: judge what is protected; err.what names the
			    call, which is over */
	VT_NOTE_LOOKED,  /* spawner → supervisor: it did, with a file of what it did, if anything:
			    launch/guard.h */
	VT_NOTE_BUILT,   /* a cell's init → supervisor, with descriptors: its root, proc */
	VT_NOTE_ENTER,   /* supervisor → zygote, with descriptors: fork an occupant into a cell;
			    where cells are bare, fork the cell's init, which starts an occupant */
	VT_NOTE_ENTERED, /* zygote → supervisor, with a pidfd: it lives, and is the supervisor's
			    child */
	VT_NOTE_PARKED,  /* an occupant → supervisor, on its call socket: it is sealed, and waits */
	VT_NOTE_BORN,    /* a bare cell's init → supervisor, with its own pidfd: it is the
			    supervisor's child; or who makes a hull, of that one's init */
	VT_NOTE_INPUT,   /* supervisor → an occupant of commands, there too, with what it is to
			    read */
	VT_NOTE_LEARN,   /* supervisor → zygote: import the module that err.what names, for all
			    forks to come */
	VT_NOTE_LEARNED, /* zygote → supervisor: it did; with an err.num it did not, and err.what
			    says why */
	VT_NOTE_LOADS,   /* zygote → supervisor, before it is ready: it is about to import what
			    err.what names */
	VT_NOTE_OBJECT,  /* zygote → supervisor, before it executes its program: err.what is a
			    mark of the object's file */
	VT_NOTE_TOLD,    /* zygote → supervisor: err.what is a line for the log; with an err.num,
			    a warning */
};

enum { VT_MODULE_MAX = 255 }; /* bytes of a module's name */

enum { VT_PLACES = 64 }; /* live cells of a hull that the spawner keeps a network namespace for,
			    each */

struct vt_note {
	enum vt_note_kind kind;
	uint64_t          cell;  /* of a pool's: which */
	uint32_t          slot;  /* of VT_NOTE_MAKE: which of the hull's ids for cells it gets */
	uint32_t          place; /* of VT_NOTE_MAKE: no cell that is not gone has the same;
				    VT_PLACES: one of many */
	int               joins; /* of VT_NOTE_MAKE and VT_NOTE_ENTER: how many descriptors of
				    cgroups */
	bool              unified; /* the one of them is a folder of cgroup v2, to be born in */
	bool              awaited; /* of VT_NOTE_ENTER: a call waits, so that what only saves
				      time later is left out */
	/*
	 * of VT_NOTE_ENTERED, VT_NOTE_BORN, a bare cell's VT_NOTE_RUNNING: as the supervisor sees
	 * it; or 0
	 */
	pid_t             pid;
	/* of VT_NOTE_ENDED, and but for the status of VT_NOTE_EMPTY */
	int               wait_status;
	bool              empty; /* nothing but init is left in the cell, and init is about to go */
	struct rusage     usage; /* then: of everything that ever ran in it */
	struct vt_err     err;
};

/*
 * The root is a bare cell's private folder. The proc may be missing: then the host's shows the
 * cell.
 */
enum { VT_NOTE_OCCUPANT_FD, VT_NOTE_ROOT_FD, VT_NOTE_PROC_FD, VT_NOTE_RUNNING_FDS };
/* Of VT_NOTE_LISTENER: the first. */
enum { VT_NOTE_LISTENER_FD };
/*
 * Of VT_NOTE_HULL, and after the image of VT_NOTE_PLAN: what a zygote joins, in this order, and
 * last the pid namespace, for children that are in no cell.
 */
enum {
	VT_HULL_USER_FD,
	VT_HULL_MOUNT_FD,
	VT_HULL_IPC_FD,
	VT_HULL_UTS_FD,
	VT_HULL_NET_FD,
	VT_HULL_PID_FD,
	VT_HULL_FDS
};
/* Of VT_NOTE_BUILT. */
enum { VT_BUILT_ROOT_FD, VT_BUILT_PROC_FD, VT_BUILT_FDS };
/*
 * Of VT_NOTE_ENTER; after them the cgroup's joins. For init's pidfd, a bare cell has init's status
 * socket.
 */
enum { VT_ENTER_INIT_FD, VT_ENTER_CALL_FD, VT_ENTER_OUT_FD, VT_ENTER_ERR_FD, VT_ENTER_FDS };

enum { VT_NOTE_FDS = VT_ENTER_FDS + 4 }; /* the most that any has */
