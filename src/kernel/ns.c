/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

static void enter_cgroup(int cgroup_fd)
{
	AUTO_CLOSE int fd = openat(cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	/* Outside of its cgroup it would run without a limit, and there is nobody to tell yet. */
	if (fd < 0 || write(fd, "0", 1) != 1)
		_exit(125);
}

/* Both machines take the flags first and the place for the pidfd third; the stack is ours. */
static long clone_by_registers(uint64_t flags, int cgroup_fd, int *ret_pidfd)
{
	long pid = syscall(SYS_clone, (unsigned long)(flags | CLONE_PIDFD), NULL, ret_pidfd, NULL,
			   NULL);

	if (pid == 0 && cgroup_fd >= 0)
		enter_cgroup(cgroup_fd);
	return pid;
}

pid_t vt_ns_clone(uint64_t flags, int cgroup_fd, int *ret_pidfd, struct vt_err *err)
{
	int pidfd = -1;
	/*
	 * Without an exit signal the child never shows up in the caller's own handling of children,
	 * and is not lost where the caller ignores SIGCHLD.
	 */
	struct clone_args args = {
		.flags = (flags & ~(uint64_t)CSIGNAL) | CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.exit_signal = flags & CSIGNAL,
		.pidfd = (uintptr_t)&pidfd,
	};

	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	/* Filters that cannot look at its flags turn it down whatever they are. */
	if (pid < 0 && (errno == ENOSYS || errno == EPERM))
		pid = clone_by_registers(flags, cgroup_fd, &pidfd);
	if (pid < 0)
		return vt_fail_at(err, VT_STEP_CLONE, errno, "make the cell's namespaces", NULL);
	if (pid > 0)
		*ret_pidfd = pidfd;
	return (pid_t)pid;
}

int vt_ns_write_proc(pid_t pid, const char *name, const char *text, struct vt_err *err)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name); /* names are literals: fits */
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return vt_fail(err, VT_STEP_IDS, errno, "open '%s'", path);
	size_t len = strlen(text);
	ssize_t written = write(fd, text, len);

	if (written != (ssize_t)len)
		return vt_fail(err, VT_STEP_IDS, written < 0 ? errno : EIO, "write '%s' to '%s'",
			       text, path);
	return 0;
}

int vt_ns_map_ids(pid_t pid, uid_t inner_uid, uid_t outer_uid, gid_t inner_gid, gid_t outer_gid,
		  bool keep_setgroups, struct vt_err *err)
{
	char text[64];
	int r = keep_setgroups ? 0 : vt_ns_write_proc(pid, "setgroups", "deny", err);

	if (r < 0)
		return r;
	(void)snprintf(text, sizeof(text), "%u %u 1\n", inner_gid, outer_gid); /* fits */
	r = vt_ns_write_proc(pid, "gid_map", text, err);
	if (r < 0)
		return r;
	(void)snprintf(text, sizeof(text), "%u %u 1\n", inner_uid, outer_uid); /* fits */
	return vt_ns_write_proc(pid, "uid_map", text, err);
}

int vt_ns_map_range(pid_t pid, uid_t outer_uid, gid_t outer_gid, uint32_t first, uint32_t count,
		    struct vt_err *err)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "0 %u 1\n1 %u %u\n", outer_gid, first, count); /* fits */
	int r = vt_ns_write_proc(pid, "gid_map", text, err);

	if (r < 0)
		return r;
	(void)snprintf(text, sizeof(text), "0 %u 1\n1 %u %u\n", outer_uid, first, count); /* fits */
	return vt_ns_write_proc(pid, "uid_map", text, err);
}
