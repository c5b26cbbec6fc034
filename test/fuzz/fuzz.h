/* SPDX-License-Identifier: Apache-2.0 */
/* What every target of the fuzzers has. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Whatever the input, this holds. */
#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
