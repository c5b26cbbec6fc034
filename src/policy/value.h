/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One value into one field of a policy, from JSON or from a flag's text: checked first, stored
 * after. The first value that a list or a map gets takes the place of its default; later ones are
 * added.
 */
#pragma once

#include <jansson.h>

#include "policy/fields.h"
#include "policy/source.h"

/* More than anyone lists by hand; a bound on what merging and mounting may cost. */
#define VT_LIST_MOST 4096

int vt_value_json(struct vt_policy *policy, enum vt_field field, const json_t *value,
		  const struct vt_source *source, struct vt_err *err);
int vt_value_text(struct vt_policy *policy, enum vt_field field, const char *text,
		  const struct vt_source *source, struct vt_err *err);

/* The two for numeric fields (numbers.c), and for lists and maps (lists.c). */
int vt_number_json(struct vt_policy *policy, enum vt_field field, const json_t *value,
		   const struct vt_source *source, struct vt_err *err);
int vt_number_text(struct vt_policy *policy, enum vt_field field, const char *text,
		   const struct vt_source *source, struct vt_err *err);
int vt_list_json(struct vt_policy *policy, enum vt_field field, const json_t *value,
		 const struct vt_source *source, struct vt_err *err);
int vt_list_text(struct vt_policy *policy, enum vt_field field, const char *text,
		 const struct vt_source *source, struct vt_err *err);

/* Adds a file to those that the policy was read from. */
int vt_list_add_source(struct vt_policy *policy, const char *path, const struct vt_source *source,
		       struct vt_err *err);

/* "found a list, want ...": a JSON value of the wrong type. */
int vt_value_wrong(const json_t *value, const char *want, const struct vt_source *source,
		   struct vt_err *err);
#ifdef VITRO_ANALYZED /* as of vt_fail() */
#define vt_value_wrong(...) vt_negative(vt_value_wrong(__VA_ARGS__))
#endif

/* Where the field's value is kept. */
static inline void *vt_value_member(struct vt_policy *policy, enum vt_field field)
{
	return (char *)policy + vt_field_row(field)->offset;
}

/* Notes that somebody set the field. */
static inline void vt_value_mark(struct vt_policy *policy, enum vt_field field)
{
	policy->given |= UINT64_C(1) << field;
}
