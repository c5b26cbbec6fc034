/* SPDX-License-Identifier: Apache-2.0 */
/* What a result and its line in the audit log have in common: result.c has all of it. */
#pragma once

#include "watch/result.h"

/*
 * An object being filled. Failure is sticky, as in vt_str: jansson gives NULL where memory is
 * short, and refuses to set NULL.
 */
struct vt_object {
	json_t *json;
	bool    failed;
};

struct vt_object vt_object_new(void);

/* Takes the value. */
void vt_object_put(struct vt_object *object, const char *key, json_t *value);

/* How the occupant ended: "exit_code" and "signal". */
void vt_object_put_end(struct vt_object *object, const struct vt_verdict *verdict);

/* The filled object, or NULL where anything failed. */
json_t *vt_object_take(struct vt_object *object);

/* Adds root to out, and takes it. What fails shows in out, as where root is NULL. */
void vt_object_write(json_t *root, struct vt_str *out, size_t flags);

/* Adds the newline; -ENOMEM where anything failed before. */
int vt_object_end_line(struct vt_str *out, struct vt_err *err);

/* NULL: out of memory. */
json_t *vt_result_usage(const struct vt_result *result);
