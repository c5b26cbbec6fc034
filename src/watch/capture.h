/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output as it is kept for a result: all of it up to a cap; beyond that the head and the tail, and
 * a count of what was dropped between them. Memory grows with what was written, never past the cap.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* One half of what is kept: a buffer that grows on demand up to a cap of its own. */
struct vt_capture_half {
	char  *bytes;
	size_t len, size, cap;
};

struct vt_capture {
	struct vt_capture_half head;
	struct vt_capture_half tail;       /* a ring once its cap is reached */
	size_t                 tail_start; /* where the ring's oldest byte is */
	uint64_t               total;      /* bytes seen */
};

void vt_capture_init(struct vt_capture *capture, size_t cap);
void vt_capture_done(struct vt_capture *capture);
void vt_capture_add(struct vt_capture *capture, const char *bytes, size_t len);

/* How many bytes are missing between head and tail: the number that vt_capture_text() names. */
uint64_t vt_capture_dropped(const struct vt_capture *capture);

/*
 * Appends what was kept. Where bytes were dropped, the seam is cut at a UTF-8 boundary on both
 * sides (those bytes count as dropped as well) and reads "\n[... N bytes dropped ...]\n".
 */
void vt_capture_text(const struct vt_capture *capture, struct vt_str *out);

/* The same without the head, for a stream whose head has been passed on already. */
void vt_capture_rest(const struct vt_capture *capture, struct vt_str *out);
