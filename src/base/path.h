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
