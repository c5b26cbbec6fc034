/* SPDX-License-Identifier: Apache-2.0 */
/* The flag of memfd_create(2) that Linux 6.3 added, for libcs that do not have it yet. */
#pragma once

#include <sys/mman.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif
