/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bulk.h"
#include "base/utf8.h"

/* What text points to while nothing was added. It is never written: cap is 0. */
static char empty[1];

void vt_str_init(struct vt_str *str)
{
	*str = (struct vt_str){ .text = empty };
}

void vt_str_done(struct vt_str *str)
{
	if (str->cap)
		free(str->text);
	vt_str_init(str);
}

void vt_str_clear(struct vt_str *str)
{
	str->len = 0;
	str->failed = false;
	if (str->cap)
		str->text[0] = '\0';
}

void vt_str_drop(struct vt_str *str, size_t len)
{
	if (len == 0)
		return;
	str->len -= len;
	memmove(str->text, str->text + len, str->len + 1); /* with its NUL */
}

static bool reserve(struct vt_str *str, size_t more)
{
	if (str->failed || more >= SIZE_MAX / 4 - str->len) {
		str->failed = true;
		return false;
	}
	size_t need = str->len + more + 1;

	if (need <= str->cap)
		return true;
	size_t cap = need < 128 ? 128 : need * 2;
	char *text = vt_bulk_resize(str->cap ? str->text : NULL, cap);

	if (!text) {
		str->failed = true;
		return false;
	}
	str->text = text;
	str->cap = cap;
	return true;
}

char *vt_str_room(struct vt_str *str, size_t len)
{
	return reserve(str, len) ? str->text + str->len : NULL;
}

void vt_str_addn(struct vt_str *str, const char *bytes, size_t len)
{
	char *at = vt_str_room(str, len);

	if (!at)
		return;
	if (len) /* bytes may be NULL else */
		memcpy(at, bytes, len);
	vt_str_took(str, len);
}

void vt_str_add(struct vt_str *str, const char *text)
{
	vt_str_addn(str, text, strlen(text));
}

void vt_str_addf(struct vt_str *str, const char *fmt, ...)
{
	va_list args, again;

	va_start(args, fmt);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, fmt, args);

	if (len < 0)
		str->failed = true;
	else if (reserve(str, (size_t)len))
		str->len += (size_t)vsnprintf(str->text + str->len, (size_t)len + 1, fmt, again);
	va_end(again);
	va_end(args);
}

void vt_str_show(struct vt_str *str, const char *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		struct vt_utf8 next = vt_utf8_next(bytes + at, len - at);
		char one[VT_UTF8_SHOWN];

		vt_str_addn(str, one, vt_utf8_show(one, bytes + at, next));
		at += next.len;
	}
}

enum { LINE_WIDTH = 100 };

static void wrap(struct vt_str *str, const char *text, size_t at, size_t indent)
{
	for (bool first = true; *text != '\0'; first = false) {
		size_t len = strcspn(text, " ");

		if (!first && at + 1 + len > LINE_WIDTH) {
			vt_str_addf(str, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			vt_str_add(str, " ");
			at++;
		}
		vt_str_addn(str, text, len);
		at += len;
		text += len + strspn(text + len, " ");
	}
	vt_str_add(str, "\n");
}

void vt_str_wrap(struct vt_str *str, const char *text, size_t at, size_t indent)
{
	struct vt_str shown;

	vt_str_init(&shown);
	vt_str_show(&shown, text, strlen(text));
	wrap(str, shown.text, at, indent);
	str->failed = str->failed || shown.failed;
	vt_str_done(&shown);
}
