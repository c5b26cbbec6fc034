/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an input of a fuzzer becomes a stream of frames. Its first byte has flags. With FRAMES_LINES each line
 * of the rest is a frame: the head, a tab, the body; so lengths are right, and what is in them is to be found out.
 * Without it the rest is the stream as it is.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"

enum { FRAMES_LINES = 1, FRAMES_GREETED = 2, FRAMES_MORE = 4, FRAMES_MOST = 60000 };

static inline void frames_add(struct vt_str *stream, const void *head, size_t head_len, const void *body,
			      size_t body_len)
{
	const uint32_t prefix[] = { (uint32_t)(head_len + body_len), (uint32_t)head_len };

	vt_str_addn(stream, (const char *)prefix, sizeof(prefix));
	vt_str_addn(stream, head, head_len);
	vt_str_addn(stream, body, body_len);
}

/* What is behind the first byte, no more than FRAMES_MOST of it. */
static inline void frames_of(struct vt_str *stream, const uint8_t *data, size_t size)
{
	const char *at = (const char *)data + 1, *end = (const char *)data + (size < FRAMES_MOST ? size : FRAMES_MOST);

	if (!(data[0] & FRAMES_LINES)) {
		vt_str_addn(stream, at, (size_t)(end - at));
		return;
	}
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		const char *next = stop ? stop + 1 : end;

		stop = stop ? stop : end;
		const char *tab = memchr(at, '\t', (size_t)(stop - at));
		const char *head_end = tab ? tab : stop, *body = tab ? tab + 1 : stop;

		frames_add(stream, at, (size_t)(head_end - at), body, (size_t)(stop - body));
		at = next;
	}
	REQUIRE(vt_str_ok(stream));
}
