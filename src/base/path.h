/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as text: absolute ones, or ones relative to the same folder, without ".", ".." and "//". */
#pragma once

#include <stdbool.h>
#include <string.h>

/* Whether path is folder or lies below it. By name alone: links are not looked at. */
static inline bool vt_path_lies_in(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	if (strncmp(path, folder, len) != 0)
		return false;
	return path[len] == '/' || path[len] == '\0' || strcmp(folder, "/") == 0;
}

/* Whether a name is prefix + "PID.N", as vitro calls what it makes and must find again. */
static inline bool vt_path_is_numbered(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	if (strncmp(name, prefix, len) != 0)
		return false;
	name += len;
	len = strspn(name, "0123456789");
	if (len == 0 || name[len] != '.')
		return false;
	name += len + 1;
	len = strspn(name, "0123456789");
	return len > 0 && name[len] == '\0';
}
