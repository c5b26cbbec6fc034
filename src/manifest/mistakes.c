/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/mistakes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "manifest/manifest.h"

enum { MESSAGE = 900, FILE_SHOWN = 200 };

/* How much of a message is a path within a value: no blank is in it but between quotation marks. */
static size_t measure_path(const char *message)
{
	bool quoted = false;
	size_t len = 0;

	for (; message[len] && (quoted || !strchr(" '", message[len])); len++) {
		if (!quoted && message[len] == ':')
			return message[len + 1] == ' ' ? len : 0;
		quoted = quoted != (message[len] == '"');
	}
	return 0;
}

void vt_mistakes_add(struct vt_mistakes *mistakes, const struct vt_place *place, const char *fmt,
		     ...)
{
	char message[MESSAGE], file[FILE_SHOWN];
	va_list args;

	if (mistakes->count++ >= VT_MANIFEST_MISTAKES)
		return;
	va_start(args, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, args); /* cut is fine */
	va_end(args);
	size_t len = measure_path(message);
	const char *at = vt_json_follow(place->span, message, len);
	const char *between = !*place->key ? "" : len == 0 ? ": " : message[0] == '[' ? "" : ".";

	vt_str_addf(mistakes->lines, "%s:%zu: %s%s",
		    vt_utf8_show_text(file, sizeof(file), mistakes->file, strlen(mistakes->file)),
		    vt_json_line(mistakes->text, at), place->key, between);
	vt_str_show(mistakes->lines, message, strlen(message));
	vt_str_add(mistakes->lines, "\n");
	if (mistakes->count == VT_MANIFEST_MISTAKES)
		vt_str_addf(mistakes->lines, "%s: there may be more mistakes after these\n", file);
}

const char *vt_mistakes_place(const struct vt_mistakes *mistakes, struct vt_arena *arena,
			      const struct vt_place *place, const char *path)
{
	char file[FILE_SHOWN];
	const char *at = vt_json_follow(place->span, path, strlen(path));

	return vt_arena_printf(
		arena, "%s:%zu: %s%s%s",
		vt_utf8_show_text(file, sizeof(file), mistakes->file, strlen(mistakes->file)),
		vt_json_line(mistakes->text, at), place->key, *place->key && *path ? "." : "",
		path);
}

int vt_mistakes_fail(const struct vt_mistakes *mistakes, struct vt_err *err)
{
	const char *lines = mistakes->lines->text;

	if (!vt_str_ok(mistakes->lines))
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	return vt_fail(err, VT_STEP_POLICY, EINVAL, "%.*s", (int)strcspn(lines, "\n"), lines);
}
