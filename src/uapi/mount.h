/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mount API by descriptors. glibc has it from 2.36 on (Debian 12), where <sys/mount.h> pulls in
 * <linux/mount.h>; below that the two headers clash, so what vitro uses is defined here. Include
 * this one in place of both.
 */
#pragma once

#include <fcntl.h>
#include <linux/types.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef OPEN_TREE_CLONE

#define OPEN_TREE_CLONE	  1
#define OPEN_TREE_CLOEXEC O_CLOEXEC

#define MOVE_MOUNT_F_EMPTY_PATH 0x00000004
#define MOVE_MOUNT_T_EMPTY_PATH 0x00000040

#define FSOPEN_CLOEXEC	0x00000001
#define FSMOUNT_CLOEXEC 0x00000001
#define FSPICK_CLOEXEC	0x00000001
#define FSPICK_EMPTY_PATH 0x00000008

enum fsconfig_command {
	FSCONFIG_SET_FLAG = 0,
	FSCONFIG_SET_STRING = 1,
	FSCONFIG_CMD_CREATE = 6,
	FSCONFIG_CMD_RECONFIGURE = 7,
};

#define MOUNT_ATTR_RDONLY 0x00000001
#define MOUNT_ATTR_NOSUID 0x00000002
#define MOUNT_ATTR_NODEV  0x00000004
#define MOUNT_ATTR_NOEXEC 0x00000008
#define MOUNT_ATTR_IDMAP  0x00100000

struct mount_attr {
	__u64 attr_set;
	__u64 attr_clr;
	__u64 propagation;
	__u64 userns_fd;
};

#endif

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* The same numbers on x86-64 and aarch64, as for every call since 5.1. */
#ifndef SYS_open_tree
#define SYS_open_tree  428
#define SYS_move_mount 429
#define SYS_fsopen     430
#define SYS_fsconfig   431
#define SYS_fsmount    432
#define SYS_fspick     433
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

/* The calls themselves, as libc would have them: a descriptor or 0, or -1 and errno. */

static inline int sys_open_tree(int dir_fd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dir_fd, path, flags);
}

static inline int sys_move_mount(int from_fd, const char *from, int to_fd, const char *to,
				 unsigned flags)
{
	return (int)syscall(SYS_move_mount, from_fd, from, to_fd, to, flags);
}

static inline int sys_fsopen(const char *fs_name, unsigned flags)
{
	return (int)syscall(SYS_fsopen, fs_name, flags);
}

static inline int sys_fsconfig(int fs_fd, enum fsconfig_command command, const char *key,
			       const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fs_fd, command, key, value, aux);
}

static inline int sys_fsmount(int fs_fd, unsigned flags, unsigned attrs)
{
	return (int)syscall(SYS_fsmount, fs_fd, flags, attrs);
}

static inline int sys_fspick(int dir_fd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_fspick, dir_fd, path, flags);
}

static inline int sys_mount_setattr(int dir_fd, const char *path, unsigned flags,
				    const struct mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, dir_fd, path, flags, attr, sizeof(*attr));
}
