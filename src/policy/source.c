/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

struct vt_shown vt_show(const char *text)
{
	struct vt_shown shown;

	vt_utf8_show_text(shown.text, sizeof(shown.text), text, strlen(text));
	return shown;
}

int(vt_source_fail)(struct vt_err *err, const struct vt_source *source, int num, const char *fmt,
		    ...)
{
	char what[sizeof(err->what)];
	char name[160];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, args); /* vt_fail cuts it anyway */
	va_end(args);
	vt_utf8_show_text(name, sizeof(name), source->name, strlen(source->name));
	/* "--set limits.pids" names its key already; and what has no name but a key is called by
	 * that. */
	bool named = strncmp(source->name, "--", 2) == 0 && strstr(source->name, source->key);

	if (vt_source_is_key(source))
		return vt_fail(err, VT_STEP_POLICY, num, "%s: %s", source->key, what);
	if (!*name)
		return vt_fail(err, VT_STEP_POLICY, num, "%s", what);
	if (!*source->key || named)
		return vt_fail(err, VT_STEP_POLICY, num, "%s: %s", name, what);
	return vt_fail(err, VT_STEP_POLICY, num, "%s: %s: %s", name, source->key, what);
}

bool vt_source_is_key(const struct vt_source *source)
{
	size_t len = strlen(source->name);

	return len && strncmp(source->key, source->name, len) == 0 &&
	       (!source->key[len] || source->key[len] == '[');
}

int(vt_source_nomem)(struct vt_err *err)
{
	return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
}
