/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What supervisor, init and occupant say to each other on the status socket, a SOCK_SEQPACKET pair
 * that only they hold: vitro's own code, before anything untrusted runs, and init after it. The
 * occupant's end is closed by exec.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

enum vt_note_kind {
	VT_NOTE_GO,      /* supervisor → init: ids are mapped, go on */
	VT_NOTE_RUNNING, /* init → supervisor, with descriptors: the occupant's pidfd, proc, root */
	VT_NOTE_FAILED,  /* init or occupant → supervisor: err says what; nothing of the call ran */
	VT_NOTE_ENDED,   /* init → supervisor: the occupant's wait status */
};

struct vt_note {
	enum vt_note_kind kind;
	int               wait_status;
	struct vt_err     err;
};

enum { VT_NOTE_OCCUPANT_FD, VT_NOTE_PROC_FD, VT_NOTE_ROOT_FD, VT_NOTE_FDS };
