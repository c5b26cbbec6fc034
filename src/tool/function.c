/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/function.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"

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

static bool is_python(const char *function, size_t len)
{
	size_t module = strcspn(function, ":");

	return module < len && is_dotted(function, module) &&
	       is_dotted(function + module + 1, len - module - 1);
}

/* A file beside what names it, or below: no part of its path leads up. */
static bool is_beside(const char *path, size_t len)
{
	for (size_t at = 0, end; at < len; at = end + 1) {
		for (end = at; end < len && path[end] != '/'; end++)
			;
		if (end == at ||
		    (path[at] == '.' && (end == at + 1 || (end == at + 2 && path[at + 1] == '.'))))
			return false;
	}
	return len > 0 && path[len - 1] != '/';
}

static bool is_node(const char *function, size_t len)
{
	size_t file = strcspn(function, "#");

	for (size_t i = 0; i < len; i++)
		if (iscntrl((unsigned char)function[i]))
			return false;
	return file + 1 < len && !strchr(function + file + 1, '#') && is_beside(function, file);
}

static const struct {
	const char *key;
	const char *program;
	const char *parts; /* module and function */
	const char *wants;
	const char *before;  /* a module's name, when it is imported */
	const char *ends[2]; /* of the file that a module is */
	bool dotted;         /* a '.' in its name is a folder */
	bool (*is_name)(const char *function, size_t len);
} languages[VT_LANGUAGES] = {
	[VT_PYTHON] = { "python",
			"python3",
			":",
			"a module and its function, \"module:function\"",
			"",
			{ ".py", "/__init__.py" },
			true,
			is_python },
	[VT_NODE] = { "node",
		      "node",
		      "#",
		      "a file and its export, \"file.mjs#export\"",
		      "./",
		      { "", NULL },
		      false,
		      is_node },
};

const char *vt_tool_function(const struct vitro_tool *tool, enum vt_language *ret_language)
{
	*ret_language = tool->node ? VT_NODE : VT_PYTHON;
	return tool->node ? tool->node : tool->python;
}

const char *vt_language_program(enum vt_language language)
{
	return languages[language].program;
}

const char *vt_language_name(enum vt_language language)
{
	return languages[language].key;
}

int vt_tool_check_function(enum vt_language language, const char *function, const char *key,
			   struct vt_err *err)
{
	size_t len = strlen(function);
	char shown[80];

	if (len > VT_TOOL_MAX_FUNCTION)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: it has more than %d bytes", key,
			       VT_TOOL_MAX_FUNCTION);
	if (languages[language].is_name(function, len) && vt_utf8_is_valid(function, len))
		return 0;
	return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s: want %s, found '%s'", key,
		       languages[language].wants,
		       vt_utf8_show_text(shown, sizeof(shown), function, len));
}

/* Which file the module is in the folder, and when it was written. NULL: it is elsewhere. */
static json_t *stamp(enum vt_language language, const char *folder, const char *module, size_t len)
{
	const char *const *ends = languages[language].ends;
	char path[PATH_MAX], mark[VT_FILE_STAMP];
	struct stat info;

	for (size_t i = 0; folder && i < 2 && ends[i]; i++) {
		int used = snprintf(path, sizeof(path), "%s/%.*s%s", folder, (int)len, module,
				    ends[i]);

		if (used < 0 || (size_t)used >= sizeof(path))
			return NULL;
		for (char *at = path + strlen(folder);
		     languages[language].dotted && at < path + strlen(folder) + 1 + len; at++)
			*at = *at == '.' ? '/' : *at;
		if (stat(path, &info) == 0) {
			vt_file_stamp(&info, mark);
			return json_string(mark);
		}
	}
	return NULL;
}

int vt_tool_set_up(enum vt_language language, const char *function, const char *folder,
		   char **ret_setup, struct vt_err *err)
{
	size_t len = strcspn(function, languages[language].parts);
	char module[VT_TOOL_MAX_FUNCTION + 4];
	json_t *path = json_array();

	(void)snprintf(module, sizeof(module), "%s%.*s", languages[language].before, (int)len,
		       function); /* it was checked */
	if (folder && path && json_array_append_new(path, json_string(folder)) < 0) {
		json_decref(path);
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "the name of the module's folder is not UTF-8");
	}
	AUTO_JSON json_t *setup = json_pack("{s:i, s:s, s:o, s:[s], s:[s], s:o*}", "version", 1,
					    "mode", "json", "path", path, "preload", module,
					    "rehearse", "call", "stamp",
					    stamp(language, folder, function, len));
	char *text = setup ? json_dumps(setup, JSON_COMPACT) : NULL;

	if (!text)
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	*ret_setup = text;
	return 0;
}
