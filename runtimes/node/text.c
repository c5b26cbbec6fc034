/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Of what most kernels have as large pages; with others it is a copy in small ones. */
enum { LARGE = 2 << 20 };

static uintptr_t round_up(uintptr_t address)
{
	return (address + LARGE - 1) & ~(uintptr_t)(LARGE - 1);
}

/*
 * The kernel puts the copy in its place at once: whatever runs there finds the same code before and
 * after it.
 */
static void replace(void *code, size_t len)
{
	char *room = mmap(NULL, len + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	if (room == MAP_FAILED)
		return;
	char *copy = (char *)round_up((uintptr_t)room);

	(void)madvise(copy, len, MADV_HUGEPAGE); /* small ones do, too */
	memcpy(copy, code, len);
	if (mprotect(copy, len, PROT_READ | PROT_EXEC) < 0 ||
	    mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, code) == MAP_FAILED)
		(void)munmap(copy, len);           /* as it was mapped above */
	(void)munmap(room, (size_t)(copy - room)); /* the same; 0 is nothing to unmap */
	(void)munmap(copy + len, (size_t)(room + LARGE - copy)); /* the same */
}

static int enlarge(struct dl_phdr_info *object, size_t size, void *user)
{
	(void)size;
	(void)user;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t from = round_up(object->dlpi_addr + part->p_vaddr);
		uintptr_t to = (object->dlpi_addr + part->p_vaddr + part->p_memsz) &
			       ~(uintptr_t)(LARGE - 1);

		if (part->p_type == PT_LOAD &&
		    (part->p_flags & (PF_R | PF_W | PF_X)) == (PF_R | PF_X) && from < to)
			replace((void *)from, to - from);
	}
	return 0;
}

void vt_node_text_enlarge(void)
{
	(void)dl_iterate_phdr(enlarge, NULL); /* what the last one returned: 0 */
}
