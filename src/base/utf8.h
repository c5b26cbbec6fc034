/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 as the Unicode standard has it (3.9): nothing overlong, no surrogates, nothing beyond
 * U+10FFFF. NUL is a character like any other. Who reads names what is not valid, or replaces it by
 * VT_UTF8_REPLACEMENT, one for each maximal subpart.
 *
 * And which characters a message must not hold as they are: they steer a terminal, begin a line, or
 * reorder what a person reads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* U+FFFD */
#define VT_UTF8_REPLACEMENT "\xef\xbf\xbd"

/* A character, or what stands where one should. */
struct vt_utf8 {
	uint32_t code;
	size_t   len; /* where !valid: of the maximal subpart, 1 at least */
	bool     valid;
	bool     cut; /* where !valid: more bytes could make it one */
};

/* What starts at bytes, of which there is one at least. */
struct vt_utf8 vt_utf8_next(const char *bytes, size_t len);

/*
 * How many of len bytes can be kept where there is room for max, so that no character is cut in
 * two.
 */
size_t vt_utf8_cut(const char *bytes, size_t len, size_t max);

/* Writes the character to out, and returns its length. code is none of the surrogates. */
size_t vt_utf8_put(char out[4], uint32_t code);

/*
 * Whether a character is shown as an escape: controls, separators of lines, marks of direction,
 * tags.
 */
bool vt_utf8_steers(uint32_t code);

enum { VT_UTF8_SHOWN = 16 }; /* room for four escaped bytes */

/* A character as JSON escapes it: \n, \u001b, in two halves beyond 16 bits. Returns its length. */
size_t vt_utf8_escape(char out[VT_UTF8_SHOWN], uint32_t code);

/*
 * What vt_utf8_next() found at bytes as a message shows it: itself, or its escape. Returns its
 * length.
 */
size_t vt_utf8_show(char out[VT_UTF8_SHOWN], const char *bytes, struct vt_utf8 next);

/* Whether the bytes are UTF-8. */
bool vt_utf8_is_valid(const char *bytes, size_t len);

/*
 * Writes bytes to buf as a message can show them: control and bidirectional characters and what is
 * not UTF-8 as escapes (\n, \u001b, \xff), so that no input can forge a line or steer a terminal.
 * What does not fit in size (16 at least) ends in "...". Returns buf.
 */
char *vt_utf8_show_text(char *buf, size_t size, const char *bytes, size_t len);
