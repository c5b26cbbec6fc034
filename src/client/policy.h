/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy as a client has it: the list of what it is made of, in order, as the supervisor is told
 * it. Each source is checked when it is added, so that an error names it; what it means on this
 * machine is the supervisor's to say. Two policies with the same list are the same.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include <vitro.h>

struct vitro_policy {
	struct vt_str sources; /* JSON objects with commas between them */
};

/*
 * The sources as a JSON array; NULL as policy: the default one. Freed with free(); NULL: no memory.
 */
char *vt_policy_sources(const vitro_policy *policy);

/*
 * The same, and a folder more to read, which is absolute; NULL: none. An error names it.
 * *ret_sources is freed with free().
 */
int vt_policy_sources_reading(const vitro_policy *policy, const char *folder, char **ret_sources,
			      struct vt_err *err);

/*
 * Adds JSON text that is a part of a file, such as a manifest of tools: paths in it are relative to
 * the file's folder, and a call that could change the file is refused. file is absolute.
 */
int vt_policy_add_part(vitro_policy *policy, const char *json, const char *file,
		       struct vitro_error *error);
