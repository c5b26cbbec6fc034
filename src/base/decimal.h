/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, where snprintf() would be a good part of a call's cost. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { VT_DECIMAL = 20 }; /* digits of the largest */

/* How many digits it has; there is no NUL behind them. */
static inline size_t vt_decimal(char ret_digits[VT_DECIMAL], uint64_t value)
{
	size_t len = 1;

	for (uint64_t left = value; left >= 10; left /= 10)
		len++;
	for (size_t at = len; at > 0; value /= 10)
		ret_digits[--at] = (char)('0' + value % 10);
	return len;
}
