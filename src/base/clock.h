/* SPDX-License-Identifier: Apache-2.0 */
/* Time as vitro counts it: nanoseconds of the monotonic clock, which no one can set. */
#pragma once

#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#define VT_NS_PER_MS INT64_C(1000000)
#define VT_NS_PER_S  INT64_C(1000000000)

static inline int64_t vt_clock_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
	return now.tv_sec * VT_NS_PER_S + now.tv_nsec;
}

/* Milliseconds as results print them, to a tenth. -1: no call can take that, nor be told of it. */
static inline int64_t vt_ms_tenths(double ms)
{
	return ms >= 0 && ms < 1e15 ? (int64_t)(ms * 10 + 0.5) : -1;
}

static inline int64_t vt_rusage_cpu_ns(const struct rusage *usage)
{
	return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * VT_NS_PER_S +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}
