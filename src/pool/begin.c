/* SPDX-License-Identifier: Apache-2.0 */
/* How a pool's cell comes to be: ordered from the spawner, built, and entered by an occupant. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/pass.h"
#include "pool/bare.h"
#include "pool/warm_private.h"
#include "watch/pipes.h"
#include "watch/procfs.h"

enum { TALK_BYTES = 512 << 10 }; /* what an occupant may send ahead; the kernel counts twice that */

static int order(const struct vt_warm *warm, struct vt_note note, int to, const int *fds,
		 size_t count, struct vt_err *err)
{
	note.cell = warm->number;
	note.slot = warm->slot;
	note.place = warm->place;
	int all[VT_NOTE_FDS];

	if (count)
		memcpy(all, fds, count * sizeof(int));
	if (warm->plan->bare && vt_cgroup_clone_fd(&warm->cell.cgroup) >= 0) {
		note.unified = true;
		all[count + (size_t)note.joins++] = vt_cgroup_clone_fd(&warm->cell.cgroup);
	}
	for (int i = 0; i < VT_CGROUP_HIERARCHIES; i++)
		if (warm->cell.cgroup.joins[i] >= 0)
			all[count + (size_t)note.joins++] = warm->cell.cgroup.joins[i];
	return vt_pass_send(to, &note, sizeof(note), all, count + (size_t)note.joins, err);
}

int vt_warm_new(const struct vt_warm_owner *owner, struct vt_loop *loop,
		struct vt_children *children, const struct vt_plan *plan, uint64_t number,
		uint32_t slot, uint32_t place, int spawner_fd, struct vt_warm **ret_warm,
		struct vt_err *err)
{
	struct vt_warm *warm = calloc(1, sizeof(*warm));
	int r = 0;

	if (!warm)
		return vt_fail(err, VT_STEP_CLONE, ENOMEM, "make a cell");
	warm->owner = owner;
	warm->loop = loop;
	warm->children = children;
	warm->since = vt_clock_now();
	warm->plan = plan;
	warm->number = number;
	warm->slot = slot;
	warm->place = place;
	warm->root_fd = warm->proc_fd = warm->scratch_fd = -1;
	warm->init = (struct vt_watch){ .fd = -1, .ready = vt_warm_init_ended, .owner = warm };
	warm->occupant = (struct vt_watch){ .fd = -1,
					    .ready = vt_warm_occupant_ended,
					    .owner = warm };
	warm->talk = (struct vt_watch){ .fd = -1, .ready = vt_words_ready, .owner = warm };
	for (size_t i = 0; i < VT_WARM_STREAMS; i++)
		warm->pipes[i] = (struct vt_watch){ .fd = -1,
						    .ready = vt_warm_pipe_ready,
						    .owner = warm };
	vt_cell_init(&warm->cell);
	vt_str_init(&warm->going);
	vt_talk_in_init(&warm->in, (size_t)plan->result_bytes);
	vt_capture_init(&warm->captures[0], (size_t)plan->stdout_bytes);
	vt_capture_init(&warm->captures[1], (size_t)plan->stderr_bytes);
	if (plan->cgroup_site.version != VT_CGROUP_NONE)
		r = vt_cgroup_make(&plan->cgroup_site, &plan->cgroup, &warm->cell.cgroup, err);
	vt_warm_bare_init(warm);
	if (r == 0 && !plan->bare)
		r = order(warm, (struct vt_note){ .kind = VT_NOTE_MAKE }, spawner_fd, NULL, 0, err);
	if (r < 0) {
		vt_warm_free(warm);
		return r;
	}
	*ret_warm = warm;
	return 0;
}

static int enter(struct vt_warm *warm, int zygote_fd, bool awaited, int theirs[VT_ENTER_FDS],
		 struct vt_err *err)
{
	const struct vt_note note = { .kind = VT_NOTE_ENTER, .awaited = awaited };
	int fds[VT_ENTER_FDS], pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "make a call's socket");
	warm->talk.fd = pair[0];
	theirs[VT_ENTER_CALL_FD] = pair[1];
	/* As much as is allowed of that: large arguments and results take fewer turns. */
	for (int end = 0; end < 2; end++)
		(void)setsockopt(pair[end], SOL_SOCKET, SO_SNDBUF, &(int){ TALK_BYTES },
				 sizeof(int));
	int r = vt_pipe_make(&warm->pipes[0].fd, &theirs[VT_ENTER_OUT_FD], &warm->pipes[0].fd, err);

	if (r == 0)
		r = vt_pipe_make(&warm->pipes[1].fd, &theirs[VT_ENTER_ERR_FD], &warm->pipes[1].fd,
				 err);
	if (r == 0 && warm->plan->bare)
		r = vt_warm_bare_order(warm, &theirs[VT_ENTER_INIT_FD], err);
	memcpy(fds, theirs, sizeof(fds));
	if (!warm->plan->bare)
		fds[VT_ENTER_INIT_FD] = warm->init.fd;
	if (r == 0)
		r = order(warm, note, zygote_fd, fds, VT_ENTER_FDS, err);
	if (r == 0)
		r = vt_loop_add(warm->loop, &warm->talk, EPOLLIN, err);
	for (size_t i = 0; r == 0 && i < VT_WARM_STREAMS; i++)
		r = vt_loop_add(warm->loop, &warm->pipes[i], EPOLLIN, err);
	return r;
}

void vt_warm_enter(struct vt_warm *warm, int zygote_fd, bool awaited)
{
	int theirs[VT_ENTER_FDS];
	struct vt_err err;

	for (size_t i = 0; i < VT_ENTER_FDS; i++)
		theirs[i] = -1;
	vt_warm_move(warm, VT_WARM_ENTERING);
	int r = enter(warm, zygote_fd, awaited, theirs, &err);

	for (size_t i = 0; i < VT_ENTER_FDS; i++)
		vt_fd_close(&theirs[i]);
	if (r == -EPIPE)
		vt_warm_kill(warm); /* the zygote is dead, which is told by itself */
	else if (r < 0)
		vt_warm_fail(warm, &err);
}

/* A descriptor of a process that is watched for its end. */
static void watch_process(struct vt_warm *warm, struct vt_watch *watch, int *fd)
{
	struct vt_err err;

	watch->fd = vt_fd_take(fd);
	if (vt_loop_add(warm->loop, watch, EPOLLIN, &err) < 0)
		vt_warm_fail(warm, &err);
}

/*
 * One that ended before this was heard may have been swept: then it is no child of ours any more,
 * and its number may be another's. So may be one that a zygote made up: to wait for that would be
 * to wait for ever.
 */
static void take_occupant(struct vt_warm *warm, pid_t pid, int *pidfd)
{
	struct vt_err err;

	if (!vt_child_is_ours(*pidfd) || !vt_proc_is(*pidfd, pid)) {
		(void)vt_fail(&err, VT_STEP_WATCH, ECHILD, "keep the occupant");
		vt_warm_fail(warm, &err);
		return;
	}
	vt_child_know(warm->children, &warm->child, pid);
	watch_process(warm, &warm->occupant, pidfd);
	vt_words_check_parked(warm);
}

/* The root is the hull's. What the cell writes to memory by name is on a tmpfs of its own. */
static int open_scratch(const struct vt_warm *warm)
{
	for (size_t i = 0; i < warm->plan->build_count; i++)
		if (warm->plan->builds[i].act == VT_ACT_SCRATCH)
			return openat(warm->root_fd, warm->plan->builds[i].to,
				      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return -1;
}

void vt_warm_note(struct vt_warm *warm, const struct vt_note *note, int fds[VT_NOTE_FDS])
{
	switch (note->kind) {
	case VT_NOTE_MADE:
		watch_process(warm, &warm->init, &fds[0]);
		return;
	case VT_NOTE_BUILT:
		if (warm->state == VT_WARM_ENDING)
			return;
		warm->root_fd = vt_fd_take(&fds[VT_BUILT_ROOT_FD]);
		warm->proc_fd = vt_fd_take(&fds[VT_BUILT_PROC_FD]);
		warm->scratch_fd = open_scratch(warm);
		vt_warm_move(warm, VT_WARM_BUILT);
		return;
	case VT_NOTE_LOOKED:
		vt_warm_judged(warm, fds[0]);
		return;
	case VT_NOTE_ENTERED:
		take_occupant(warm, note->pid, &fds[0]);
		return;
	default:
		vt_warm_fail(warm, &note->err);
	}
}
