/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock as of ABI 6, what vitro uses of it: Debian 12's <linux/landlock.h> ends at ABI 2, and
 * its ruleset struct cannot be grown from outside. Never include both.
 *
 * Each right is listed with the ABI that brought it: a ruleset that names one the kernel does not
 * know is refused with EINVAL.
 */
#pragma once

#include <linux/types.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* sys_landlock_create_ruleset() */
#define LANDLOCK_CREATE_RULESET_VERSION (1U << 0)

/* ABI 1 */
#define LANDLOCK_ACCESS_FS_EXECUTE     (1ULL << 0)
#define LANDLOCK_ACCESS_FS_WRITE_FILE  (1ULL << 1)
#define LANDLOCK_ACCESS_FS_READ_FILE   (1ULL << 2)
#define LANDLOCK_ACCESS_FS_READ_DIR    (1ULL << 3)
#define LANDLOCK_ACCESS_FS_REMOVE_DIR  (1ULL << 4)
#define LANDLOCK_ACCESS_FS_REMOVE_FILE (1ULL << 5)
#define LANDLOCK_ACCESS_FS_MAKE_CHAR   (1ULL << 6)
#define LANDLOCK_ACCESS_FS_MAKE_DIR    (1ULL << 7)
#define LANDLOCK_ACCESS_FS_MAKE_REG    (1ULL << 8)
#define LANDLOCK_ACCESS_FS_MAKE_SOCK   (1ULL << 9)
#define LANDLOCK_ACCESS_FS_MAKE_FIFO   (1ULL << 10)
#define LANDLOCK_ACCESS_FS_MAKE_BLOCK  (1ULL << 11)
#define LANDLOCK_ACCESS_FS_MAKE_SYM    (1ULL << 12)
/* ABI 2 */
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
/* ABI 3 */
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
/* ABI 5 */
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)

/* ABI 4 */
#define LANDLOCK_ACCESS_NET_BIND_TCP	(1ULL << 0)
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)

/* ABI 6 */
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define LANDLOCK_SCOPE_SIGNAL		    (1ULL << 1)

enum landlock_rule_type {
	LANDLOCK_RULE_PATH_BENEATH = 1,
};

/*
 * An older kernel takes the longer struct as long as what it does not know is zero, so
 * sizeof() of this one is right everywhere.
 */
struct landlock_ruleset_attr {
	__u64 handled_access_fs;
	__u64 handled_access_net; /* ABI 4 */
	__u64 scoped;		  /* ABI 6 */
};

struct landlock_path_beneath_attr {
	__u64 allowed_access;
	__s32 parent_fd;
} __attribute__((packed));

/* The calls themselves, as libc would have them: -1 and errno. */

static inline int sys_landlock_create_ruleset(const struct landlock_ruleset_attr *attr, size_t size,
					      unsigned flags)
{
	return (int)syscall(SYS_landlock_create_ruleset, attr, size, flags);
}

static inline int sys_landlock_add_rule(int ruleset_fd, enum landlock_rule_type type,
					const void *attr, unsigned flags)
{
	return (int)syscall(SYS_landlock_add_rule, ruleset_fd, type, attr, flags);
}

static inline int sys_landlock_restrict_self(int ruleset_fd, unsigned flags)
{
	return (int)syscall(SYS_landlock_restrict_self, ruleset_fd, flags);
}
