/* SPDX-License-Identifier: Apache-2.0 */
#include "host/touch.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"

enum {
	HUGE_PAGE = 2 << 20,
	SMALL_PAGE = 4096,
	SMALL_PAGES = 64,
	ROUNDS = 3,
	SLOW_NS = 500000, /* for what is touched in a round: more than memory itself takes */
	SLOW_US = 1000,
	FAST_US = 32000, /* faster than machines that were seen */
};

/* Its own time, since it may have to wait for a CPU. */
static int64_t cpu_now(void)
{
	struct timespec used;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used); /* cannot fail for this clock */
	return used.tv_sec * VT_NS_PER_S + used.tv_nsec;
}

/* How fast the first touches of a place were, which is one huge page, or else many small ones. */
static int64_t touch(char *place, int64_t *ret_ns)
{
	volatile char *bytes = place;
	int64_t began = cpu_now();
	unsigned char there;

	for (size_t i = 0; i < SMALL_PAGES; i++)
		bytes[i * SMALL_PAGE] = 1;
	int64_t ns = cpu_now() - began;
	bool huge = mincore(place + HUGE_PAGE / 2, SMALL_PAGE, &there) == 0 && there & 1;

	*ret_ns = ns > 0 ? ns : 1;
	return (huge ? HUGE_PAGE : SMALL_PAGES * SMALL_PAGE) * INT64_C(1000) / *ret_ns;
}

int64_t vt_touch_measure(void)
{
	const size_t size = (ROUNDS + 1) * (size_t)HUGE_PAGE;
	char *room = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int64_t best = SLOW_US, ns = 0;

	if (room == MAP_FAILED)
		return FAST_US;
	char *place = room + (HUGE_PAGE - (uintptr_t)room % HUGE_PAGE) % HUGE_PAGE;

	(void)madvise(place, ROUNDS * (size_t)HUGE_PAGE, MADV_HUGEPAGE); /* if there are any */
	/* Each at another place: memory that was just given back is in the CPU's cache. */
	for (int i = 0; i < ROUNDS && ns < SLOW_NS; i++) {
		int64_t rate = touch(place + i * (size_t)HUGE_PAGE, &ns);

		best = rate > best ? rate : best;
	}
	/* A virtual machine may first have to be given what it gives out: the second time it has.
	 */
	if (ns >= SLOW_NS && madvise(place, HUGE_PAGE, MADV_DONTNEED) == 0) {
		int64_t rate = touch(place, &ns);

		best = rate > best ? rate : best;
	}
	(void)munmap(room, size); /* ours, as it was mapped */
	return best < FAST_US ? best : FAST_US;
}
