/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's audit log: one line for each call, watch/audit.h. Nobody is told of a call whose line
 * is not written: one that cannot be is kept, and tried again; until then no further call is to be
 * taken, so that none goes unrecorded. The loop waits for the log for 20 ms at the most. One that
 * was moved away is begun anew at its path. Runs in the server.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "serve/commons.h"
#include "watch/audit.h"
#include "watch/loop.h"

struct vt_record {
	struct vt_loop      *loop;
	struct vt_audit_log  log;
	char                *path;
	struct vt_timer      timer;
	struct vt_str        kept;    /* lines that could not be written, each with its newline */
	bool                 blocked; /* there are some */
	/* once, until it works again */
	void               (*failed)(void *user, const struct vt_err *err);
	/* What was kept was tried again: whether all of it is written now. */
	void               (*tried)(void *user, bool written);
	void                *user;
};

/* It stays where it is. failed, tried and user are the owner's to set afterwards. */
int vt_record_open(struct vt_record *record, struct vt_loop *loop, const char *path,
		   struct vt_err *err);
/*
 * Writes what was kept, and waits for the log where another has it. Whether all of it is written.
 */
bool vt_record_flush(struct vt_record *record);
/* The same, and closes it. Fine if it was not opened. */
void vt_record_done(struct vt_record *record);

/* Writes its line, and says when its client may be told. */
enum vt_telling vt_record_call(struct vt_record *record, const struct vt_call_over *over);
