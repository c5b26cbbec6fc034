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
 * Nor is a number with more digits in a row: Python refuses to read it, or takes the square of
 * that.
 */
enum { VT_JSON_SCAN_DIGITS = 4300 };

/*
 * Whether the bytes are one JSON value, by RFC 8259: UTF-8, with space around it or not. An
 * escaped half of a surrogate pair is no text, and so no JSON here.
 */
bool vt_json_is_valid(const char *bytes, size_t len);

/* A value's text, without the space around it. */
struct vt_json_span {
	const char *at, *end;
};

/* The text of a whole JSON text's value. */
struct vt_json_span vt_json_span(const char *bytes, size_t len);

/*
 * The next item of an array, or member of an object, of valid text: *rest is the text of the whole
 * at first, and what is left of it then. *ret_key is empty in an array, and has its quotation marks
 * in an object. False: there are no more, or it is nested deeper than VT_JSON_SCAN_DEPTH.
 */
bool vt_json_next(struct vt_json_span *rest, struct vt_json_span *ret_key,
		  struct vt_json_span *ret_value);

/*
 * Where a path leads from a value, "limits.wall_ms" or "[2].from" or "[\"odd key\"]", as far as it
 * leads: to a member's key, or an item. Keys with escapes in them are not found.
 */
const char *vt_json_follow(struct vt_json_span value, const char *path, size_t len);

/* The line of a place in a text, from 1. */
size_t vt_json_line(const char *text, const char *at);

/* Adds JSON text, which is valid, without the space between its parts: then it is one line. */
void vt_json_add_compact(struct vt_str *str, const char *text, size_t len);
