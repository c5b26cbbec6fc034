/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_scan.h"

#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/utf8.h"

struct scan {
	const char *at, *end;
	bool wide; /* a string has bytes that are not ASCII */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(struct scan *s)
{
	while (s->at < s->end && is_space(*s->at))
		s->at++;
}

/* Takes one character, if it comes next. */
static bool take(struct scan *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool take_word(struct scan *s, const char *word)
{
	while (*word && take(s, *word))
		word++;
	return *word == '\0';
}

static bool take_digits(struct scan *s)
{
	const char *start = s->at;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	return s->at > start && s->at - start <= VT_JSON_SCAN_DIGITS;
}

static bool take_number(struct scan *s)
{
	take(s, '-');
	if (!take(s, '0') && !take_digits(s))
		return false;
	if (take(s, '.') && !take_digits(s))
		return false;
	if (!take(s, 'e') && !take(s, 'E'))
		return true;
	if (!take(s, '+'))
		take(s, '-');
	return take_digits(s);
}

/* The four digits of a \u escape. -1: they are not there. */
static int take_unit(struct scan *s)
{
	int unit = 0;

	if (s->end - s->at < 4)
		return -1;
	for (int i = 0; i < 4; i++, s->at++) {
		char c = *s->at, low = (char)(c | 0x20);

		if (c >= '0' && c <= '9')
			unit = unit << 4 | (c - '0');
		else if (low >= 'a' && low <= 'f')
			unit = unit << 4 | (low - 'a' + 10);
		else
			return -1;
	}
	return unit;
}

static bool take_escape(struct scan *s)
{
	if (s->at == s->end)
		return false;
	char c = *s->at++;

	if (c != 'u')
		return c != '\0' && strchr("\"\\/bfnrt", c);
	int unit = take_unit(s);

	if (unit < 0xd800 || unit > 0xdfff)
		return unit >= 0;
	if (unit > 0xdbff || !take_word(s, "\\u"))
		return false;
	unit = take_unit(s);
	return unit >= 0xdc00 && unit <= 0xdfff;
}

/* Whether one of 64 bytes means something in a string. Their bits are added to *seen. */
static bool is_marked(const char *bytes, vt_bytes16 *seen)
{
	vt_bytes16 v[4], found = { 0 };

	memcpy(v, bytes, sizeof(v));
	for (int i = 0; i < 4; i++) {
		found |= (vt_bytes16)((v[i] < 0x20) | (v[i] == '"') | (v[i] == '\\'));
		*seen |= v[i];
	}
	return vt_bytes16_any(found);
}

/* The same of eight: a byte of w is below n (up to 128) where (w - n) & ~w has its highest bit; a
 * borrow from the byte beside it can only make that true too often. */
static bool is_marked8(const char *bytes, uint64_t *seen)
{
	static const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t w;

	memcpy(&w, bytes, sizeof(w));
	uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\';
	uint64_t found = ((w - ones * 0x20) & ~w) | ((quote - ones) & ~quote) |
			 ((slash - ones) & ~slash);

	*seen |= w & ones * 0x80;
	return found & ones * 0x80;
}

/* Moves over what stands for itself in a string, many bytes at a time: most of what is large is
 * that. */
static void skip_plain(struct scan *s)
{
	vt_bytes16 seen = { 0 };
	uint64_t seen8 = 0;

	while (s->end - s->at >= 64 && !is_marked(s->at, &seen))
		s->at += 64;
	while (s->end - s->at >= 8 && !is_marked8(s->at, &seen8))
		s->at += 8;
	s->wide |= seen8 || vt_bytes16_any(seen & 0x80);
}

static bool take_string(struct scan *s)
{
	if (!take(s, '"'))
		return false;
	for (skip_plain(s); s->at < s->end; skip_plain(s)) {
		unsigned char c = (unsigned char)*s->at++;

		s->wide |= c >= 0x80;
		if (c == '"')
			return true;
		if (c < 0x20 || (c == '\\' && !take_escape(s)))
			return false;
	}
	return false;
}

static bool take_value(struct scan *s, unsigned depth);

/* What stands between brackets, the first of which is taken already. */
static bool take_items(struct scan *s, unsigned depth, bool named, char close)
{
	skip_space(s);
	if (take(s, close))
		return true;
	do {
		skip_space(s);
		if (named && !take_string(s))
			return false;
		skip_space(s);
		if (named && !take(s, ':'))
			return false;
		if (!take_value(s, depth + 1))
			return false;
	} while (take(s, ','));
	return take(s, close);
}

static bool take_value(struct scan *s, unsigned depth)
{
	bool taken = false;

	skip_space(s);
	if (depth > VT_JSON_SCAN_DEPTH || s->at == s->end)
		return false;
	switch (*s->at) {
	case '{':
	case '[':
		taken = *s->at++ == '{' ? take_items(s, depth, true, '}')
					: take_items(s, depth, false, ']');
		break;
	case '"':
		taken = take_string(s);
		break;
	case 't':
		taken = take_word(s, "true");
		break;
	case 'f':
		taken = take_word(s, "false");
		break;
	case 'n':
		taken = take_word(s, "null");
		break;
	default:
		taken = take_number(s);
		break;
	}
	skip_space(s);
	return taken;
}

bool vt_json_is_valid(const char *bytes, size_t len)
{
	if (len == 0)
		return false;
	struct scan s = { .at = bytes, .end = bytes + len };

	return take_value(&s, 1) && s.at == s.end && (!s.wide || vt_utf8_is_valid(bytes, len));
}

/* ---- places --------------------------------------------------------------------------------- */

struct vt_json_span vt_json_span(const char *bytes, size_t len)
{
	struct vt_json_span span = { bytes, bytes + len };

	while (span.at < span.end && is_space(*span.at))
		span.at++;
	while (span.end > span.at && is_space(span.end[-1]))
		span.end--;
	return span;
}

bool vt_json_next(struct vt_json_span *rest, struct vt_json_span *ret_key,
		  struct vt_json_span *ret_value)
{
	struct scan s = { .at = rest->at, .end = rest->end };
	struct vt_json_span key = { s.at, s.at };
	bool first = s.at < s.end && (*s.at == '{' || *s.at == '[');
	bool named = s.end > s.at && s.end[-1] == '}';

	if (!first && (s.at == s.end || *s.at != ','))
		return false;
	s.at++;
	skip_space(&s);
	if (named) {
		key.at = s.at;
		if (!take_string(&s))
			return false;
		key.end = s.at;
		skip_space(&s);
		if (!take(&s, ':'))
			return false;
		skip_space(&s);
	}
	const char *start = s.at;

	/* At the end there is the bracket, which begins no value. */
	if (!take_value(&s, 1))
		return false;
	*ret_key = key;
	*ret_value = vt_json_span(start, (size_t)(s.at - start));
	rest->at = s.at;
	return true;
}

/* Takes one step of a path: an index, or a key. */
static bool take_step(const char **path, const char *end, struct vt_json_span *ret_key,
		      size_t *ret_index)
{
	const char *at = *path, *close;

	*ret_key = (struct vt_json_span){ 0 };
	*ret_index = 0;
	if (at < end && *at == '[' && end - at > 1 && at[1] != '"') {
		for (at++; at < end && *at >= '0' && *at <= '9' && *ret_index < 1000000; at++)
			*ret_index = *ret_index * 10 + (size_t)(*at - '0');
		*path = at + 1;
		return at < end && *at == ']';
	}
	if (at < end && *at == '[') {
		close = memmem(at, (size_t)(end - at), "\"]", 2);
		*ret_key = (struct vt_json_span){ at + 2, close };
		*path = close ? close + 2 : end;
		return close && close >= at + 2;
	}
	at += at < end && *at == '.';
	for (close = at; close < end && *close != '.' && *close != '[';)
		close++;
	*ret_key = (struct vt_json_span){ at, close };
	*path = close;
	return close > at;
}

static bool is_key(struct vt_json_span quoted, struct vt_json_span wanted)
{
	size_t len = (size_t)(wanted.end - wanted.at);

	return (size_t)(quoted.end - quoted.at) == len + 2 &&
	       memcmp(quoted.at + 1, wanted.at, len) == 0;
}

const char *vt_json_follow(struct vt_json_span value, const char *path, size_t len)
{
	const char *found = value.at, *end = path + len;
	struct vt_json_span wanted, key, item;
	size_t index;

	while (path < end && take_step(&path, end, &wanted, &index)) {
		struct vt_json_span rest = value;
		bool is_there = false;

		while (!is_there && vt_json_next(&rest, &key, &item))
			is_there = wanted.at ? key.end > key.at && is_key(key, wanted)
					     : key.end == key.at && index-- == 0;
		if (!is_there)
			break;
		found = wanted.at ? key.at : item.at;
		value = item;
	}
	return found;
}

size_t vt_json_line(const char *text, const char *at)
{
	size_t line = 1;

	for (; text < at; text++)
		line += *text == '\n';
	return line;
}

void vt_json_add_compact(struct vt_str *str, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *start = text;

		if (is_space(*text)) {
			text++;
			continue;
		}
		if (*text == '"') {
			for (text++; text < end && *text != '"'; text++)
				text += *text == '\\' && text + 1 < end;
			text += text < end;
		} else {
			while (text < end && *text != '"' && !is_space(*text))
				text++;
		}
		vt_str_addn(str, start, (size_t)(text - start));
	}
}
