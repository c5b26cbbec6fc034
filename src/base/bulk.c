/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bulk.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	LARGE = 4 << 20,
	HUGE_PAGE = 2 << 20,
	MALLOCS_OWN = 32, /* what malloc() takes beside, of what it maps */
};

/* What has the size of whole huge pages is mapped where one begins, and is all made of them. */
size_t vt_bulk_size(size_t need)
{
	if (need < LARGE)
		return need;
	return (need + MALLOCS_OWN + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE - MALLOCS_OWN;
}

size_t vt_bulk_next(size_t cap, size_t first, size_t need)
{
	if (cap == 0)
		return first;
	return cap * 2 < need ? cap * 2 : need;
}

/*
 * The first touch of a small page takes longer than to copy one, so it had better be a huge one.
 * All of what malloc() mapped is marked, from its page on: else a part could not grow with the
 * rest.
 */
static void prefer_huge_pages(char *memory, size_t cap)
{
	size_t before = (uintptr_t)memory % (size_t)sysconf(_SC_PAGESIZE);

	(void)madvise(memory - before, cap + before,
		      MADV_HUGEPAGE); /* without them it takes longer */
}

void *vt_bulk_resize(void *memory, size_t cap)
{
	char *resized = realloc(memory, cap);

	if (resized && cap >= LARGE)
		prefer_huge_pages(resized, cap);
	return resized;
}

void vt_bulk_drop(struct vt_bulk_spare *spare)
{
	free(spare->memory);
	*spare = (struct vt_bulk_spare){ 0 };
}

void vt_bulk_keep(struct vt_bulk_spare *spare, char *memory, size_t cap)
{
	if (!spare || cap < LARGE || cap > VT_BULK_SPARE_MAX || cap <= spare->cap) {
		free(memory);
		return;
	}
	vt_bulk_drop(spare);
	*spare = (struct vt_bulk_spare){ memory, cap };
}

bool vt_bulk_move(struct vt_bulk_spare *spare, char **memory, size_t *cap, size_t need,
		  bool trusting)
{
	if (!spare || (trusting ? need < LARGE : *cap < LARGE / 2) || need > spare->cap)
		return false;
	memcpy(spare->memory, *memory, *cap);
	free(*memory);
	*memory = spare->memory;
	*cap = spare->cap;
	*spare = (struct vt_bulk_spare){ 0 };
	return true;
}
