/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/report.h"

#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

/* The member of an object; at is NULL: there is none. A name that comes twice is its last. */
static struct vt_json_span find(struct vt_json_span object, const char *name)
{
	struct vt_json_span key, value, found = { 0 };
	size_t len = strlen(name);

	if (object.at == object.end || *object.at != '{')
		return found;
	while (vt_json_next(&object, &key, &value))
		if ((size_t)(key.end - key.at) == len + 2 && memcmp(key.at + 1, name, len) == 0)
			found = value;
	return found;
}

static struct vt_json_span find_in(const char *text, size_t len, const char *name)
{
	if (!len || !vt_json_is_valid(text, len))
		return (struct vt_json_span){ 0 };
	return find(vt_json_span(text, len), name);
}

struct vt_json_span vt_report_value(const char *text, size_t len, const struct vt_verdict *verdict)
{
	return verdict->status == VT_STATUS_OK ? find_in(text, len, "value")
					       : (struct vt_json_span){ 0 };
}

/* A member that is text, cut. NULL: it is none. */
static json_t *text_of(struct vt_json_span error, const char *name, size_t most)
{
	struct vt_json_span value = find(error, name);

	if (!value.at)
		return NULL;
	AUTO_JSON json_t *text = json_loadb(value.at, (size_t)(value.end - value.at),
					    JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	if (!json_is_string(text))
		return NULL;
	const char *bytes = json_string_value(text);

	return vt_json_text(bytes, vt_utf8_cut(bytes, json_string_length(text), most));
}

json_t *vt_report_error(const char *text, size_t len, const struct vt_verdict *verdict)
{
	if (verdict->status != VT_STATUS_ERROR || strcmp(verdict->type, "ExitCode") != 0)
		return NULL;
	struct vt_json_span error = find_in(text, len, "error");

	if (!error.at)
		return NULL;
	AUTO_JSON json_t *type = text_of(error, "type", VT_REPORT_TYPE);
	AUTO_JSON json_t *message = text_of(error, "message", VT_REPORT_TEXT);
	AUTO_JSON json_t *traceback = text_of(error, "traceback", VT_REPORT_TEXT);

	return type && message && traceback ? json_pack("{sOsOsO}", "type", type, "message",
							message, "traceback", traceback)
					    : NULL;
}
