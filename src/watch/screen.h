/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cell prints, made safe for a terminal: control characters other than newline, tab and
 * carriage return become visible ("^[", "^?"), and so do bytes that are not UTF-8 ("\x9b"), C1
 * controls in UTF-8 and bidirectional overrides ("\u009b", "\u202e"); text in any language passes.
 * A state machine over bytes, since output comes in pieces: at the end of a piece a sequence may be
 * half there.
 */
#pragma once

#include <stddef.h>

#include "base/str.h"

struct vt_screen {
	char   pending[4]; /* a UTF-8 sequence that is not complete yet */
	size_t pending_len;
};

/* Appends the safe form of bytes to out. A zeroed screen is a new one. */
void vt_screen_add(struct vt_screen *screen, const char *bytes, size_t len, struct vt_str *out);
/* The stream has ended: what is pending was not valid. */
void vt_screen_end(struct vt_screen *screen, struct vt_str *out);
