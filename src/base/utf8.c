/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

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
			return (struct vt_utf8){ .len = i };
		code = code << 6 | (at[i] & 0x3f);
	}
	return (struct vt_utf8){ .code = code, .len = want, .valid = true };
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
