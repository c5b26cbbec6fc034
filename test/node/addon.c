/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An addon that code brings with it, to do what JavaScript cannot: syscall(number, …) makes a
 * system call, with each Buffer by its address. Returns what the kernel says, an error as its
 * negative errno.
 */
#include <node_api.h>

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

enum { WORDS = 7 };

static napi_value make_call(napi_env env, napi_callback_info info)
{
	napi_value args[WORDS], answer = NULL;
	long words[WORDS] = { 0 };
	size_t count = WORDS, size;
	bool is_buffer;

	if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok)
		return NULL;
	for (size_t i = 0; i < count && i < WORDS; i++) {
		int64_t number = 0;
		void *data = NULL;

		if (napi_is_buffer(env, args[i], &is_buffer) != napi_ok)
			return NULL;
		if (is_buffer && napi_get_buffer_info(env, args[i], &data, &size) == napi_ok)
			words[i] = (long)(intptr_t)data;
		else if (napi_get_value_int64(env, args[i], &number) == napi_ok)
			words[i] = (long)number;
	}
	long r = syscall(words[0], words[1], words[2], words[3], words[4], words[5], words[6]);

	return napi_create_int64(env, r < 0 ? -errno : r, &answer) == napi_ok ? answer : NULL;
}

NAPI_MODULE_INIT(/* env, exports */)
{
	napi_value function;

	if (napi_create_function(env, "syscall", NAPI_AUTO_LENGTH, make_call, NULL, &function) !=
		    napi_ok ||
	    napi_set_named_property(env, exports, "syscall", function) != napi_ok)
		return NULL;
	return exports;
}
