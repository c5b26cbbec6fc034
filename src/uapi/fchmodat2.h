/* SPDX-License-Identifier: Apache-2.0 */
/* fchmodat2(2), which Linux 6.6 added and libc has no name for yet. */
#pragma once

#include <sys/types.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static inline int sys_fchmodat2(int dir, const char *path, mode_t mode, unsigned flags)
{
	return (int)syscall(SYS_fchmodat2, dir, path, mode, flags);
}
