/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/screen.h"

#include <stdbool.h>

#include "base/utf8.h"

static bool is_plain(unsigned char byte)
{
	return (byte >= 0x20 && byte < 0x7f) || byte == '\n' || byte == '\t' || byte == '\r';
}

/* What is pending, which is a character or stands where one should. */
static void show_pending(struct vt_screen *screen, struct vt_utf8 next, struct vt_str *out)
{
	char shown[VT_UTF8_SHOWN];

	vt_str_addn(out, shown, vt_utf8_show(shown, screen->pending, next));
	screen->pending_len = 0;
}

static void show_byte(struct vt_screen *screen, char byte, struct vt_str *out)
{
	if (screen->pending_len == 0 && (unsigned char)byte < 0x80) {
		/* ^@ to ^_, and ^? for DEL */
		if (!is_plain((unsigned char)byte))
			vt_str_addf(out, "^%c", byte ^ 0x40);
		else
			vt_str_addn(out, &byte, 1);
		return;
	}
	screen->pending[screen->pending_len++] = byte;
	struct vt_utf8 next = vt_utf8_next(screen->pending, screen->pending_len);
	bool broken = next.len < screen->pending_len;

	if (next.cut)
		return;
	show_pending(screen, next, out);
	/* What broke a sequence is none of it, and looked at afresh. */
	if (broken)
		show_byte(screen, byte, out);
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
			show_byte(screen, bytes[run++], out);
		at = run;
	}
}

void vt_screen_end(struct vt_screen *screen, struct vt_str *out)
{
	if (screen->pending_len)
		show_pending(screen, vt_utf8_next(screen->pending, screen->pending_len), out);
}
