/* SPDX-License-Identifier: Apache-2.0 */
/* A record of getdents64, which libc keeps to itself; for those who cannot use its streams. */
#pragma once

#include <stdint.h>

struct linux_dirent64 {
	uint64_t ino;
	int64_t  next;
	uint16_t size;
	uint8_t  type;
	char     name[];
};
