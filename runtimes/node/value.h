/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of JavaScript, for functions of the addon: what they are called with, and what they return. NULL, or false, is
 * what a function returns at once: an error is thrown then, or Node is about to end.
 */
#pragma once

#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vt_value_function {
	const char *name;
	napi_callback function;
};

/* Throws an Error of this text. Returns NULL. */
napi_value vt_value_throw(napi_env env, const char *text);
napi_value vt_value_int(napi_env env, int64_t number);
napi_value vt_value_bool(napi_env env, bool is);
napi_value vt_value_text(napi_env env, const char *text, size_t len);
/* Gives an object a property. A value that could not be made, NULL, is no success. */
bool vt_value_set(napi_env env, napi_value object, const char *name, napi_value value);
/* Gives it functions, by their names. */
bool vt_value_set_functions(napi_env env, napi_value object, const struct vt_value_function *functions, size_t count);
/* The arguments of a call, as many as are wanted, or it throws. */
bool vt_value_take_args(napi_env env, napi_callback_info info, size_t count, napi_value *args);
/* A number, or it throws. */
bool vt_value_take_int(napi_env env, napi_value value, int32_t *ret_number);
/* Of this process's own; "" where it is no text. */
void vt_value_take_text(napi_env env, napi_value value, char *text, size_t size);
