/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vitro's own scripts, which lie beside this library. The hull does not have them: they are read before it is joined, and
 * given to Node as texts.
 */
#pragma once

#include <node_api.h>

/* All that lie beside the library of this path. Returns 0 or a negative errno. */
int vt_node_source_read_all(const char *library);
/* sources(): an object of their texts, by their names. */
napi_value vt_node_source_tell_all(napi_env env, napi_callback_info info);
