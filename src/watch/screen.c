/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/screen.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/utf8.h"

static bool is_plain(unsigned char byte)
{
	return (byte >= 0x20 && byte < 0x7f) || byte == '\n' || byte == '\t' || byte == '\r';
}

/* The length of the UTF-8 sequence that byte begins; 0: it begins none. */
static unsigned sequence_len(unsigned char byte)
{
	if (byte >= 0xc2 && byte <= 0xdf)
		return 2;
	if (byte >= 0xe0 && byte <= 0xef)
		return 3;
	return byte >= 0xf0 && byte <= 0xf4 ? 4 : 0;
}

/* Whether byte may follow what is pending; overlong forms and surrogates end at the second byte. */
static bool continues(const struct vt_screen *screen, unsigned char byte)
{
	unsigned char least = 0x80, most = 0xbf;

	if (screen->pending_len == 1) {
		switch (screen->pending[0]) {
		case 0xe0:
			least = 0xa0;
			break;
		case 0xed:
			most = 0x9f;
			break;
		case 0xf0:
			least = 0x90;
			break;
		case 0xf4:
			most = 0x8f;
			break;
		}
	}
	return byte >= least && byte <= most;
}

static void show_complete(struct vt_screen *screen, struct vt_str *out)
{
	static const unsigned char lead_bits[] = { [2] = 0x1f, [3] = 0x0f, [4] = 0x07 };
	char shown[VT_UTF8_SHOWN];
	uint32_t point = screen->pending[0] & lead_bits[screen->pending_len];

	for (unsigned i = 1; i < screen->pending_len; i++)
		point = point << 6 | (screen->pending[i] & 0x3f);
	if (vt_utf8_steers(point))
		vt_str_addn(out, shown, vt_utf8_escape(shown, point));
	else
		vt_str_addn(out, (const char *)screen->pending, screen->pending_len);
	screen->pending_len = 0;
}

static void show_byte(struct vt_screen *screen, unsigned char byte, struct vt_str *out)
{
	if (screen->pending_len) {
		if (continues(screen, byte)) {
			screen->pending[screen->pending_len++] = byte;
			if (screen->pending_len == sequence_len(screen->pending[0]))
				show_complete(screen, out);
			return;
		}
		vt_screen_end(screen, out);
	}
	if (sequence_len(byte)) {
		screen->pending[0] = byte;
		screen->pending_len = 1;
	} else if (byte >= 0x80) {
		vt_str_addf(out, "\\x%02x", byte);
	} else if (is_plain(byte)) {
		vt_str_addn(out, (const char *)&byte, 1);
	} else {
		/* ^@ to ^_, and ^? for DEL */
		vt_str_addf(out, "^%c", byte ^ 0x40);
	}
}

void vt_screen_add(struct vt_screen *screen, const char *bytes, size_t len, struct vt_str *out)
{
	for (size_t at = 0; at < len;) {
		size_t run = at;

		while (!screen->pending_len && run < len && is_plain((unsigned char)bytes[run]))
			run++;
		if (run > at)
			vt_str_addn(out, bytes + at, run - at);
		if (run < len)
			show_byte(screen, (unsigned char)bytes[run++], out);
		at = run;
	}
}

void vt_screen_end(struct vt_screen *screen, struct vt_str *out)
{
	for (unsigned i = 0; i < screen->pending_len; i++)
		vt_str_addf(out, "\\x%02x", screen->pending[i]);
	screen->pending_len = 0;
}
