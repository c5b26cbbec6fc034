/* SPDX-License-Identifier: Apache-2.0 */
/* How buffers grow that take what comes from a socket, of any size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The next size of a buffer that is full, for `need` bytes in all: twice as much, so that it
 * follows what came and not what was promised. cap is 0 for the first, which has `first`.
 */
size_t vt_bulk_next(size_t cap, size_t first, size_t need);

/* The size of one that is to hold so much at once: that, and what is left of its last huge page. */
size_t vt_bulk_size(size_t need);

/* Reallocates. NULL: no memory, and the old one is as it was. */
void *vt_bulk_resize(void *memory, size_t cap);

/*
 * A large buffer that nobody needs any more, for who needs the next: the first touch of memory
 * takes longer than to copy what comes into it. One at the most, and none above VT_BULK_SPARE_MAX.
 * Whoever has it lets go of it when it was not needed for a while.
 */
struct vt_bulk_spare {
	char  *memory; /* NULL: there is none */
	size_t cap;
};

#define VT_BULK_SPARE_MAX ((size_t)128 << 20)

/* Keeps it, or frees it. spare may be NULL. */
void vt_bulk_keep(struct vt_bulk_spare *spare, char *memory, size_t cap);

/*
 * Moves a full buffer, which is to hold `need` bytes, into the spare. Unless the sender is trusted,
 * the spare is not used before enough bytes have come. False: there is none that fits, or it is not
 * worth it. spare may be NULL.
 */
bool vt_bulk_move(struct vt_bulk_spare *spare, char **memory, size_t *cap, size_t need,
		  bool trusting);

/* Frees what is kept. */
void vt_bulk_drop(struct vt_bulk_spare *spare);
