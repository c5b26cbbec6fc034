/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 as the Unicode standard has it (3.9): nothing overlong, no surrogates, nothing beyond
 * U+10FFFF. NUL is a character like any other. Who reads names what is not valid, or replaces it by
 * VT_UTF8_REPLACEMENT, one for each maximal subpart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* U+FFFD */
#define VT_UTF8_REPLACEMENT "\xef\xbf\xbd"

/* A character, or what stands where one should. */
struct vt_utf8 {
	uint32_t code;  /* where valid */
	size_t   len;   /* in bytes; where not valid: of the maximal subpart, 1 at least */
	bool     valid;
};

/* What starts at bytes, of which there is one at least. */
struct vt_utf8 vt_utf8_next(const char *bytes, size_t len);

/* Writes the character to out, and returns its length. code is none of the surrogates. */
size_t vt_utf8_put(char out[4], uint32_t code);
