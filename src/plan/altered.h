/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether an interpreter is still what its owner installed. One that a pool starts runs with the
 * caller's rights until it joins the hull, so that a call which can change it would get these.
 * Looks at the host, in the supervisor, and changes nothing.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "host/trust.h"

/*
 * Whether calls could change what an interpreter begins with, before it joins their hull: its file,
 * a link on the way to it, the pyvenv.cfg beside it, or a module of its library. Packages are
 * another matter: none is imported by then. What cannot be looked at counts as changed. If so,
 * ret_place says where.
 */
bool vt_altered_interpreter(const struct vt_givens *givens, const char *path,
			    char ret_place[PATH_MAX]);
