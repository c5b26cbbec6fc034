/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/input.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/pass.h"
#include "launch/cell.h"

static int make(const char *bytes, size_t len, struct vt_err *err)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	AUTO_CLOSE int fd = memfd_create("vitro-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/* pwrite: who reads it begins at the beginning. */
	for (size_t at = 0; fd >= 0 && at < len;) {
		ssize_t wrote = pwrite(fd, bytes + at, len - at, (off_t)at);

		if (wrote <= 0)
			return vt_fail(err, VT_STEP_WATCH, errno, "write a command's input");
		at += (size_t)wrote;
	}
	if (fd < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
		return vt_fail(err, VT_STEP_WATCH, errno, "make a command's input");
	return vt_fd_take(&fd);
}

int vt_input_hand(int call_fd, const char *bytes, size_t len, struct vt_err *err)
{
	const struct vt_note note = { .kind = VT_NOTE_INPUT };
	AUTO_CLOSE int fd = make(bytes, len, err);

	return fd < 0 ? fd : vt_pass_send(call_fd, &note, sizeof(note), &fd, 1, err);
}
