/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command of a pool reads. It is a file of its own that nobody can change any more: a pipe
 * would need somebody who fills it, and one that the cell makes would count against its limits.
 * Part of a pool.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* Hands it to an occupant of commands that is parked, on its call's socket. */
int vt_input_hand(int call_fd, const char *bytes, size_t len, struct vt_err *err);
