/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the heap of a Node that is forked lies. V8 wants each page of it, of 256 KB, at an address
 * of its own that is random: each then takes three pages of the kernel's tables, which a fork has
 * to make, a hundred of them. This library is preloaded and has an mmap() of its own, by which one
 * page lies beside the other, from the first such address on.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum {
	HEAP_PAGE = 256 << 10, /* of V8's, and what it aligns them to */
	HEAP_PAGE_MAX = 4 << 20,
};

#define HEAP_ROOM (UINT64_C(64) << 30) /* what is freed in it is asked for again after so much */
#define HEAP_BASE (UINT64_C(1) << 30)  /* one page of the kernel's tables has that much */

/* V8 asks for as much more as it may have to align, and gives that back. */
static uintptr_t kept_of(size_t len)
{
	const size_t more = HEAP_PAGE - (size_t)sysconf(_SC_PAGESIZE);
	const size_t kept = len > more ? len - more : len;

	return (kept + HEAP_PAGE - 1) & ~(uintptr_t)(HEAP_PAGE - 1);
}

/* It is a wish: where something is already, the kernel finds another place. */
static void *place(void *wish, size_t len)
{
	static atomic_uintptr_t base, used;
	uintptr_t none = 0;

	(void)atomic_compare_exchange_strong(
		&base, &none, (uintptr_t)wish & ~(uintptr_t)(HEAP_BASE - 1)); /* or it is there */
	uintptr_t at = atomic_fetch_add(&used, kept_of(len)) % HEAP_ROOM;

	return (void *)(atomic_load(&base) + at);
}

/*
 * Who wishes for a place is V8: neither libuv nor OpenSSL does, and libc's own calls do not come
 * here. Protection and further flags do not tell its pages: 18 to 22 ask for PROT_NONE with
 * MAP_NORESERVE, 24 for both rights without. An addon that wished would have another place, as the
 * kernel may give it anyway.
 */
static bool is_heap_page(const void *wish, size_t len, int flags)
{
	return wish && len <= HEAP_PAGE_MAX && flags & MAP_ANONYMOUS && flags & MAP_PRIVATE &&
	       !(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE));
}

EXPORTED void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t offset)
{
	void *at = is_heap_page(addr, len, flags) ? place(addr, len) : addr;

	return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

/* The same by its other name, which the header has stand for the one above. */
EXPORTED void *mmap_by_name(void *addr, size_t len, int prot, int flags, int fd,
			    off64_t offset) __asm__("mmap");

void *mmap_by_name(void *addr, size_t len, int prot, int flags, int fd, off64_t offset)
{
	return mmap64(addr, len, prot, flags, fd, offset);
}
