/* SPDX-License-Identifier: Apache-2.0 */
/* A number that nobody else has, to name something by. It is no secret. */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

static inline uint64_t vt_unique_number(void)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (uint64_t)vt_clock_now() << 22 ^ (uint64_t)getpid();
	return number;
}

/* The id of a call, which no other line of an audit log has. */
static inline void vt_unique_call_id(char *id, size_t size)
{
	(void)snprintf(id, size, "c%016" PRIx64, vt_unique_number()); /* fits */
}
