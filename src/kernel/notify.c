/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "uapi/pidfd.h"

/* How often a lookup is begun anew that renames elsewhere have upset. */
enum { LOOKUPS = 16 };

/* The kernel's structs, with room for what a newer one adds. */
enum { ROOM = 512 };

/* The smallest that a kernel has. */

union message {
	struct seccomp_notif request;
	struct seccomp_notif_resp response;
	char bytes[ROOM];
};

/*
 * Where Yama has its say, a process may read the memory of its descendants (1), or without powers
 * that of nobody (2 and 3).
 */
static int probe_yama(const char **ret_tried)
{
	char text[8] = "0";

	*ret_tried = "process_vm_readv() under kernel.yama.ptrace_scope";
	if (vt_file_read(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) < 0)
		return 0; /* there is no Yama */
	return text[0] > '1' ? -EPERM : 0;
}

int vt_notify_probe(enum vt_notify_use use, const char **ret_tried)
{
	struct seccomp_notif_sizes sizes;

	*ret_tried = "seccomp(SECCOMP_GET_NOTIF_SIZES)";
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return -errno;
	if (sizes.seccomp_notif > ROOM || sizes.seccomp_notif_resp > ROOM ||
	    sizes.seccomp_notif < sizeof(struct seccomp_notif) ||
	    sizes.seccomp_notif_resp < sizeof(struct seccomp_notif_resp))
		return -E2BIG;
	/* With nonsense, which the kernel turns down, and a filter around us before it. */
	*ret_tried = "pidfd_getfd()";
	if (use == VT_NOTIFY_CONNECT && syscall(SYS_pidfd_getfd, -1, -1, 0) < 0 && errno != EBADF)
		return -errno;
	*ret_tried = "openat2()";
	if (syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno != EINVAL)
		return -errno;
	*ret_tried = "process_vm_readv()";
	if (process_vm_readv(getpid(), NULL, 0, NULL, 0, 0) < 0)
		return -errno;
	return use == VT_NOTIFY_MODES ? probe_yama(ret_tried) : 0;
}

int vt_notify_receive(int listener, struct vt_notice *ret_notice)
{
	union message message = { .bytes = { 0 } }; /* the kernel insists on zeros */
	const struct seccomp_notif *request = &message.request;

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &message) < 0)
		return -errno;
	*ret_notice = (struct vt_notice){ .id = request->id,
					  .tid = (pid_t)request->pid,
					  .nr = request->data.nr };
	for (size_t i = 0; i < 6; i++)
		ret_notice->args[i] = request->data.args[i];
	return 0;
}

bool vt_notify_waits(int listener, uint64_t id)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

int vt_notify_answer(int listener, uint64_t id, int result)
{
	union message message = { .bytes = { 0 } };

	message.response.id = id;
	message.response.error = result;
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &message) < 0 ? -errno : 0;
}

/* The process that a thread belongs to. */
static pid_t leader_of(pid_t tid)
{
	char path[64], text[4096];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", tid); /* fits */
	if (vt_file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -1;
	const char *line = strstr(text, "\nTgid:");

	return line ? (pid_t)strtol(line + 6, NULL, 10) : -1;
}

/* All threads of a process have one table of descriptors, so that the leader's will do. */
static int open_thread(pid_t tid)
{
	long fd = syscall(SYS_pidfd_open, tid, PIDFD_THREAD);

	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_pidfd_open, leader_of(tid), 0);
	return fd < 0 ? -errno : (int)fd;
}

int vt_notify_take_fd(pid_t tid, int fd)
{
	AUTO_CLOSE int thread = open_thread(tid);

	if (thread < 0)
		return thread;
	long taken = syscall(SYS_pidfd_getfd, thread, fd, 0);

	return taken < 0 ? -errno : (int)taken;
}

int vt_notify_read(pid_t tid, uint64_t address, void *buf, size_t len)
{
	const struct iovec ours = { .iov_base = buf, .iov_len = len };
	const struct iovec theirs = { .iov_base = (void *)(uintptr_t)address, .iov_len = len };

	if (len == 0)
		return 0;
	ssize_t n = process_vm_readv(tid, &ours, 1, &theirs, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

/* Page by page: what lies behind the text need not be there. */
int vt_notify_read_text(pid_t tid, uint64_t address, char *buf, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t have = 0;

	while (have < size) {
		size_t len = page - (address + have) % page;
		int r;

		len = len < size - have ? len : size - have;
		r = vt_notify_read(tid, address + have, buf + have, len);
		if (r < 0)
			return r;
		if (memchr(buf + have, '\0', len))
			return 0;
		have += len;
	}
	return -ENAMETOOLONG;
}

int vt_notify_open_fd(pid_t tid, int number)
{
	char path[64];
	int fd;

	if (number == AT_FDCWD)
		(void)snprintf(path, sizeof(path), "/proc/%d/cwd", tid); /* fits */
	else
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, number); /* fits */
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -EBADF : -errno;
}

int vt_notify_folder(pid_t tid, char *buf, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/cwd", tid); /* fits */
	ssize_t len = readlink(path, buf, size);

	if (len < 0)
		return -errno;
	if ((size_t)len >= size)
		return -ENAMETOOLONG;
	buf[len] = '\0';
	return 0;
}

bool vt_notify_same_network(pid_t tid, int socket_fd)
{
	char path[64];
	struct stat of_socket, of_thread;
	AUTO_CLOSE int ns = ioctl(socket_fd, SIOCGSKNS);

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", tid); /* fits */
	return ns >= 0 && fstat(ns, &of_socket) == 0 && stat(path, &of_thread) == 0 &&
	       of_socket.st_dev == of_thread.st_dev && of_socket.st_ino == of_thread.st_ino;
}

/* The kernel gives up on a ".." while anything anywhere is renamed. */
static int open_path(int dir_fd, const char *path, int flags, uint64_t resolve)
{
	const struct open_how how = {
		.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
		.resolve = RESOLVE_NO_MAGICLINKS | resolve,
	};
	long fd;
	int tries = LOOKUPS;

	do
		fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN && --tries);
	return fd < 0 ? -errno : (int)fd;
}

int vt_notify_open_in(int root_fd, const char *path)
{
	return open_path(root_fd, path, 0, RESOLVE_IN_ROOT);
}

int vt_notify_open_at(int dir_fd, const char *path, bool last)
{
	return open_path(dir_fd, path, last ? 0 : O_NOFOLLOW, 0);
}

int vt_notify_open_beneath(int root_fd, const char *path)
{
	return open_path(root_fd, path, O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}
