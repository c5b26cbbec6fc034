/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of the kernel's, read whole. */
#pragma once

#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/*
 * Reads a file, relative to dir, into buf, with a NUL at its end. Returns its length, or a negative
 * errno; of one that does not fit, what fits.
 */
ssize_t vt_file_read(int dir, const char *name, char *buf, size_t size);

/*
 * access() at a folder. The call that libc makes for it first is newer, and under some containers'
 * filters says EPERM, which it takes for an answer.
 */
static inline int vt_file_access(int dir_fd, const char *path, int mode)
{
	return (int)syscall(SYS_faccessat, dir_fd, path, mode);
}
