/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "base/fd.h"

int vt_pipe_make(int *ret_read, int *ret_write, const int *ours, struct vt_err *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return vt_fail(err, VT_STEP_WATCH, errno, "make a pipe");
	*ret_read = fds[0];
	*ret_write = fds[1];
	if (fcntl(*ours, F_SETFL, O_NONBLOCK) < 0)
		return vt_fail(err, VT_STEP_WATCH, errno, "prepare a pipe");
	return 0;
}

int vt_pipes_make(struct vt_pipes *pipes, bool relay, bool report, struct vt_err *err)
{
	int r = vt_pipe_make(&pipes->out_read, &pipes->out_write, &pipes->out_read, err);

	if (r == 0)
		r = vt_pipe_make(&pipes->err_read, &pipes->err_write, &pipes->err_read, err);
	if (r == 0 && relay)
		r = vt_pipe_make(&pipes->in_read, &pipes->in_write, &pipes->in_write, err);
	if (r == 0 && report)
		r = vt_pipe_make(&pipes->report_read, &pipes->report_write, &pipes->report_read,
				 err);
	return r;
}

int vt_pipes_give(const struct vt_pipes *pipes, uid_t uid, gid_t gid, struct vt_err *err)
{
	const int fds[] = { pipes->in_read, pipes->out_write, pipes->err_write,
			    pipes->report_write };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0 && fchown(fds[i], uid, gid) < 0)
			return vt_fail(err, VT_STEP_WATCH, errno, "give a pipe to the cell's user");
	return 0;
}

void vt_pipes_close(struct vt_pipes *pipes)
{
	int *fds[] = { &pipes->in_read,     &pipes->in_write,    &pipes->out_read,
		       &pipes->out_write,   &pipes->err_read,    &pipes->err_write,
		       &pipes->report_read, &pipes->report_write };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		vt_fd_close(fds[i]);
}
