/* SPDX-License-Identifier: Apache-2.0 */
/* A policy's JSON, key by key, into a policy. Knows neither files nor what `extends` leads to. */
#pragma once

#include <jansson.h>

#include "policy/policy.h"
#include "policy/source.h"

/*
 * Checks that root is an object of known keys, before anything is applied. *ret_extends is the text
 * of its "extends", which is the loader's to follow, or NULL. The error is the first mistake; where
 * the policy has room for all, they are in there.
 */
int vt_parse_check(const struct vt_policy *policy, const json_t *root, const char **ret_extends,
		   const struct vt_source *source, struct vt_err *err);

/* Applies every field of a root, in which there may be others. Mistakes are told as above. */
int vt_parse_apply(struct vt_policy *policy, const json_t *root, const struct vt_source *source,
		   struct vt_err *err);

/* "unknown key 'limits.wal_ms'; did you mean 'limits.wall_ms'?" */
int vt_parse_unknown(const char *key, const struct vt_source *source, struct vt_err *err);
