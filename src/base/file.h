/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of the kernel's, read whole; and which file one is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/*
 * Reads a file, relative to dir, into buf, with a NUL at its end. Returns its length, or a negative
 * errno; of one that does not fit, what fits.
 */
ssize_t vt_file_read(int dir, const char *name, char *buf, size_t size);

/* Whether both are one file. False where that cannot be asked. */
bool vt_file_is_same(int a, int b);

enum { VT_FILE_STAMP = 96 };

/*
 * Which file it is, and when it was changed: another text, once it is another file or has other
 * bytes, whatever its time of writing was set to.
 */
void vt_file_stamp(const struct stat *st, char text[static VT_FILE_STAMP]);

/*
 * access() at a folder. The call that libc makes for it first is newer, and under some containers'
 * filters says EPERM, which it takes for an answer.
 */
static inline int vt_file_access(int dir_fd, const char *path, int mode)
{
	return (int)syscall(SYS_faccessat, dir_fd, path, mode);
}
