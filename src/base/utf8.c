/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

/* Well-formed sequences by lead byte: how long, and the bounds of the second byte (Unicode 3.9). */
static const struct {
	unsigned char first, last, len, low, high;
} leads[] = {
	{ 0x00, 0x7f, 1, 0, 0 },       { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf },
	{ 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
	{ 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
};

struct vt_utf8 vt_utf8_next(const char *bytes, size_t len)
{
	const unsigned char *at = (const unsigned char *)bytes;
	size_t row = 0, rows = sizeof(leads) / sizeof(leads[0]);

	while (row < rows && (at[0] < leads[row].first || at[0] > leads[row].last))
		row++;
	if (row == rows)
		return (struct vt_utf8){ .len = 1 };
	size_t want = leads[row].len;
	uint32_t code = want == 1 ? at[0] : at[0] & (0x7fu >> want);

	for (size_t i = 1; i < want; i++) {
		unsigned char low = i == 1 ? leads[row].low : 0x80;
		unsigned char high = i == 1 ? leads[row].high : 0xbf;

		if (i == len || at[i] < low || at[i] > high)
			return (struct vt_utf8){ .len = i, .cut = i == len };
		code = code << 6 | (at[i] & 0x3f);
	}
	return (struct vt_utf8){ .code = code, .len = want, .valid = true };
}

size_t vt_utf8_cut(const char *bytes, size_t len, size_t max)
{
	size_t kept = max;

	if (len <= max)
		return len;
	/* Back to where a character begins; where that is not UTF-8, one place is as good as
	 * another. */
	while (kept > 0 && max - kept < 3 && ((unsigned char)bytes[kept] & 0xc0) == 0x80)
		kept--;
	return ((unsigned char)bytes[kept] & 0xc0) == 0x80 ? max : kept;
}

size_t vt_utf8_put(char out[4], uint32_t code)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = len - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	out[0] = (char)((0xf00u >> len & 0xf0) | code);
	return len;
}

bool vt_utf8_steers(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} steering[] = {
		{ 0x00, 0x1f },       { 0x7f, 0x9f },     /* DEL and C1: 0x9b is CSI, 0x9d OSC */
		{ 0x061c, 0x061c },                       /* marks of direction */
		{ 0x200e, 0x200f },   { 0x2028, 0x2029 }, /* line and paragraph separators */
		{ 0x202a, 0x202e },                       /* embeddings and overrides */
		{ 0x2066, 0x2069 },                       /* isolates */
		{ 0xe0000, 0xe007f },                     /* tags: text that nobody sees */
	};

	for (size_t i = 0; i < sizeof(steering) / sizeof(steering[0]); i++)
		if (code >= steering[i].first && code <= steering[i].last)
			return true;
	return false;
}

size_t vt_utf8_escape(char out[VT_UTF8_SHOWN], uint32_t code)
{
	int len;

	if (code == '\n')
		len = snprintf(out, VT_UTF8_SHOWN, "\\n");
	else if (code == '\r')
		len = snprintf(out, VT_UTF8_SHOWN, "\\r");
	else if (code > 0xffff)
		len = snprintf(out, VT_UTF8_SHOWN, "\\u%04x\\u%04x",
			       0xd7c0 + (unsigned)(code >> 10), 0xdc00 + (unsigned)(code & 0x3ff));
	else
		len = snprintf(out, VT_UTF8_SHOWN, "\\u%04x", (unsigned)code);
	return (size_t)len;
}

size_t vt_utf8_show(char out[VT_UTF8_SHOWN], const char *bytes, struct vt_utf8 next)
{
	size_t len = 0;

	if (next.valid && vt_utf8_steers(next.code))
		return vt_utf8_escape(out, next.code);
	if (next.valid) {
		memcpy(out, bytes, next.len);
		return next.len;
	}
	/* A maximal subpart has three bytes at most. */
	for (size_t i = 0; i < next.len; i++)
		len += (size_t)sprintf(out + len, "\\x%02x", (unsigned char)bytes[i]);
	return len;
}

/* Whether these 64 are ASCII, as most text is. */
static bool is_ascii(const char *bytes)
{
	vt_bytes16 v[4];

	memcpy(v, bytes, sizeof(v));
	return !vt_bytes16_any((v[0] | v[1] | v[2] | v[3]) & 0x80);
}

bool vt_utf8_is_valid(const char *bytes, size_t len)
{
	uint64_t eight;

	for (size_t at = 0; at < len;) {
		while (len - at >= 64 && is_ascii(bytes + at))
			at += 64;
		if (len - at >= sizeof(eight)) {
			memcpy(&eight, bytes + at, sizeof(eight));
			if (!(eight & UINT64_C(0x8080808080808080))) {
				at += sizeof(eight);
				continue;
			}
		}
		if (at == len)
			break;
		struct vt_utf8 next = vt_utf8_next(bytes + at, len - at);

		if (!next.valid)
			return false;
		at += next.len;
	}
	return true;
}

char *vt_utf8_show_text(char *buf, size_t size, const char *bytes, size_t len)
{
	size_t used = 0, mark = 0; /* up to mark there is room left for "..." */
	size_t plain = 0;

	/* Nearly all is, and policies have thousands of it. */
	while (plain < len && bytes[plain] >= ' ' && bytes[plain] <= '~')
		plain++;
	if (plain == len && len < size) {
		memcpy(buf, bytes, len);
		buf[len] = '\0';
		return buf;
	}
	for (size_t at = 0; at < len;) {
		struct vt_utf8 next = vt_utf8_next(bytes + at, len - at);
		char one[VT_UTF8_SHOWN];
		size_t count = vt_utf8_show(one, bytes + at, next);

		if (used + 4 <= size)
			mark = used;
		if (used + count + 1 > size) {
			memcpy(buf + mark, "...", 4);
			return buf;
		}
		memcpy(buf + used, one, count);
		used += count;
		at += next.len;
	}
	buf[used] = '\0';
	return buf;
}
