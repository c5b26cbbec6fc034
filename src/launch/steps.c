/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/pass.h"
#include "launch/cell.h"
#include "launch/inside_private.h"

/* Tells the supervisor, and ends. Without a supervisor there is nobody to tell. */
_Noreturn void vt_inside_fail(int status_fd, const struct vt_err *err)
{
	struct vt_note note = { .kind = VT_NOTE_FAILED, .err = *err };

	(void)send(status_fd, &note, sizeof(note), MSG_NOSIGNAL); /* we end, heard or not */
	_exit(125);
}

int vt_inside_hand_over(int status_fd, enum vt_note_kind kind, const int *fds, size_t count,
			struct vt_err *err)
{
	const struct vt_note note = { .kind = kind };

	return vt_pass_send(status_fd, &note, sizeof(note), fds, count, err);
}

void vt_inside_take_steps(const struct vt_inside_step *steps, size_t count, struct vt_building *b,
			  int status_fd)
{
	struct vt_err err;

	for (size_t i = 0; i < count; i++)
		if (steps[i].take(b, &err) < 0) {
			if (b->abandon)
				b->abandon(b);
			vt_inside_fail(status_fd, &err);
		}
}
