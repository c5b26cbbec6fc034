/* SPDX-License-Identifier: Apache-2.0 */
/* How buffers grow that take what comes from a socket, of any size. */
#pragma once

#include <stddef.h>

/*
 * The next size of a buffer that is full, for `need` bytes in all: twice as much, so that it follows what
 * came and not what was promised. cap is 0 for the first, which has `first`.
 */
size_t vt_bulk_next(size_t cap, size_t first, size_t need);

/* The size of one that is to hold so much at once: that, and what is left of its last huge page. */
size_t vt_bulk_size(size_t need);

/* Reallocates. NULL: no memory, and the old one is as it was. */
void *vt_bulk_resize(void *memory, size_t cap);
