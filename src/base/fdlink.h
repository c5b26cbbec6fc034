/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "/proc/self/fd/N": the name of a descriptor, for calls that take paths alone. No stdio, since it
 * is wanted between clone and exec, too.
 */
#pragma once

#include <stdbool.h>
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

/*
 * Whether a path is such a name: "/dev/stdin", "/dev/fd/3", "/proc/self/fd/3". What is there the
 * caller has opened itself, as of `<(...)`, while anybody may have put a pipe at another path.
 */
static inline bool vt_fdlink_is(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", VT_FDLINK_FOLDER };

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const size_t len = strlen(folders[i]);

		if (strncmp(path, folders[i], len) == 0 && path[len] &&
		    !path[len + strspn(path + len, "0123456789")])
			return true;
	}
	return strcmp(path, "/dev/stdin") == 0;
}
