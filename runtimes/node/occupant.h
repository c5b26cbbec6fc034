/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an occupant needs of the system that JavaScript does not give it, or at a price: its call socket, waited for without an
 * event loop; its end, for which Node would wait; and what tells it from its siblings.
 */
#pragma once

#include <node_api.h>
#include <stdbool.h>

/* Gives the addon these functions. */
bool vt_node_occupant_set_functions(napi_env env, napi_value object);
