/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that end a call: SIGINT, SIGTERM and SIGHUP, through a descriptor. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* A signalfd for them. Unless they are taken, that is blocked, they still act as they did. */
int vt_cli_signals(bool take, struct vt_err *err);
