/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The add-ons for cells without namespaces of their own. Such a cell's user may be the caller's: no
 * mount hides the caller's files, and no pid namespace the caller's processes. Landlock bounds
 * which files are read, written, made and removed, but has no right for what is said about a file;
 * and nothing of Landlock's is about scheduling. That is left for these.
 */
#include "kernel/seccomp_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/ioprio.h>
#include <linux/msdos_fs.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#define PASS 0

/* The verdict of a row that is the same in all profiles. */
#define ANY(verdict)                 \
	{                            \
		(verdict), (verdict) \
	}

/* An ioctl carries its maker's letter in these bits. */
#define MADE_BY(letter) FIELD(1, 0xff00, (letter) << 8)

enum { BTRFS_LETTER = 0x94, F2FS_LETTER = 0xf5 };

/* What SQLite asks every file. */
#define F2FS_GET_FEATURES _IOR(F2FS_LETTER, 12, uint32_t)

/* clang-format off */
const struct vt_seccomp_group vt_seccomp_owner_groups[] = {
	/* Every file of the caller's can be named, and an owner may change all this. */
	{ ANY(EPERM), "fchmodat2 utime utimes futimesat file_setattr" },

	{ { 0 }, NULL },
};

const struct vt_seccomp_condition vt_seccomp_owner_conditions[] = {
	/* The same; but these every tool needs for its own files. */
	{ "chmod fchmod fchmodat utimensat", EPERM,
	  TESTS({ VT_SECCOMP_NOTIFY, ALWAYS, .sockets = VT_SOCKETS_BROKERED }) },

	/* What all pipes of a user may hold is one count: when it is used up, new ones are tiny. */
	{ "fcntl", PASS, TESTS({ EPERM, IS(1, F_SETPIPE_SZ) }) },

	{ NULL },
};

const struct vt_seccomp_group vt_seccomp_bare_groups[] = {
	/* The host's: queues outlive the cell, and others read them. */
	{ ANY(EPERM), "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr" },

	/*
	 * Landlock guards neither: who watches a folder learns what others do in it, and attributes
	 * hold what their owners put there. Programs look again where they cannot watch, and take
	 * this errno for a file system without attributes. Those of open files can be read.
	 */
	{ ANY(ENOSYS), "inotify_init inotify_init1" },
	{ ANY(EOPNOTSUPP), "getxattr lgetxattr getxattrat listxattr llistxattr listxattrat" },

	/*
	 * A change of owners that changes none takes a file's capabilities away, and anybody may ask
	 * for that.
	 */
	{ ANY(EPERM), "chown fchown lchown fchownat" },

	{ { 0 }, NULL },
};

const struct vt_seccomp_condition vt_seccomp_bare_conditions[] = {
	{ "fcntl", PASS, TESTS({ EPERM, IS(1, F_SETLEASE) }) },

	/*
	 * By a descriptor for reading, an owner makes a file immutable or encrypted, whoever its mode
	 * lets write seals it for verity, and a folder on btrfs gets and loses subvolumes. File
	 * systems have too many of these to list, so only what asks, and what clones into a file that
	 * is open for writing, passes.
	 */
	{ "ioctl", PASS,
	  TESTS({ PASS, IS(1, FS_IOC_GETFLAGS) }, { PASS, IS(1, FS_IOC_FSGETXATTR) },
		{ PASS, IS(1, FICLONE) }, { PASS, IS(1, FICLONERANGE) },
		{ PASS, IS(1, F2FS_GET_FEATURES) }, { EPERM, IS(1, FAT_IOCTL_SET_ATTRIBUTES) },
		{ EPERM, MADE_BY('f') }, { EPERM, MADE_BY('v') }, { EPERM, MADE_BY('X') },
		{ EPERM, MADE_BY(BTRFS_LETTER) }, { EPERM, MADE_BY(F2FS_LETTER) }) },

	/*
	 * Oneself, which is 0, and nobody else: a filter cannot tell the cell's processes from the
	 * caller's. pthread_setaffinity_np and pthread_setschedparam give the thread's number even
	 * for the calling thread, and thus fail.
	 */
	{ "sched_setaffinity sched_setscheduler sched_setparam sched_setattr prlimit64", PASS,
	  TESTS({ EPERM, IS_NOT(0, 0) }) },
	{ "setpriority", PASS, TESTS({ EPERM, IS(0, PRIO_USER) }, { EPERM, IS_NOT(1, 0) }) },
	{ "ioprio_set", PASS, TESTS({ EPERM, IS(0, IOPRIO_WHO_USER) }, { EPERM, IS_NOT(1, 0) }) },

	{ NULL },
};

/*
 * Signals reach every process of the caller's. A program that aborts still ends: where raise() fails,
 * abort() of glibc and musl goes on to an instruction that kills, so that its end is a SIGSEGV,
 * SIGILL or SIGTRAP and not a SIGABRT. The signals that the kernel sends by itself (faults, SIGCHLD, SIGPIPE,
 * timers, the death of a parent) come as ever.
 */
const struct vt_seccomp_group vt_seccomp_mute_groups[] = {
	{ ANY(EPERM),
	  "tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal" },

	/* A tracer stops, kills and rewrites whom it traces; without Landlock any of the caller's. */
	{ ANY(EPERM),
	  "ptrace process_vm_readv process_vm_writev pidfd_getfd process_madvise process_mrelease "
	  "kcmp move_pages migrate_pages" },

	{ { 0 }, NULL },
};

const struct vt_seccomp_condition vt_seccomp_mute_conditions[] = {
	/* One's own process group: a cell begins a session, and groups do not reach beyond theirs. */
	{ "kill", EPERM, TESTS({ PASS, IS(0, 0) }) },

	/* Having the kernel send one when a descriptor is ready. */
	{ "fcntl", PASS,
	  TESTS({ EPERM, IS(1, F_SETOWN) }, { EPERM, IS(1, F_SETOWN_EX) }, { EPERM, IS(1, F_SETSIG) }) },
	{ "ioctl", PASS, TESTS({ EPERM, IS(1, FIOSETOWN) }, { EPERM, IS(1, SIOCSPGRP) }) },

	{ NULL },
};
/* clang-format on */
