/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen bytes at a time, by what GCC and clang make of it on any machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A comparison of two gives 0xff for each byte where it is true, and 0 elsewhere. */
typedef uint8_t vt_bytes16 __attribute__((vector_size(16)));

/* Whether any bit is set. */
static inline bool vt_bytes16_any(vt_bytes16 bytes)
{
	uint64_t halves[2];

	memcpy(halves, &bytes, sizeof(halves));
	return halves[0] | halves[1];
}
