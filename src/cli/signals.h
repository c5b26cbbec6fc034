/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that end a call: SIGINT, SIGTERM and SIGHUP, through a descriptor. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* A signalfd for them. Unless they are taken, that is blocked, they still act as they did. */
int vt_cli_signals(bool take, struct vt_err *err);

/*
 * The same, taken, for a verb that makes one call: a reader that left is no reason to die, and one
 * who stops us at the terminal would stop the clock while the cell runs on.
 */
int vt_cli_signals_of_call(struct vt_err *err);
