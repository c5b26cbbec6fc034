/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An audit log: a file of JSON lines that is only ever appended to, each line linked to the one
 * before it (watch/chain.h). Whoever appends takes the file's lock (flock), reads the hash of the
 * last line from the file's end, and writes once; so any number of processes can share a log, and
 * none has to remember anything of it. A log that was cut, emptied or put in place of another is
 * gone on with as it is found.
 *
 * What a crash or a full disk left behind the last whole line is not removed: a line that tells of
 * it is written before the next one. In a file whose last VT_AUDIT_SCAN bytes have no line of a
 * chain, a chain begins.
 *
 * What is not a file (a pipe, a device) has no end to read. There the lines of one opener are a
 * chain.
 *
 * Runs in the supervisor. Nothing is synced to the disk: after a power loss the last lines may be
 * missing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "watch/chain.h"

/*
 * The longest line, well above what the kernel lets a command line be; and how far back the last
 * whole one is looked for.
 */
#define VT_AUDIT_LINE ((size_t)64 << 20)
#define VT_AUDIT_SCAN (2 * VT_AUDIT_LINE)

struct vt_audit_log {
	int         fd;   /* owned; -1: not open */
	const char *name; /* the caller's, for messages and vt_audit_is_moved() */
	bool        is_file;
	/* for the lock, before an append fails: 5 s unless the owner sets it */
	int64_t     wait_ns;
	char        last[VT_CHAIN_HEX + 1]; /* where it is no file: what the next line follows */
};

/* Opens the file at path, which is no link, or makes it. */
int vt_audit_open(struct vt_audit_log *log, const char *path, struct vt_err *err);

/*
 * The same with a descriptor that was opened elsewhere, which is the log's from now on, also on
 * failure. One of a file must be open for reading and writing, by an open() of its own: a lock
 * belongs to that.
 */
int vt_audit_take(struct vt_audit_log *log, int fd, const char *name, struct vt_err *err);

/*
 * Appends a JSON object, one line with or without its newline. On failure there may be a part of it
 * at the end of the file, which the next append tells of.
 */
int vt_audit_append(struct vt_audit_log *log, const char *json, size_t len, struct vt_err *err);

/*
 * Whether the lock can be had, which is not kept. Asked before what the line will be about, so that
 * nothing goes unrecorded because somebody keeps the log locked. -EWOULDBLOCK after log->wait_ns.
 */
int vt_audit_try(const struct vt_audit_log *log, struct vt_err *err);

/* Whether the name is that of another file by now, or of none: time to open it anew. */
bool vt_audit_is_moved(const struct vt_audit_log *log);

/* Closes it. One that is not open is fine. */
void vt_audit_done(struct vt_audit_log *log);

/*
 * Walks along all lines of a file, or of what a pipe brings; the verdict is in *ret_chain.
 * expected: as vt_chain_begin() takes it. What is appended meanwhile is not looked at.
 */
int vt_audit_verify(const char *path, const char *expected, struct vt_chain *ret_chain,
		    struct vt_err *err);

/* The time now in UTC, to the millisecond, as RFC 3339 writes it. */
void vt_audit_time(char ret_text[VT_CHAIN_TIME]);
