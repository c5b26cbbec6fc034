/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes as characters, and which of those a message must not hold as they are: they steer a terminal,
 * begin a line, or reorder what a person reads. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A character, or what stands where one should. */
struct vt_utf8 {
	uint32_t code;
	size_t   len; /* where !valid: of the maximal subpart, 1 at least */
	bool     valid;
};

/* What starts at bytes, of which there is one at least. */
struct vt_utf8 vt_utf8_next(const char *bytes, size_t len);

/* Whether a character is shown as an escape: controls, separators of lines, marks of direction, tags. */
bool vt_utf8_steers(uint32_t code);

enum { VT_UTF8_SHOWN = 16 }; /* room for four escaped bytes */

/* A character as JSON escapes it: \n, \u001b, in two halves beyond 16 bits. Returns its length. */
size_t vt_utf8_escape(char out[VT_UTF8_SHOWN], uint32_t code);

/* What vt_utf8_next() found at bytes as a message shows it: itself, or its escape. Returns its length. */
size_t vt_utf8_show(char out[VT_UTF8_SHOWN], const char *bytes, struct vt_utf8 next);
