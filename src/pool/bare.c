/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/bare.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum {
	BURIAL_MS = 4000, /* how long the processes of a cell without an init may take to die */
	KILL_MS = 1000,   /* how long init may, which does nothing then */
};

/* ---- what init says ------------------------------------------------------------------------ */

/* One that was swept meanwhile is dead, and its number may be another's. */
static void take_birth(struct vt_warm *warm, const struct vt_note *note, int fds[VT_NOTE_FDS])
{
	struct vt_err err;

	if (!warm->bare.unborn || note->pid <= 0 || fds[0] < 0)
		return; /* not init's to say */
	warm->bare.unborn = false;
	if (!vt_child_is_ours(fds[0])) {
		(void)vt_fail(&err, VT_STEP_WATCH, ECHILD, "keep the cell's init");
		vt_warm_fail(warm, &err);
		return;
	}
	vt_child_know(warm->children, &warm->child, note->pid);
	warm->cell.init = note->pid;
	warm->cell.outer = vt_own_ids(warm->plan, note->pid);
	warm->occupant.fd = vt_fd_take(&fds[0]);
	if (vt_loop_add(warm->loop, &warm->occupant, EPOLLIN, &err) < 0)
		vt_warm_fail(warm, &err);
}

static void take_running(struct vt_warm *warm, const struct vt_note *note, int fds[VT_NOTE_FDS])
{
	if (warm->state != VT_WARM_ENTERING || warm->root_fd >= 0)
		return;
	warm->bare.occupant = note->pid;
	warm->root_fd = vt_fd_take(&fds[VT_NOTE_ROOT_FD]);
	if (warm->plan->can_look)
		warm->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Nobody is left but init, which removes the folder: that is no concern of the call's. */
static void take_end(struct vt_warm *warm, const struct vt_note *note)
{
	/* What the occupant said before it ended counts first. */
	vt_warm_hear_last(warm);
	vt_look_take_rusage(&warm->look, &note->usage);
	warm->bare.empty = true;
	warm->bare.occupant = 0;
	if (note->kind == VT_NOTE_ENDED) {
		warm->findings.ended = true;
		warm->findings.wait_status = note->wait_status;
		if (warm->state == VT_WARM_ENTERING)
			vt_warm_lose_entering(warm, note->wait_status);
	}
	if (warm->state == VT_WARM_RUNNING)
		vt_warm_stop(warm, VT_STOP_NONE);
	else
		vt_warm_kill(warm);
	if (warm->call)
		vt_warm_tick(warm, INT64_MAX); /* it is over now */
}

static void take_note(struct vt_warm *warm, const struct vt_note *note, int fds[VT_NOTE_FDS])
{
	switch (note->kind) {
	case VT_NOTE_BORN:
		take_birth(warm, note, fds);
		return;
	case VT_NOTE_RUNNING:
		take_running(warm, note, fds);
		return;
	case VT_NOTE_FAILED:
		vt_warm_fail(warm, &note->err);
		return;
	case VT_NOTE_ENDED:
	case VT_NOTE_EMPTY:
		take_end(warm, note);
		return;
	default:
		return; /* not a cell's to say */
	}
}

/* Whether init has nothing more to say. The cell lives on: init does, or was never born. */
static bool hear(struct vt_warm *warm)
{
	struct vt_note note;
	struct vt_err err;
	int fds[VT_NOTE_FDS];
	int r = 0;

	while (warm->bare.status.fd >= 0 && (r = vt_cell_note(&warm->cell, &note, fds, &err)) > 0) {
		take_note(warm, &note, fds);
		for (size_t i = 0; i < VT_NOTE_FDS; i++)
			vt_fd_close(&fds[i]);
	}
	return r < 0;
}

/*
 * Of an init that was born its pidfd tells more. One that was not has no zygote any more, which
 * counts as one failure and not as many; or that has told why before it let go of the socket.
 */
static void status_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_warm *warm = source->owner;

	(void)events; /* a hang-up shows as the end of the notes */
	if (!hear(warm))
		return;
	vt_loop_remove(warm->loop, source);
	if (!warm->bare.unborn)
		return;
	warm->bare.unborn = false;
	if (warm->state == VT_WARM_ENDING)
		vt_warm_leave(warm); /* there is nothing to wait for */
	else
		vt_warm_kill(warm);
}

void vt_warm_bare_hear(struct vt_warm *warm)
{
	(void)hear(warm); /* its end is for the loop to see */
}

/* ---- its beginning ------------------------------------------------------------------------- */

void vt_warm_bare_init(struct vt_warm *warm)
{
	warm->state = warm->plan->bare ? VT_WARM_BUILT : VT_WARM_MAKING;
	warm->cell.bare = warm->plan->bare;
	warm->bare.status = (struct vt_watch){ .fd = -1, .ready = status_ready, .owner = warm };
}

int vt_warm_bare_order(struct vt_warm *warm, int *ret_theirs, struct vt_err *err)
{
	const struct vt_note go = { .kind = VT_NOTE_GO }; /* nothing is left to be mapped */
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "make the status socket");
	AUTO_CLOSE int theirs = pair[1];

	warm->cell.status_fd = warm->bare.status.fd = pair[0];
	if (send(pair[0], &go, sizeof(go), MSG_NOSIGNAL) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "release the cell's init");
	int r = vt_loop_add(warm->loop, &warm->bare.status, EPOLLIN, err);

	if (r < 0)
		return r;
	warm->bare.unborn = true;
	*ret_theirs = vt_fd_take(&theirs);
	return 0;
}

int vt_warm_bare_listen(struct vt_warm *warm, int listener_fd, struct vt_err *err)
{
	if (warm->state != VT_WARM_ENTERING || warm->bare.modes.plan) {
		vt_fd_close(&listener_fd);
		return 0;
	}
	return vt_modes_listen(&warm->bare.modes, warm->loop, warm->plan, listener_fd,
			       warm->root_fd, err);
}

/* ---- its end ------------------------------------------------------------------------------- */

void vt_warm_bare_kill(struct vt_warm *warm)
{
	struct vt_err err;

	vt_modes_stop(&warm->bare.modes);
	if (warm->cell.status_fd >= 0)
		(void)vt_cell_kill(&warm->cell, &err); /* who does not listen is given up later */
}

void vt_warm_bare_ended(struct vt_warm *warm)
{
	(void)hear(warm);
	vt_warm_lose_init(warm);
}

/*
 * Somebody killed it: what it would have swept may be there. With an id of its own the cell can be
 * ended all the same, by a child that takes init's place.
 */
static void bury(struct vt_warm *warm)
{
	char scratch[PATH_MAX];
	struct vt_err err;

	vt_own_scratch(warm->plan, warm->number, scratch);
	pid_t pid = vt_cell_bury_as(warm->plan, warm->cell.outer, scratch, BURIAL_MS,
				    &warm->occupant.fd, &err);

	warm->bare.unburied = pid < 0 && !warm->bare.empty;
	if (pid < 0)
		return;
	vt_child_know(warm->children, &warm->child, pid);
	/* Of one that cannot be watched, a sweep finds the end. */
	(void)vt_loop_add(warm->loop, &warm->occupant, EPOLLIN, &err);
}

void vt_warm_bare_reaped(struct vt_warm *warm, int status)
{
	vt_loop_remove(warm->loop, &warm->occupant);
	vt_fd_close(&warm->occupant.fd);
	if (warm->bare.burying)
		warm->bare.unburied = status != 0 && !warm->bare.empty;
	else if (WIFSIGNALED(status))
		bury(warm);
	warm->bare.burying = warm->child.pid;
}

bool vt_warm_bare_give_up(struct vt_warm *warm)
{
	/* Nobody is left, or init is the only one who may end them yet. */
	if (warm->bare.empty || warm->bare.burying || !warm->child.pid ||
	    !vt_cell_can_bury(warm->plan))
		return false;
	(void)syscall(SYS_pidfd_send_signal, warm->occupant.fd, SIGKILL, NULL, 0); /* or it ended */
	return true;
}

bool vt_warm_bare_gone(const struct vt_warm *warm)
{
	return !warm->bare.unborn;
}

static bool is_ready_by(int fd, int64_t until)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	int64_t left;

	do
		left = (until - vt_clock_now()) / VT_NS_PER_MS;
	while (poll(&ready, 1, left > 0 ? (int)left : 0) < 0 && errno == EINTR);
	return ready.revents;
}

/* Whoever buries it goes on by himself. */
void vt_warm_bare_await(struct vt_warm *warm, int64_t until)
{
	if (warm->bare.unborn && is_ready_by(warm->bare.status.fd, until)) {
		status_ready(&warm->bare.status, 0);
		return;
	}
	bool ended = warm->child.pid && is_ready_by(warm->occupant.fd, until);

	if (!ended && warm->child.pid && vt_warm_bare_give_up(warm))
		ended = is_ready_by(warm->occupant.fd, vt_clock_now() + KILL_MS * VT_NS_PER_MS);
	if (ended) {
		warm->occupant.ready(&warm->occupant, 0);
	} else {
		warm->bare.unborn = false; /* whoever it is goes on without us */
		vt_warm_leave(warm);
	}
}

void vt_warm_bare_done(struct vt_warm *warm)
{
	vt_modes_done(&warm->bare.modes);
	vt_loop_remove(warm->loop, &warm->bare.status);
	vt_fd_close(&warm->bare.status.fd);
	warm->cell.status_fd = -1;
}
