/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that close themselves at the end of their scope. Ownership leaves by vt_fd_take(), so
 * that every path which does not take closes.
 */
#pragma once

#include <unistd.h>

static inline void vt_fd_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* never retried: the number is free again whatever it says */
	*fd = -1;
}

static inline int vt_fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define AUTO_CLOSE __attribute__((cleanup(vt_fd_close)))
