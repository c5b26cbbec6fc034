/* SPDX-License-Identifier: Apache-2.0 */
#include "base/head.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/decimal.h"
#include "base/utf8.h"

#define EACH UINT64_C(0x0101010101010101)

/* Where the scanner is. */
struct scan {
	char *text, *at, *end;
	struct vt_err *err;
};

static int fail_at(const struct scan *scan, const char *at, const char *what)
{
	return vt_fail(scan->err, VT_STEP_WIRE, EBADMSG, "the head of a message, byte %zu: %s",
		       (size_t)(at - scan->text), what);
}

static int fail(const struct scan *scan, const char *what)
{
	return fail_at(scan, scan->at, scan->at == scan->end ? "the text ends too early" : what);
}

static void skip_space(struct scan *scan)
{
	while (scan->at < scan->end && (unsigned char)*scan->at <= ' ' &&
	       (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
		scan->at++;
}

/* Whether the next byte is that one; it is skipped then. */
static bool skip(struct scan *scan, char byte)
{
	if (scan->at == scan->end || *scan->at != byte)
		return false;
	scan->at++;
	return true;
}

static bool is_digit(const struct scan *scan)
{
	return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

/* Four hexadecimal digits, or negative. */
static int32_t scan_hex(struct scan *scan)
{
	int32_t code = 0;

	for (int i = 0; i < 4; i++, scan->at++) {
		if (scan->at == scan->end)
			return -1;
		char byte = *scan->at, lower = (char)(byte | 0x20);

		if (byte >= '0' && byte <= '9')
			code = code << 4 | (byte - '0');
		else if (lower >= 'a' && lower <= 'f')
			code = code << 4 | (lower - 'a' + 10);
		else
			return -1;
	}
	return code;
}

/* What follows a "\u", of which the first stands at `from`. */
static int scan_code(struct scan *scan, const char *from, uint32_t *ret_code)
{
	int32_t code = scan_hex(scan);

	if (code < 0)
		return fail(scan, "\\u is not followed by four hexadecimal digits");
	if (code >= 0xd800 && code <= 0xdbff) {
		int32_t low = skip(scan, '\\') && skip(scan, 'u') ? scan_hex(scan) : -1;

		if (low < 0xdc00 || low > 0xdfff)
			return fail_at(scan, from, "half of a surrogate pair");
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	} else if (code >= 0xdc00 && code <= 0xdfff) {
		return fail_at(scan, from, "half of a surrogate pair");
	}
	if (code == 0)
		return fail_at(scan, from, "the escape \\u0000 is not allowed");
	*ret_code = (uint32_t)code;
	return 0;
}

/* An escape, which is longer than what it stands for: that is written to *out, behind what was
 * read. */
static int scan_escape(struct scan *scan, char **out)
{
	static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *from = scan->at++;
	uint32_t code = 0;

	if (skip(scan, 'u')) {
		int r = scan_code(scan, from, &code);

		if (r < 0)
			return r;
		*out += vt_utf8_put(*out, code);
		return 0;
	}
	const char *found = scan->at < scan->end && *scan->at ? strchr(escapes, *scan->at) : NULL;

	if (!found)
		return fail(scan, "no such escape");
	*(*out)++ = meanings[found - escapes];
	scan->at++;
	return 0;
}

static int scan_wide(struct scan *scan, char **out)
{
	struct vt_utf8 next = vt_utf8_next(scan->at, (size_t)(scan->end - scan->at));

	if (!next.valid)
		return fail(scan, "this is not UTF-8");
	memmove(*out, scan->at, next.len);
	*out += next.len;
	scan->at += next.len;
	return 0;
}

/* Bytes that stand for themselves; most texts have no others. */
static bool is_plain(char byte)
{
	return (unsigned char)byte >= 0x20 && (unsigned char)byte < 0x80 && byte != '"' &&
	       byte != '\\';
}

/* The high bits of those of eight bytes that are below `less`, which is at most 0x80. What is above
 * the lowest of them may be wrong. */
static uint64_t below(uint64_t bytes, uint64_t less)
{
	return (bytes - EACH * less) & ~bytes & EACH << 7;
}

/* How many bytes there are before the first that is not plain: eight at a time, as long as there
 * are so many. */
static size_t count_plain(const char *text, size_t len)
{
	size_t at = 0;

	for (uint64_t bytes; len - at >= sizeof(bytes); at += sizeof(bytes)) {
		memcpy(&bytes, text + at, sizeof(bytes));
		bytes = le64toh(bytes);
		uint64_t odd = (bytes & EACH << 7) | below(bytes, ' ') |
			       below(bytes ^ EACH * '"', 1) | below(bytes ^ EACH * '\\', 1);

		if (odd)
			return at + (size_t)__builtin_ctzll(odd) / 8;
	}
	while (at < len && is_plain(text[at]))
		at++;
	return at;
}

/* A text, in place: it never grows, and its NUL takes the place of the closing quote at the latest.
 */
static int scan_text(struct scan *scan, const char **ret_text, size_t *ret_len, const char *missing)
{
	if (!skip(scan, '"'))
		return fail(scan, missing);
	char *from = scan->at, *out = from + count_plain(from, (size_t)(scan->end - from));

	scan->at = out;

	while (!skip(scan, '"')) {
		int r = 0;

		if (scan->at == scan->end || (unsigned char)*scan->at < 0x20)
			return fail(scan, "a control character in a text");
		if (*scan->at == '\\')
			r = scan_escape(scan, &out);
		else if ((unsigned char)*scan->at >= 0x80)
			r = scan_wide(scan, &out);
		else
			*out++ = *scan->at++;
		if (r < 0)
			return r;
	}
	*out = '\0';
	*ret_text = from;
	*ret_len = (size_t)(out - from);
	return 0;
}

static void skip_digits(struct scan *scan)
{
	char *at = scan->at;

	while (at < scan->end && *at >= '0' && *at <= '9')
		at++;
	scan->at = at;
}

/* Whether len digits are within int64_t, with that sign; *ret_value then. */
static bool read_whole(const char *digits, size_t len, bool minus, int64_t *ret_value)
{
	int64_t value = 0;

	for (size_t i = 0; i < len; i++) {
		int digit = digits[i] - '0';

		/* Downwards, since there is one more of them below zero. */
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_sub_overflow(value, digit, &value))
			return false;
	}
	if (!minus && value == INT64_MIN)
		return false;
	*ret_value = minus ? value : -value;
	return true;
}

static int scan_number(struct scan *scan, struct vt_head_member *member)
{
	const char *from = scan->at;
	bool minus = skip(scan, '-'), whole = true;
	const char *digits = scan->at;

	if (!is_digit(scan))
		return fail(scan, "a digit is missing");
	if (!skip(scan, '0'))
		skip_digits(scan);
	size_t len = (size_t)(scan->at - digits);

	if (skip(scan, '.')) {
		whole = false;
		if (!is_digit(scan))
			return fail(scan, "a digit is missing");
		skip_digits(scan);
	}
	if (skip(scan, 'e') || skip(scan, 'E')) {
		whole = false;
		if (!skip(scan, '-'))
			(void)skip(scan, '+'); /* it may stand there */
		if (!is_digit(scan))
			return fail(scan, "a digit is missing");
		skip_digits(scan);
	}
	if (whole && read_whole(digits, len, minus, &member->whole)) {
		member->type = VT_HEAD_INT;
		return 0;
	}
	member->type = VT_HEAD_REAL;
	member->text = from;
	member->len = (size_t)(scan->at - from);
	return 0;
}

static bool skip_word(struct scan *scan, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0)
		return false;
	scan->at += len;
	return true;
}

static int scan_value(struct scan *scan, struct vt_head_member *member)
{
	char byte = scan->at < scan->end ? *scan->at : '\0';

	if (byte == '"') {
		member->type = VT_HEAD_TEXT;
		return scan_text(scan, &member->text, &member->len, NULL);
	}
	if (byte == '-' || is_digit(scan))
		return scan_number(scan, member);
	if (byte == '{' || byte == '[')
		return fail(scan, "nothing is nested in a head");
	if (skip_word(scan, "null")) {
		member->type = VT_HEAD_NULL;
		return 0;
	}
	member->type = VT_HEAD_FLAG;
	member->flag = skip_word(scan, "true");
	if (member->flag || skip_word(scan, "false"))
		return 0;
	return fail(scan, "a value is missing");
}

static uint64_t bit_of(const char *name, size_t len)
{
	return UINT64_C(1) << ((unsigned char)*name + 5 * len) % 64;
}

const struct vt_head_member *vt_head_findn(const struct vt_head *head, const char *name, size_t len)
{
	const struct vt_head_member *end = head->members + head->count;

	if (!(head->seen & bit_of(name, len)))
		return NULL;
	for (const struct vt_head_member *member = head->members; member < end; member++)
		if (member->name_len == len && *member->name == *name &&
		    memcmp(member->name, name, len) == 0)
			return member;
	return NULL;
}

static int scan_member(struct scan *scan, struct vt_head *head)
{
	struct vt_head_member *member = &head->members[head->count];
	const char *from = scan->at;

	if (head->count == VT_HEAD_MEMBERS)
		return fail(scan, "too many members");
	int r = scan_text(scan, &member->name, &member->name_len, "a name is missing");

	if (r < 0)
		return r;
	if (vt_head_findn(head, member->name, member->name_len))
		return fail_at(scan, from, "this name is there twice");
	skip_space(scan);
	if (!skip(scan, ':'))
		return fail(scan, "a ':' is missing");
	skip_space(scan);
	r = scan_value(scan, member);
	if (r < 0)
		return r;
	head->count++;
	head->seen |= bit_of(member->name, member->name_len);
	skip_space(scan);
	return 0;
}

static int scan_object(struct scan *scan, struct vt_head *head)
{
	skip_space(scan);
	if (!skip(scan, '{'))
		return fail(scan, "a '{' is missing");
	skip_space(scan);
	if (!skip(scan, '}')) {
		do {
			skip_space(scan);
			int r = scan_member(scan, head);

			if (r < 0)
				return r;
		} while (skip(scan, ','));
		if (!skip(scan, '}'))
			return fail(scan, "a ',' or a '}' is missing");
	}
	skip_space(scan);
	if (scan->at < scan->end)
		return fail(scan, "there is more text after the end of the object");
	return 0;
}

int vt_head_parse(char *text, size_t len, struct vt_head *ret_head, struct vt_err *err)
{
	struct scan scan = { .text = text, .at = text, .end = text + len, .err = err };

	ret_head->count = 0;
	ret_head->seen = 0;
	int r = scan_object(&scan, ret_head);

	if (r < 0)
		ret_head->count = 0;
	return r;
}

/* Where in the table the member is, looked for from `from` on; count: nowhere. */
static size_t find_field(const struct vt_head_member *member, const struct vt_head_field *fields,
			 size_t count, size_t from)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = from + i < count ? from + i : from + i - count;

		if (*fields[at].name == *member->name && strcmp(fields[at].name, member->name) == 0)
			return at;
	}
	return count;
}

int vt_head_check(const struct vt_head *head, const struct vt_head_field *fields, size_t count,
		  struct vt_err *err)
{
	static const char *const kinds[] = {
		[VT_HEAD_FLAG] = "true or false",
		[VT_HEAD_INT] = "an integer that it can be",
		[VT_HEAD_TEXT] = "a text",
	};
	size_t from = 0;

	for (size_t i = 0; i < head->count; i++) {
		const struct vt_head_member *member = &head->members[i];
		size_t at = find_field(member, fields, count, from);

		if (at == count || member->type == VT_HEAD_NULL)
			continue;
		if (member->type != fields[at].type ||
		    (member->type == VT_HEAD_INT &&
		     (member->whole < fields[at].least || member->whole > fields[at].most)))
			return vt_fail(err, VT_STEP_WIRE, EBADMSG,
				       "the head of a message: '%s' is not %s", fields[at].name,
				       kinds[fields[at].type]);
		from = at + 1 < count ? at + 1 : 0;
	}
	return 0;
}

/* A character that does not stand for itself in JSON, or what is not one. */
static void add_escape(struct vt_str *str, struct vt_utf8 next)
{
	static const char letters[] = "btn.fr"; /* from U+0008 on */

	if (!next.valid || next.code == 0)
		vt_str_add(str, VT_UTF8_REPLACEMENT);
	else if (next.code == '"' || next.code == '\\')
		vt_str_addf(str, "\\%c", (int)next.code);
	else if (next.code >= '\b' && next.code <= '\r' && next.code != '\v')
		vt_str_addf(str, "\\%c", letters[next.code - '\b']);
	else
		vt_str_addf(str, "\\u%04x", (unsigned)next.code);
}

/* A text with something in it that does not stand for itself. */
static void add_escaped(struct vt_str *str, const char *text, size_t len)
{
	size_t kept = 0; /* what comes before is in str already */

	vt_str_addn(str, "\"", 1);
	for (size_t at = 0; at < len;) {
		if (is_plain(text[at])) {
			at++;
			continue;
		}
		struct vt_utf8 next = vt_utf8_next(text + at, len - at);

		if (!next.valid || next.code < 0x80) {
			vt_str_addn(str, text + kept, at - kept);
			add_escape(str, next);
			kept = at + next.len;
		}
		at += next.len;
	}
	vt_str_addn(str, text + kept, len - kept);
	vt_str_addn(str, "\"", 1);
}

static void add_quoted(struct vt_str *str, const char *text, size_t len)
{
	char *at = count_plain(text, len) == len ? vt_str_room(str, len + 2) : NULL;

	if (!at) { /* without memory nothing is added any more */
		add_escaped(str, text, len);
		return;
	}
	at[0] = '"';
	memcpy(at + 1, text, len);
	at[len + 1] = '"';
	vt_str_took(str, len + 2);
}

/* No value ends in a brace: where there is one, it is the object's own, and this is the first
 * member. */
static void add_name(struct vt_str *str, const char *name)
{
	if (str->len > 0 && str->text[str->len - 1] != '{')
		vt_str_addn(str, ",", 1);
	add_quoted(str, name, strlen(name));
	vt_str_addn(str, ":", 1);
}

void vt_head_begin(struct vt_str *str)
{
	vt_str_clear(str);
	vt_str_addn(str, "{", 1);
}

void vt_head_add_text(struct vt_str *str, const char *name, const char *text, size_t len)
{
	add_name(str, name);
	if (text)
		add_quoted(str, text, len);
	else
		vt_str_add(str, "null");
}

void vt_head_add_int(struct vt_str *str, const char *name, int64_t value)
{
	size_t minus = value < 0;

	add_name(str, name);
	char *at = vt_str_room(str, minus + VT_DECIMAL);

	if (!at)
		return;
	*at = '-';
	vt_str_took(str,
		    minus + vt_decimal(at + minus, minus ? -(uint64_t)value : (uint64_t)value));
}

void vt_head_add_flag(struct vt_str *str, const char *name, bool value)
{
	add_name(str, name);
	vt_str_add(str, value ? "true" : "false");
}

int vt_head_end(struct vt_str *str, struct vt_err *err)
{
	vt_str_addn(str, "}", 1);
	if (!vt_str_ok(str))
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "no memory for a head");
	return 0;
}
