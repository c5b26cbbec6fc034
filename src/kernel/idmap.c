/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "kernel/ns.h"
#include "kernel/process.h"

/* One line of a map: ids [first, last] stand for themselves. Nothing for an empty range. */
static void add_identity(struct vt_str *map, int64_t first, int64_t last)
{
	if (first <= last)
		vt_str_addf(map, "%lld %lld %lld\n", (long long)first, (long long)first,
			    (long long)(last - first + 1));
}

/*
 * disk ↔ cell, everybody else as themselves. The cell's own id, should a file on disk carry it, has
 * no line: it appears as nobody.
 */
static void compose(struct vt_str *map, uint32_t disk, uint32_t cell)
{
	const int64_t last = UINT32_MAX - 1; /* the last id: -1 means "none" to the kernel */
	int64_t low = disk < cell ? disk : cell;
	int64_t high = disk < cell ? cell : disk;

	vt_str_addf(map, "%u %u 1\n", disk, cell);
	add_identity(map, 0, low - 1);
	add_identity(map, low + 1, high - 1);
	add_identity(map, high + 1, last);
}

static int write_map(pid_t pid, const char *name, uint32_t disk, uint32_t cell, struct vt_err *err)
{
	struct vt_str map;

	vt_str_init(&map);
	compose(&map, disk, cell);
	int r = vt_str_ok(&map) ? vt_ns_write_proc(pid, name, map.text, err)
				: vt_fail(err, VT_STEP_IDS, ENOMEM, "compose an id map");
	vt_str_done(&map);
	return r;
}

static int open_mapped(pid_t pid, uid_t disk_uid, uid_t cell_uid, gid_t disk_gid, gid_t cell_gid,
		       struct vt_err *err)
{
	char path[64];
	int r = write_map(pid, "uid_map", disk_uid, cell_uid, err);

	if (r == 0)
		r = write_map(pid, "gid_map", disk_gid, cell_gid, err);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid); /* fits */
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? vt_fail(err, VT_STEP_IDS, errno, "open '%s'", path) : fd;
}

/* Holds the new namespace open until it is killed, at the latest with its parent. */
static _Noreturn void hold_open(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(1);
	for (;;)
		(void)pause(); /* returns only for a handled signal; wait on */
}

int vt_idmap_open(uid_t disk_uid, uid_t cell_uid, gid_t disk_gid, gid_t cell_gid,
		  struct vt_err *err)
{
	AUTO_CLOSE int pidfd = -1;
	pid_t parent = getpid();
	pid_t pid = vt_ns_clone(CLONE_NEWUSER, -1, &pidfd, err);

	if (pid < 0)
		return pid;
	if (pid == 0)
		hold_open(parent);
	int fd = open_mapped(pid, disk_uid, cell_uid, disk_gid, cell_gid, err);

	vt_process_end(pid);
	return fd;
}
