/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of what answers at a filter: a process whose system calls wait there, beside a loop.
 * All of it runs in a child of the test's own, see kernel/child_test.h.
 */
#pragma once

#include "kernel/child_test.h"

#include "watch/loop.h"

struct caller {
	pid_t pid;
	int go_fd; /* it begins when there is a byte here */
	struct vt_watch end;
};

static inline void caller_ended(struct vt_watch *source, uint32_t events)
{
	(void)events;
	((struct vt_loop *)source->owner)->over = true;
}

/*
 * Starts a process that puts itself under the filter, and is to do act(arg) there. Returns the
 * filter's listener.
 */
static inline int start_caller(struct caller *caller, int (*filter)(struct vt_err *err),
			       void (*act)(void *arg), void *arg)
{
	int ready[2], go[2], number;
	struct vt_err err;
	char byte;

	MUST(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid == 0) {
		MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		MUST((number = filter(&err)) >= 0);
		MUST(write(ready[1], &number, sizeof(number)) == sizeof(number));
		MUST(read(go[0], &byte, 1) == 1);
		MUST(close(number) == 0);
		act(arg);
		_exit(0);
	}
	*caller = (struct caller){ .pid = pid, .go_fd = go[1] };
	caller->end.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	MUST(caller->end.fd >= 0);
	MUST(read(ready[0], &number, sizeof(number)) == sizeof(number));
	int listener = (int)syscall(SYS_pidfd_getfd, caller->end.fd, number, 0);

	MUST(listener >= 0);
	return listener;
}

/* Lets it begin, and runs the loop until it has ended well. */
static inline void see_caller_out(struct caller *caller, struct vt_loop *loop)
{
	struct vt_err err;
	int status;

	caller->end.ready = caller_ended;
	caller->end.owner = loop;
	MUST(write(caller->go_fd, "", 1) == 1);
	MUST(vt_loop_add(loop, &caller->end, EPOLLIN, &err) == 0);
	MUST(vt_loop_run(loop, &err) == 0);
	MUST(waitpid(caller->pid, &status, 0) == caller->pid);
	MUST(status == 0);
}
