/* SPDX-License-Identifier: Apache-2.0 */
/* What a private supervisor does: it serves one client, and ends with it. */
#pragma once

#include "base/err.h"
#include "host/host.h"
#include "watch/loop.h"

/* fd, which leads to the client, and program_fd, its program or -1, are taken over. */
int vt_serve_private(struct vt_loop *loop, struct vt_host *host, int fd, int program_fd,
		     struct vt_err *err);
