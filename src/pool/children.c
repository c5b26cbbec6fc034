/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/children.h"

#include <errno.h>
#include <stddef.h>
#include <sys/wait.h>

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
