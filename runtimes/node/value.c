/* SPDX-License-Identifier: Apache-2.0 */
#include "value.h"

napi_value vt_value_throw(napi_env env, const char *text)
{
	(void)napi_throw_error(env, NULL,
			       text); /* what can fail here is that one is thrown already */
	return NULL;
}

napi_value vt_value_int(napi_env env, int64_t number)
{
	napi_value value = NULL;

	return napi_create_int64(env, number, &value) == napi_ok ? value : NULL;
}

napi_value vt_value_bool(napi_env env, bool is)
{
	napi_value value = NULL;

	return napi_get_boolean(env, is, &value) == napi_ok ? value : NULL;
}

napi_value vt_value_text(napi_env env, const char *text, size_t len)
{
	napi_value value = NULL;

	return napi_create_string_utf8(env, text, len, &value) == napi_ok ? value : NULL;
}

bool vt_value_set(napi_env env, napi_value object, const char *name, napi_value value)
{
	return value && napi_set_named_property(env, object, name, value) == napi_ok;
}

bool vt_value_take_args(napi_env env, napi_callback_info info, size_t count, napi_value *args)
{
	size_t got = count;

	if (napi_get_cb_info(env, info, &got, args, NULL, NULL) == napi_ok && got >= count)
		return true;
	(void)vt_value_throw(env, "too few arguments");
	return false;
}

bool vt_value_take_int(napi_env env, napi_value value, int32_t *ret_number)
{
	if (napi_get_value_int32(env, value, ret_number) == napi_ok)
		return true;
	(void)vt_value_throw(env, "want a number");
	return false;
}

void vt_value_take_text(napi_env env, napi_value value, char *text, size_t size)
{
	if (napi_get_value_string_utf8(env, value, text, size, NULL) != napi_ok)
		*text = '\0';
}

bool vt_value_set_functions(napi_env env, napi_value object,
			    const struct vt_value_function *functions, size_t count)
{
	napi_value function;

	for (size_t i = 0; i < count; i++)
		if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH,
					 functions[i].function, NULL, &function) != napi_ok ||
		    !vt_value_set(env, object, functions[i].name, function))
			return false;
	return true;
}
