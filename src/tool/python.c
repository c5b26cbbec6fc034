/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/python.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"

/* Names with points between them. Which letters of other scripts make a name, Python knows. */
static bool is_dotted(const char *at, size_t len)
{
	bool begins = true;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)at[i];

		if (begins ? !isalpha(c) && c != '_' && c < 0x80
			   : !isalnum(c) && !strchr("_.", c) && c < 0x80)
			return false;
		begins = c == '.';
	}
	return !begins;
}

int vt_tool_check_python(const char *function, const char *key, struct vt_err *err)
{
	size_t len = strlen(function), module = strcspn(function, ":");
	char shown[80];

	if (len > VT_TOOL_MAX_FUNCTION)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: it has more than %d bytes", key,
			       VT_TOOL_MAX_FUNCTION);
	if (module < len && is_dotted(function, module) &&
	    is_dotted(function + module + 1, len - module - 1) && vt_json_is_utf8(function, len))
		return 0;
	return vt_fail(err, VT_STEP_POLICY, EINVAL,
		       "%s: want a module and its function, \"module:function\", found '%s'", key,
		       vt_json_show(shown, sizeof(shown), function, len));
}

/* Which file the module is in the folder, and when it was written. NULL: it is elsewhere. */
static json_t *stamp(const char *folder, const char *module, size_t len)
{
	static const char *const ends[] = { ".py", "/__init__.py" };
	char path[PATH_MAX];
	struct stat info;

	for (size_t i = 0; folder && i < sizeof(ends) / sizeof(ends[0]); i++) {
		int used = snprintf(path, sizeof(path), "%s/%.*s%s", folder, (int)len, module,
				    ends[i]);

		if (used < 0 || (size_t)used >= sizeof(path))
			return NULL;
		for (char *at = path + strlen(folder); at < path + strlen(folder) + 1 + len; at++)
			*at = *at == '.' ? '/' : *at;
		if (stat(path, &info) == 0)
			return json_sprintf("%llx.%llx.%llx.%lx", (unsigned long long)info.st_ino,
					    (unsigned long long)info.st_size,
					    (unsigned long long)info.st_mtim.tv_sec,
					    (unsigned long)info.st_mtim.tv_nsec);
	}
	return NULL;
}

int vt_tool_set_up_python(const char *function, const char *folder, char **ret_setup,
			  struct vt_err *err)
{
	size_t len = strcspn(function, ":");
	json_t *path = json_array();

	if (folder && path && json_array_append_new(path, json_string(folder)) < 0) {
		json_decref(path);
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "the name of the module's folder is not UTF-8");
	}
	AUTO_JSON json_t *setup = json_pack("{s:i, s:s, s:o, s:[s%], s:[s], s:o*}", "version", 1,
					    "mode", "json", "path", path, "preload", function, len,
					    "rehearse", "call", "stamp",
					    stamp(folder, function, len));
	char *text = setup ? json_dumps(setup, JSON_COMPACT) : NULL;

	if (!text)
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	*ret_setup = text;
	return 0;
}
