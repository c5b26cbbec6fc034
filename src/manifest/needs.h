/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command's template cannot do without is required of its arguments, whether its schema says
 * so or not.
 */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "base/json_scan.h"

/*
 * The text of a schema in which `required` has all names that needs has, an array; value is what it
 * was read from, and span its text; value NULL: there is none. What is required already leaves it
 * as it was written. NULL: no memory.
 */
const char *vt_needs_add(struct vt_arena *arena, const json_t *value, struct vt_json_span span,
			 const json_t *needs);
