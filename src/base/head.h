/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of frames (base/frame.h): flat JSON objects, whose members are texts, numbers, flags and
 * null, and nothing nested. They are read and written on the way of every call, so the reader is a
 * scanner of its own that works in place and allocates nothing. It runs in the client and in the
 * supervisor, and trusts neither: what is not JSON to the letter is refused, and so are a name that
 * comes twice, a NUL in any form, text that is not UTF-8, and more than VT_HEAD_MEMBERS members. No
 * locale has a say in it, in either direction. Errors have VT_STEP_WIRE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

/* The most members of one head. */
#define VT_HEAD_MEMBERS 24

enum vt_head_type {
	VT_HEAD_NULL,
	VT_HEAD_FLAG, /* true, false */
	VT_HEAD_INT,  /* digits alone, and within int64_t */
	VT_HEAD_REAL, /* every other number */
	VT_HEAD_TEXT,
};

/* A name and its value. */
struct vt_head_member {
	const char       *name; /* NUL-terminated, without escapes */
	size_t            name_len;
	enum vt_head_type type;
	union {
		bool    flag;
		int64_t whole;
		struct {
			const char *text; /* TEXT: NUL-terminated, without escapes; REAL: as it
					     was written */
			size_t      len;
		};
	};
};

/* What was read, in its order. It points into the text, and owns nothing. */
struct vt_head {
	size_t                count;
	uint64_t              seen; /* one bit for each first letter and length of a name */
	struct vt_head_member members[VT_HEAD_MEMBERS];
};

/*
 * Reads len bytes, which need no NUL behind them. They are changed, also where it fails, and have
 * to stay as long as *ret_head is used. Where it fails, *ret_head has no members: -EBADMSG, and the
 * message says what is wrong at which byte, counted from 0.
 */
int vt_head_parse(char *text, size_t len, struct vt_head *ret_head, struct vt_err *err);

/* The member whose name is those bytes; or NULL. */
const struct vt_head_member *vt_head_findn(const struct vt_head *head, const char *name,
					   size_t len);
/* The member of that name, or NULL. */
static inline const struct vt_head_member *vt_head_find(const struct vt_head *head,
							const char *name)
{
	return vt_head_findn(head, name, strlen(name));
}

/*
 * The value of a member. All that is not such a value is as good as none: NULL, or the fallback. A
 * number with a point or an exponent is no integer, even if it is whole, nor is one beyond int64_t.
 * A text is NUL-terminated and has no other NUL in it; ret_len may be NULL. For whom a wrong value
 * must not pass for none: vt_head_check().
 */
static inline const char *vt_head_text(const struct vt_head *head, const char *name,
				       size_t *ret_len)
{
	const struct vt_head_member *member = vt_head_find(head, name);

	if (!member || member->type != VT_HEAD_TEXT)
		return NULL;
	if (ret_len)
		*ret_len = member->len;
	return member->text;
}

static inline int64_t vt_head_int(const struct vt_head *head, const char *name, int64_t fallback)
{
	const struct vt_head_member *member = vt_head_find(head, name);

	return member && member->type == VT_HEAD_INT ? member->whole : fallback;
}

static inline bool vt_head_flag(const struct vt_head *head, const char *name, bool fallback)
{
	const struct vt_head_member *member = vt_head_find(head, name);

	return member && member->type == VT_HEAD_FLAG ? member->flag : fallback;
}

/* What a member of that name has to be, where it is there and not null. */
struct vt_head_field {
	const char       *name;
	enum vt_head_type type;
	int64_t           least, most; /* of an INT */
};

/*
 * Whether each member that the table knows is as the table says; -EBADMSG, and the message names
 * it. Members that it does not know are passed over. A head that is written in the table's order is
 * the quickest to check.
 */
int vt_head_check(const struct vt_head *head, const struct vt_head_field *fields, size_t count,
		  struct vt_err *err);

/*
 * Writing: begin, add, add, end. The members and their names are the caller's to choose: that they
 * are no more than VT_HEAD_MEMBERS, and no two the same, is not looked at.
 */

/* Starts a head in str, whatever was there before; its memory is used again. */
void vt_head_begin(struct vt_str *str);
/*
 * A text of len bytes, escaped as it has to be. A NUL, which no reader takes, and what is not UTF-8
 * become U+FFFD (as vt_json_text() does it). A text that is NULL is written as null.
 */
void vt_head_add_text(struct vt_str *str, const char *name, const char *text, size_t len);
/* The same of a text that ends with a NUL. */
static inline void vt_head_add(struct vt_str *str, const char *name, const char *text)
{
	vt_head_add_text(str, name, text, strlen(text));
}
void vt_head_add_int(struct vt_str *str, const char *name, int64_t value);
void vt_head_add_flag(struct vt_str *str, const char *name, bool value);
/* Ends it. -ENOMEM where anything since vt_head_begin() found no memory. */
int vt_head_end(struct vt_str *str, struct vt_err *err);
