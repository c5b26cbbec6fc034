/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "host/trust.h"

/*
 * Whether calls could change what an interpreter begins with, before it joins their hull: its file, a link on the way to it, the pyvenv.cfg
 * beside it, or a module of its library. Packages are another matter: none is imported by then. Then where.
 */
bool vt_altered_interpreter(const struct vt_givens *givens, const char *path, char ret_place[PATH_MAX]);
