/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing text. Failure is sticky: after an allocation failed, further additions do nothing, and
 * vt_str_ok() is asked once at the end. text is always NUL-terminated and never NULL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct vt_str {
	char  *text;
	size_t len;
	size_t cap;
	bool   failed;
};

void vt_str_init(struct vt_str *str);
void vt_str_done(struct vt_str *str);
/* Empties it, and keeps its memory; a failure before is forgotten. */
void vt_str_clear(struct vt_str *str);
/* Takes away the first bytes, of which there are so many. */
void vt_str_drop(struct vt_str *str, size_t len);
void vt_str_add(struct vt_str *str, const char *text);
/* bytes may be NULL where len is 0. */
void vt_str_addn(struct vt_str *str, const char *bytes, size_t len);
/*
 * Room behind the text for so many bytes, of which the caller says with vt_str_took() how many it
 * wrote. NULL: there is none, which is a failure as any other.
 */
char *vt_str_room(struct vt_str *str, size_t len);
static inline void vt_str_took(struct vt_str *str, size_t len)
{
	str->len += len;
	str->text[str->len] = '\0';
}
void vt_str_addf(struct vt_str *str, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Adds what came from elsewhere as a message can show it: control and bidirectional characters and
 * what is not UTF-8 as escapes (\n, \u001b, \xff), so that it can neither begin a line nor steer a
 * terminal.
 */
void vt_str_show(struct vt_str *str, const char *bytes, size_t len);
/*
 * Adds text in lines of 100 characters, all but the first indented; at is where the first one
 * starts. What text holds beside words and blanks is shown as above: no line but these is begun.
 */
void vt_str_wrap(struct vt_str *str, const char *text, size_t at, size_t indent);
static inline bool vt_str_ok(const struct vt_str *str) { return !str->failed; }
