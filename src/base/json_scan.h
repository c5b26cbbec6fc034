/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON that is looked at and passed on as text. jansson takes some twenty bytes of memory for each
 * of "[0,0,0]", refuses what it cannot hold (\u0000, integers beyond 64 bits), and writes 0.1 as
 * 0.10000000000000001. What a cell printed, or what somebody else will read, needs none of that:
 * here no memory is used, and the text stays as it was written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* What is nested deeper is not taken for JSON: readers in other languages stop at twice this. */
enum { VT_JSON_SCAN_DEPTH = 512 };

/*
 * Whether the bytes are one JSON value, by RFC 8259: UTF-8, with space around it or not. An
 * escaped half of a surrogate pair is no text, and so no JSON here.
 */
bool vt_json_is_valid(const char *bytes, size_t len);

/* Adds JSON text, which is valid, without the space between its parts: then it is one line. */
void vt_json_add_compact(struct vt_str *str, const char *text, size_t len);
