/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "/proc/self/fd/N": the name of a descriptor, for calls that take paths alone. No stdio, since it
 * is wanted between clone and exec, too.
 */
#pragma once

#include <string.h>

#include "base/decimal.h"

#define VT_FDLINK_FOLDER "/proc/self/fd/"

enum { VT_FDLINK = sizeof(VT_FDLINK_FOLDER) + VT_DECIMAL }; /* bytes, with the NUL */

/* Returns its length. The descriptor is open, and so not negative. */
static inline size_t vt_fdlink(char ret_link[VT_FDLINK], int fd)
{
	const size_t folder = sizeof(VT_FDLINK_FOLDER) - 1;

	memcpy(ret_link, VT_FDLINK_FOLDER, folder);
	size_t len = folder + vt_decimal(ret_link + folder, (unsigned)fd);

	ret_link[len] = '\0';
	return len;
}
