/* SPDX-License-Identifier: Apache-2.0 */
/* A number that nobody else has, to name something by. It is no secret. */
#pragma once

#include <stdint.h>
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
