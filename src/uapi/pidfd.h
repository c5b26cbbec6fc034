/* SPDX-License-Identifier: Apache-2.0 */
/* The flag of pidfd_open(2) for a thread that does not lead its process, which Linux 6.9 added. */
#pragma once

#include <fcntl.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif
