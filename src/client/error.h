/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as those who call the library get them. */
#pragma once

#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include <vitro.h>

/* Fills *error, unless it is NULL, and returns -num. */
static inline int vt_error_give(struct vitro_error *error, int num, const char *text)
{
	if (error) {
		error->num = num;
		(void)snprintf(error->text, sizeof(error->text), "%s", text); /* cut is fine */
	}
	return -num;
}

/* The same, of an error of vitro's own. */
static inline int vt_error_pass(struct vitro_error *error, const struct vt_err *err)
{
	return vt_error_give(error, err->num, err->what);
}

/* Returns -ENOMEM. */
static inline int vt_error_no_memory(struct vt_err *err)
{
	return vt_fail(err, VT_STEP_WIRE, ENOMEM, "out of memory");
}
