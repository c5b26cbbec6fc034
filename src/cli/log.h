/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard error of a verb that must not wait, whoever reads it or does not: a line that has no
 * room at once is dropped, and counted, and the next one that has room is preceded by how many
 * were.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct vt_cli_log {
	int      fd;
	int      own_fd;  /* -1: it is standard error's own */
	bool     is_socket;
	bool     waits;   /* a write to it may: it is asked for room before */
	uint64_t dropped; /* since the last line that was written */
};

/* There is one log of standard error at a time. */
void vt_cli_log_init(struct vt_cli_log *log);
/* Says how many lines were dropped, if it can. */
void vt_cli_log_done(struct vt_cli_log *log);

/* As vt_cli_complain() and vt_cli_complain_err(), of which this is the other way. */
void vt_cli_log_line(struct vt_cli_log *log, const char *message);
void vt_cli_log_err(struct vt_cli_log *log, const struct vt_err *err);
/* Each line of a text is one. */
void vt_cli_log_lines(struct vt_cli_log *log, const char *text);
