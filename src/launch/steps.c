/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/pass.h"
#include "launch/cell.h"
#include "launch/inside_private.h"

struct vt_outer vt_inside_ids(const struct vt_plan *plan, pid_t owner)
{
	uint32_t id = plan->id_base + (plan->own_ids ? (uint32_t)owner % plan->id_count : 0);

	return plan->own_ids ? (struct vt_outer){ id, id }
			     : (struct vt_outer){ plan->outer_uid, plan->outer_gid };
}

/* The plan's has room for the number at its end. */
void vt_inside_name_scratch(const struct vt_plan *plan, uint64_t cell, char *ret_path)
{
	static const char digits[] = "0123456789abcdef";
	size_t len = strlen(plan->scratch);

	len = len < PATH_MAX ? len : PATH_MAX - 1; /* nobody could make a longer one */
	memcpy(ret_path, plan->scratch, len);
	ret_path[len] = '\0';
	for (size_t i = 1; i <= VT_SCRATCH_DIGITS && i <= len; i++) {
		ret_path[len - i] = digits[cell % 16];
		cell /= 16;
	}
}

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
