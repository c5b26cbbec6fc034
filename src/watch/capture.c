/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/capture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* A half's first buffer: most calls print less than this. */
#define FIRST_SIZE ((size_t)4096)

void vt_capture_init(struct vt_capture *capture, size_t cap)
{
	*capture = (struct vt_capture){
		.head.cap = cap - cap / 2,
		.tail.cap = cap / 2,
	};
}

void vt_capture_done(struct vt_capture *capture)
{
	free(capture->head.bytes);
	free(capture->tail.bytes);
	vt_capture_init(capture, 0);
}

/*
 * Makes room for `need` bytes in all, or for the cap if that is less. A half that cannot grow keeps
 * what it has and its size becomes its cap, so that head and tail stay what their names say.
 */
static void half_grow(struct vt_capture_half *half, size_t need)
{
	if (need > half->cap)
		need = half->cap;
	if (need <= half->size)
		return;
	size_t size = half->size ? half->size : FIRST_SIZE;

	while (size < need && size <= half->cap / 2)
		size *= 2;
	if (size < need || size > half->cap)
		size = half->cap;
	char *bytes = realloc(half->bytes, size);

	if (!bytes) {
		half->cap = half->size;
		return;
	}
	half->bytes = bytes;
	half->size = size;
}

static size_t sum_or_max(size_t a, size_t b)
{
	size_t sum;

	return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

/* Takes what still fits into the head, and says how much that was. */
static size_t head_add(struct vt_capture *capture, const char *bytes, size_t len)
{
	struct vt_capture_half *head = &capture->head;

	if (head->len == head->cap)
		return 0;
	half_grow(head, sum_or_max(head->len, len));
	size_t room = head->size - head->len;
	size_t taken = len < room ? len : room;

	if (taken)
		memcpy(head->bytes + head->len, bytes, taken);
	head->len += taken;
	return taken;
}

/* The ring wraps only at its final size: until then tail_start is 0 and growing moves nothing. */
static void tail_add(struct vt_capture *capture, const char *bytes, size_t len)
{
	struct vt_capture_half *tail = &capture->tail;

	half_grow(tail, sum_or_max(tail->len, len));
	if (!tail->size)
		return;
	if (len > tail->size) {
		bytes += len - tail->size;
		len = tail->size;
	}
	size_t at = (capture->tail_start + tail->len) % tail->size;
	size_t straight = tail->size - at < len ? tail->size - at : len;

	memcpy(tail->bytes + at, bytes, straight);
	memcpy(tail->bytes, bytes + straight, len - straight);
	size_t room = tail->size - tail->len;

	if (len > room) {
		capture->tail_start = (capture->tail_start + (len - room)) % tail->size;
		tail->len = tail->size;
	} else {
		tail->len += len;
	}
}

void vt_capture_add(struct vt_capture *capture, const char *bytes, size_t len)
{
	if (!len)
		return;
	capture->total += len;
	size_t taken = head_add(capture, bytes, len);

	if (taken < len)
		tail_add(capture, bytes + taken, len - taken);
}

static unsigned char tail_byte(const struct vt_capture *capture, size_t index)
{
	return (unsigned char)
		capture->tail.bytes[(capture->tail_start + index) % capture->tail.size];
}

/* How many bytes at the end of text begin a UTF-8 sequence that is not complete. */
static size_t half_sequence(const char *text, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++)
		if (vt_utf8_next(text + len - back, back).cut)
			return back;
	return 0;
}

struct seam {
	size_t head_len;  /* of the head, what is shown */
	size_t tail_skip; /* of the tail, what is not */
	uint64_t dropped; /* 0: there is no seam */
};

static struct seam find_seam(const struct vt_capture *capture)
{
	const struct vt_capture_half *head = &capture->head, *tail = &capture->tail;
	struct seam seam = { .head_len = head->len };

	if (capture->total == (uint64_t)head->len + tail->len)
		return seam;
	seam.head_len -= half_sequence(head->bytes, head->len);
	while (seam.tail_skip < 3 && seam.tail_skip < tail->len &&
	       (tail_byte(capture, seam.tail_skip) & 0xc0) == 0x80)
		seam.tail_skip++;
	seam.dropped = capture->total - seam.head_len - (tail->len - seam.tail_skip);
	return seam;
}

uint64_t vt_capture_dropped(const struct vt_capture *capture)
{
	return find_seam(capture).dropped;
}

void vt_capture_text(const struct vt_capture *capture, struct vt_str *out)
{
	struct seam seam = find_seam(capture);

	if (seam.head_len)
		vt_str_addn(out, capture->head.bytes, seam.head_len);
	vt_capture_rest(capture, out);
}

void vt_capture_rest(const struct vt_capture *capture, struct vt_str *out)
{
	const struct vt_capture_half *tail = &capture->tail;
	struct seam seam = find_seam(capture);

	if (seam.dropped)
		vt_str_addf(out, "\n[... %" PRIu64 " bytes dropped ...]\n", seam.dropped);
	if (tail->len == seam.tail_skip)
		return;
	size_t start = (capture->tail_start + seam.tail_skip) % tail->size;
	size_t len = tail->len - seam.tail_skip;
	size_t straight = tail->size - start < len ? tail->size - start : len;

	vt_str_addn(out, tail->bytes + start, straight);
	if (len > straight)
		vt_str_addn(out, tail->bytes, len - straight);
}
