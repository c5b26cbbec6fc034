/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cell uses, by looking: the sum over the processes in the cell's own proc, for hosts where
 * no cgroup counts. Runs in the supervisor. Everything read there is bounded, and a process that
 * vanishes while it is read is skipped.
 *
 * Memory is what the kernel could not just drop: the anonymous part of each process, swapped or
 * not, shared pages in proportion (smaps_rollup); the tmpfs of the cell; memfds held open by any
 * thread; other shared memory as far as it is mapped and touched by a process that lives. Mapped
 * files are not counted, since their pages can be dropped and read again. Not seen are pipe and
 * socket buffers; descriptors on their way through a socket; shared memory that is mapped and was
 * let go of (by MADV_DONTNEED, or a memfd that was written, mapped and closed); and a process that
 * this proc does not show to the supervisor. The resident sizes of statm, which count shared pages
 * once per process and mapped files too, and so are never too small, decide first whether the dear
 * look is needed at all.
 *
 * CPU time is that of live processes and of the children they or init waited for. Children that
 * the kernel reaps by itself, because their parent ignores SIGCHLD, take theirs with them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "watch/folder.h"

struct vt_usage {
	int64_t  memory_bytes;
	int64_t  largest_bytes; /* anonymous memory of the process that has most of it */
	bool     certain;       /* memory_bytes is above its limit, and no more look is needed */
	/* in the private folder, or of open files without a name; 0: there is none */
	int64_t  tmp_bytes;
	enum vt_folder_odd tmp_odd; /* about the private folder */
	int64_t  cpu_ns;
	unsigned processes;   /* without init */
};

struct vt_usage_limits {
	int64_t memory_bytes; /* -1: do not look at memory beyond the cheap sum */
	int64_t cpu_ns;       /* -1: none */
	int64_t tmp_bytes;    /* of the private folder; 0: there is none to look at */
	unsigned cpus;        /* how many may burn at once: bounds how fast limits can be reached */
	/* how many bytes of fresh memory one of them touches in a microsecond, at best */
	int64_t touch_us;
	/* of a zygote's memory, that each process here may have, too; -1: not known yet */
	int64_t inherited;
	/* the cell's, where its proc is the host's; 0: it is the cell's own */
	pid_t init;
};

/*
 * Looks once. proc_fd is the folder of the cell's proc, -1 where only its private folder is of
 * interest, and nameless files there cannot be seen; root_fd its root (for its tmpfs) or that
 * folder, -1 where there is none. The dear look happens only if the cheap sum is above
 * limits->memory_bytes,
 * and what one process has alone is not.
 *
 * A child of vfork has its parent's memory until it execs, and counts like any other process: so
 * one look above the limit may be that, and only a second one tells, unless the first is certain.
 *
 * A process that ends, or that proc hides from one file to the next, counts as far as it was seen.
 *
 * After a failure what the cell uses is not known, and the caller had better end it. -E2BIG: there
 * are more processes or descriptors than one look takes. -EACCES, where memory is watched:
 * a process that is not dumpable has a memfd, whose size nobody can tell, or hides even its fdinfo
 * (before Linux 5.14).
 */
int vt_usage_look(int proc_fd, int root_fd, const struct vt_usage_limits *limits,
		  struct vt_usage *ret_usage);

/* What is in the tmpfs of this folder; 0 where it is on none, or -1. */
int64_t vt_usage_tmpfs(int root_fd);

/*
 * When to look again, in ns: sooner the nearer a limit, between 2 and 50 ms, from how fast memory
 * can be touched and CPU time burnt. Pure.
 */
int64_t vt_usage_next_look(const struct vt_usage *usage, const struct vt_usage_limits *limits);

/* The same for a glance, by how much memory is left alone; down to half a millisecond. Pure. */
int64_t vt_usage_next_glance(int64_t left_bytes, const struct vt_usage_limits *limits);

/* Kills all processes of the cell but its init, as far as they show. */
void vt_usage_kill(int proc_fd, const struct vt_usage_limits *limits);
