/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/children.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/ns.h"
#include "kernel/process.h"

enum { LEFT_MAX = 256 }; /* each has a descriptor */

/* One that was killed, and whose end nobody waits for. */
struct vt_left {
	struct vt_children *children;
	struct vt_child child;
	struct vt_watch end;
	struct vt_left *next, **link;
};

static struct vt_child **bucket(struct vt_children *children, pid_t pid)
{
	return &children->buckets[(unsigned)pid % VT_CHILD_BUCKETS];
}

void vt_child_know(struct vt_children *children, struct vt_child *child, pid_t pid)
{
	struct vt_child **first = bucket(children, pid);

	*child = (struct vt_child){ .pid = pid, .next = *first, .link = first };
	if (child->next)
		child->next->link = &child->next;
	*first = child;
}

void vt_child_forget(struct vt_child *child)
{
	if (!child->pid)
		return;
	*child->link = child->next;
	if (child->next)
		child->next->link = child->link;
	*child = (struct vt_child){ 0 };
}

static bool reap(struct vt_child *child, int flags, int *ret_status)
{
	int status = child->status;
	pid_t pid = child->pid;

	if (!child->swept) {
		do
			pid = waitpid(child->pid, &status, flags | __WALL);
		while (pid < 0 && errno == EINTR);
	}
	if (pid == 0)
		return false;
	*ret_status = pid < 0 ? 0 : status; /* ECHILD: somebody else was told */
	vt_child_forget(child);
	return true;
}

int vt_child_reap(struct vt_child *child)
{
	int status = 0;

	(void)reap(child, 0, &status); /* without WNOHANG it does not return before the end */
	return status;
}

bool vt_child_try_reap(struct vt_child *child, int *ret_status)
{
	return reap(child, WNOHANG, ret_status);
}

static void left_free(struct vt_left *left)
{
	struct vt_children *children = left->children;

	vt_loop_remove(children->loop, &left->end);
	vt_fd_close(&left->end.fd);
	vt_child_forget(&left->child);
	*left->link = left->next;
	if (left->next)
		left->next->link = left->link;
	children->left_count--;
	free(left);
}

static void left_ready(struct vt_watch *source, uint32_t events)
{
	struct vt_left *left = source->owner;
	int status;

	(void)events;
	/* One that its own child traces is not for us to reap before that has ended. */
	(void)vt_child_try_reap(&left->child, &status);
	left_free(left);
}

void vt_children_leave(struct vt_children *children, struct vt_child *child, int *pidfd)
{
	AUTO_CLOSE int fd = vt_fd_take(pidfd);
	pid_t pid = child->pid;
	struct vt_err err;
	int status;

	if (!pid || vt_child_try_reap(child, &status))
		return;
	vt_child_forget(child);
	struct vt_left *left = children->loop && fd >= 0 && children->left_count < LEFT_MAX
				       ? calloc(1, sizeof(*left))
				       : NULL;

	if (!left)
		return;
	left->children = children;
	left->end = (struct vt_watch){ .fd = vt_fd_take(&fd), .ready = left_ready, .owner = left };
	vt_child_know(children, &left->child, pid);
	left->next = children->left;
	left->link = &children->left;
	if (left->next)
		left->next->link = &left->next;
	children->left = left;
	children->left_count++;
	if (vt_loop_add(children->loop, &left->end, EPOLLIN, &err) < 0)
		left_free(left);
}

/* Whether what is waiting in it may have descriptors. Nobody can send any more from then on. */
static bool may_hold_some(int fd)
{
	int listens = 0, there = 0;
	socklen_t len = sizeof(listens);

	/* One that listens may be others' too, who go on with it. */
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0 || listens)
		return true;
	/* ENOTCONN: the other side is gone, and cannot send either. */
	if (shutdown(fd, SHUT_RD) < 0 && errno != ENOTCONN)
		return true;
	return ioctl(fd, SIOCINQ, &there) < 0 || there;
}

/* Holds it until the supervisor has closed its own. Ending closes without lingering. */
static _Noreturn void hold(int fd, int until)
{
	struct vt_err err;
	char byte;

	/* Of the supervisor's others it must not be the last holder. */
	if (vt_process_descriptors(until, fd, fd, fd, &err) == 0)
		(void)!read(STDIN_FILENO, &byte, 1);
	_exit(0);
}

void vt_children_shut(struct vt_children *children, int *fd, bool wary)
{
	AUTO_CLOSE int reading = -1, writing = -1, pidfd = -1, shut = vt_fd_take(fd);
	struct vt_child child = { 0 };
	struct vt_err err;
	int pair[2];

	if (shut < 0 || !wary || !may_hold_some(shut))
		return;
	if (pipe2(pair, O_CLOEXEC) == 0) {
		reading = pair[0];
		writing = pair[1];
	}
	pid_t pid = reading < 0 ? -1 : vt_ns_clone(0, -1, &pidfd, &err);

	if (pid == 0)
		hold(shut, reading);
	if (pid < 0) {
		/* Left open rather than waited for: the other side hears of the end all the same.
		 */
		(void)shutdown(vt_fd_take(&shut), SHUT_RDWR);
		return;
	}
	vt_fd_close(&shut);
	vt_fd_close(&writing);
	vt_child_know(children, &child, pid);
	vt_children_leave(children, &child, &pidfd);
}

void vt_children_done(struct vt_children *children, int64_t patience_ns)
{
	int64_t until = vt_clock_now() + patience_ns;

	while (children->left) {
		struct vt_left *left = children->left;
		struct pollfd end = { .fd = left->end.fd, .events = POLLIN };
		int64_t now = vt_clock_now();

		if (now < until)
			(void)poll(&end, 1, (int)((until - now) / VT_NS_PER_MS) + 1);
		left_ready(&left->end, 0);
	}
	/* Who could not be reaped in time keeps a cell from its end until somebody adopts it. */
	vt_children_sweep(children);
}

bool vt_child_is_ours(int pidfd)
{
	siginfo_t info;
	int r;

	do
		r = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT | __WALL);
	while (r < 0 && errno == EINTR);
	return r == 0;
}

void vt_children_sweep(struct vt_children *children)
{
	int status;
	pid_t pid;

	/* Without __WALL: children that have no exit signal are not ours to reap. */
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct vt_child *child = *bucket(children, pid);

		/* One that was swept has a number that can be another's by now. */
		while (child && (child->pid != pid || child->swept))
			child = child->next;
		if (!child)
			continue;
		child->swept = true;
		child->status = status;
	}
}
