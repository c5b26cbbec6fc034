/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sockets that Linux 6.5 and 6.16 added, for libcs that do not have them yet. */
#pragma once

#include <sys/socket.h>

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
