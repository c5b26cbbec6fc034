/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compiled template.
 *
 *   command.c         compiles
 *   command_expand.c  fills in, and reads what a command printed
 */
#pragma once

#include "tool/command.h"
#include "tool/schema_private.h"

/* Text, or the name of an argument. */
struct vt_piece {
	const char *text;
	size_t      len;
	bool        is_name;
	bool        is_optional, is_list;
	bool        may_dash; /* {-name} */
};

struct vt_template_word {
	struct vt_piece *pieces;
	size_t           count;
	bool             may_dash; /* it does as it is written, or is covered by "--" */
};

struct vt_template {
	struct vt_arena *arena;
	struct vt_template_word  *words;
	size_t           count;
};

/* "PLACE: ...", and -num. */
int vt_template_fail(struct vt_err *err, const char *name, const struct vt_schema_place *at,
		     int num,
		    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Says so, and returns -ENOMEM. */
int vt_template_no_memory(struct vt_err *err);
