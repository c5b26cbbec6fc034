/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object whose constructor speaks as the zygote that it is loaded into: it names processes that
 * are no cell's, and tells of what it was not asked for.
 */
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vitro.h>

#include "launch/cell.h"

enum { CONTROL_FD = 3, CELLS = 16 };

static void tell(enum vt_note_kind kind, uint64_t cell, pid_t pid, int fd)
{
	struct vt_note note = { .kind = kind, .cell = cell, .pid = pid };
	struct iovec iov = { &note, sizeof(note) };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = { .header = { CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), (int[]){ fd, fd }, 2 * sizeof(int));
	/* Where it is full, enough was told. */
	(void)sendmsg(CONTROL_FD, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A child of the supervisor's, as an occupant is, which lives for a while. */
static int make_child(void)
{
	int pidfd = -1;

	if (syscall(SYS_clone, CLONE_PARENT | CLONE_PIDFD, 0, &pidfd, 0, 0) == 0) {
		(void)sleep(1);
		_exit(0);
	}
	return pidfd;
}

__attribute__((constructor)) static void lie(void)
{
	int supervisor = (int)syscall(SYS_pidfd_open, getppid(), 0), child = make_child();
	pid_t self = getpid();

	for (uint64_t cell = 1; cell <= CELLS; cell++) {
		tell(VT_NOTE_MADE, cell, 0, supervisor);
		tell(VT_NOTE_BUILT, cell, 0, supervisor);
	}
	if (fork() != 0)
		return;
	/* While it obeys: that the zygote is the occupant, whose end would be waited for. */
	for (int turn = 0; turn < 100; turn++) {
		for (uint64_t cell = 1; cell <= CELLS; cell++)
			tell(VT_NOTE_ENTERED, cell, self, child);
		(void)usleep(5000);
	}
	_exit(0);
}

int work(vitro_task *task);

int work(vitro_task *task)
{
	return vitro_task_return(task, "1");
}
