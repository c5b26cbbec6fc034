/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of the kernel's, read whole. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * Reads a file, relative to dir, into buf, with a NUL at its end. Returns its length, or a negative
 * errno; of one that does not fit, what fits.
 */
ssize_t vt_file_read(int dir, const char *name, char *buf, size_t size);
