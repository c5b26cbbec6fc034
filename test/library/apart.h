/* SPDX-License-Identifier: Apache-2.0 */
/* What the tools of vitro-apart do, in a cell or outside. */
#pragma once

#include <jansson.h>
#include <vitro.h>

/* task is NULL outside. What it returns is the value, new. */
typedef json_t *act_function(json_t *input, vitro_task *task);

extern const struct vitro_tool tools[];
act_function *act_of(const char *name);

/* How often this process has the bytes in its memory; they are given as hex, each bit turned. */
int count_in_memory(const char *needle);
