/* SPDX-License-Identifier: Apache-2.0 */
/* How a test says that it cannot be had here. After cmocka.h. */
#pragma once

/* A test without a reason fails in test/run, which takes it from the line before. */
#define SKIP(...)                                 \
	do {                                      \
		print_message("skipped: " __VA_ARGS__); \
		print_message("\n");              \
		skip();                           \
	} while (0)
