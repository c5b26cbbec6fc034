/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/builtin.h"

#include <stddef.h>
#include <string.h>

#include "base/closest.h"

/* None grants anything: granting is for whoever extends them. */
static const struct {
	const char *name, *text;
} builtins[] = {
	{ "default", "{}" },
	{ "strict",
	  "{\"syscalls\": \"strict\", \"require\": \"strict\", \"env\": {\"pass\": []}}" },
	{ "compute", "{\"network\": \"none\", \"files\": {\"write\": [], \"cwd\": \"/tmp\"},"
		     " \"env\": {\"pass\": []}}" },
};

const char *vt_builtin_find(const char *name)
{
	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
		if (strcmp(builtins[i].name, name) == 0)
			return builtins[i].text;
	}
	return NULL;
}

const char *vt_builtin_closest(const char *name)
{
	struct vt_closest closest;

	vt_closest_init(&closest, name);
	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
		vt_closest_try(&closest, builtins[i].name, builtins[i].name);
	return closest.best;
}

const char *vt_builtin_names(void)
{
	return "default, strict, compute";
}
