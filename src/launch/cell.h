/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What supervisor, init and occupant say to each other on the status socket, a SOCK_SEQPACKET pair
 * that only they hold: vitro's own code, before anything untrusted runs, and init after it. The
 * occupant's end is closed by exec.
 */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>

#include "base/err.h"

enum vt_note_kind {
	VT_NOTE_GO,      /* supervisor → init: ids are mapped, go on */
	VT_NOTE_RUNNING, /* init → supervisor, with descriptors: the occupant's pidfd, root, proc */
	VT_NOTE_LISTENER, /* occupant → supervisor, with one descriptor: its filter's listener */
	VT_NOTE_FAILED,  /* init or occupant → supervisor: err says what; nothing of the call ran */
	VT_NOTE_ENDED,   /* init → supervisor: the occupant's wait status */
	VT_NOTE_EMPTY,   /* a bare cell's init → supervisor, who wanted its end: no process is left */
};

struct vt_note {
	enum vt_note_kind kind;
	/* of VT_NOTE_ENDED, and but for the status of VT_NOTE_EMPTY */
	int               wait_status;
	bool              empty; /* nothing but init is left in the cell, and init is about to go */
	struct rusage     usage; /* then: of everything that ever ran in it */
	struct vt_err     err;
};

/* The root is a bare cell's private folder. The proc may be missing: then the host's shows the cell. */
enum { VT_NOTE_OCCUPANT_FD, VT_NOTE_ROOT_FD, VT_NOTE_PROC_FD, VT_NOTE_FDS };
/* Of VT_NOTE_LISTENER: the first. */
enum { VT_NOTE_LISTENER_FD };
