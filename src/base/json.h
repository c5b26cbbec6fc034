/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading JSON that a person wrote, with errors that say where: the file, the line, the column.
 * Built on jansson, which stays out of every header that is installed. Duplicate keys, NUL in any
 * form and anything after the value are errors, and so is a text over VT_JSON_MAX_BYTES or nested
 * deeper than jansson's limit. Messages read "name:line:column: what is wrong".
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define VT_JSON_MAX_BYTES ((size_t)4 << 20)

/*
 * Reads the file at path; a folder or a device is none, nor is a pipe, where a cell could have put
 * one and keep the reader waiting. A pipe that the caller itself has open ("/dev/stdin",
 * "/dev/fd/3") is fine if its writers are done within ten seconds. The caller owns *ret_root:
 * json_decref().
 */
int vt_json_load_file(const char *path, json_t **ret_root, struct vt_err *err);
/* The same, and it waits for nothing: a pipe is no file either. */
int vt_json_load_plain(const char *path, json_t **ret_root, struct vt_err *err);

/*
 * The same two, without parsing it: they add the file's bytes to text, of which there may be one
 * too many.
 */
int vt_json_read_file(const char *path, struct vt_str *text, struct vt_err *err);
int vt_json_read_plain(const char *path, struct vt_str *text, struct vt_err *err);

/* Parses len bytes of text; name is what messages call it ("policy.json", "--set files.read"). */
int vt_json_load_text(const char *text, size_t len, const char *name, json_t **ret_root,
		      struct vt_err *err);

/*
 * Whether the text has at most so many values, an empty list or object counted as two: the memory
 * that parsing takes grows with them. It is judged by its marks alone, and need not be JSON.
 */
bool vt_json_is_within(const char *text, size_t len, size_t values);

/* A scope's own reference. */
static inline void vt_json_drop(json_t **root)
{
	json_decref(*root);
}

#define AUTO_JSON __attribute__((cleanup(vt_json_drop)))

/*
 * A JSON string of len bytes that may not be UTF-8: what is not valid becomes U+FFFD, as the
 * Unicode standard recommends (one per maximal subpart). NULL when out of memory.
 */
json_t *vt_json_text(const char *bytes, size_t len);

/* The same of a text that ends with a NUL; null where it is NULL. */
json_t *vt_json_string(const char *text);

/*
 * Appends an item to a list, and takes both. Where either is NULL, for want of memory, so is the
 * list.
 */
json_t *vt_json_append(json_t *list, json_t *item);

/* A count; null where it is negative, which is not known. */
static inline json_t *vt_json_count(int64_t count)
{
	return count < 0 ? json_null() : json_integer(count);
}
