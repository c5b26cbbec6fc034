/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast this machine gives out memory, by touching some. Runs in the supervisor, where a limit
 * of memory is to be watched by sampling. Keeps none of it.
 */
#pragma once

#include <stdint.h>

/*
 * Bytes of fresh memory that a CPU touches in a microsecond, at best: in huge pages, if there are
 * any. Takes some 0.3 ms of CPU. What cannot be measured is taken for fast.
 */
int64_t vt_touch_measure(void);
