/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/beneath.h"
#include "uapi/landlock.h"

#define FS_ABI1 (LANDLOCK_ACCESS_FS_REFER - 1) /* every right below the one that ABI 2 added */

/* What each ABI added; a newer kernel appends a row. */
static const struct {
	int abi;
	struct vt_landlock_abi adds;
} history[] = {
	{ 1, { .fs = FS_ABI1 } },
	{ 2, { .fs = LANDLOCK_ACCESS_FS_REFER } },
	{ 3, { .fs = LANDLOCK_ACCESS_FS_TRUNCATE } },
	{ 4, { .net = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP } },
	{ 5, { .fs = LANDLOCK_ACCESS_FS_IOCTL_DEV } },
	{ 6, { .scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL } },
};

/* Rights that make sense for a file that is no folder; the kernel refuses others on it. */
#define FILE_RIGHTS                                                   \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | \
	 LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE | \
	 LANDLOCK_ACCESS_FS_IOCTL_DEV)

struct vt_landlock_abi vt_landlock_rights(int abi)
{
	struct vt_landlock_abi sum = { 0 };

	for (size_t i = 0; i < sizeof(history) / sizeof(history[0]); i++) {
		if (history[i].abi > abi)
			break;
		sum.fs |= history[i].adds.fs;
		sum.net |= history[i].adds.net;
		sum.scoped |= history[i].adds.scoped;
	}
	return sum;
}

uint64_t vt_landlock_read(void)
{
	return LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
	       LANDLOCK_ACCESS_FS_READ_DIR;
}

uint64_t vt_landlock_write(void)
{
	return LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
	       LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
	       LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
	       LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |
	       LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_TRUNCATE;
}

int vt_landlock_new(const struct vt_landlock_abi *handled, struct vt_err *err)
{
	const struct landlock_ruleset_attr attr = {
		.handled_access_fs = handled->fs,
		.handled_access_net = handled->net,
		.scoped = handled->scoped,
	};
	/* A kernel takes a longer struct than it knows as long as the rest is zero. */
	int fd = sys_landlock_create_ruleset(&attr, sizeof(attr), 0);

	return fd < 0 ? vt_fail_at(err, VT_STEP_LANDLOCK, errno, "make a ruleset", NULL) : fd;
}

static int allow(int ruleset, int fd, mode_t mode, uint64_t rights, const char *path,
		 struct vt_err *err)
{
	const struct landlock_path_beneath_attr attr = {
		.allowed_access = S_ISDIR(mode) ? rights : rights & FILE_RIGHTS,
		.parent_fd = fd,
	};

	if (sys_landlock_add_rule(ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0) < 0)
		return vt_fail_at(err, VT_STEP_LANDLOCK, errno, "allow", path);
	return 0;
}

int vt_landlock_allow(int ruleset, int root_fd, const char *path, uint64_t rights,
		      struct vt_err *err)
{
	const char *at = *path ? path : ".";
	AUTO_CLOSE int fd = vt_beneath_open(root_fd, at);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return vt_fail_at(err, VT_STEP_LANDLOCK, errno, "look at", at);
	return allow(ruleset, fd, st.st_mode, rights, at, err);
}

int vt_landlock_allow_inode(int ruleset, const char *path, uint64_t dev, uint64_t ino,
			    uint64_t rights, struct vt_err *err)
{
	/* Links are followed: what counts is where they lead, and that it is what was seen there.
	 */
	AUTO_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return vt_fail_at(err, VT_STEP_LANDLOCK, errno, "look at", path);
	if (st.st_dev != dev || st.st_ino != ino)
		return vt_fail_at(err, VT_STEP_LANDLOCK, ESTALE, "find what was there before at",
				  path);
	return allow(ruleset, fd, st.st_mode, rights, path, err);
}

int vt_landlock_allow_fd(int ruleset, int fd, uint64_t rights, const char *what, struct vt_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return vt_fail_at(err, VT_STEP_LANDLOCK, errno, "look at", what);
	return allow(ruleset, fd, st.st_mode, rights, what, err);
}

int vt_landlock_enter(int ruleset, struct vt_err *err)
{
	if (sys_landlock_restrict_self(ruleset, 0) < 0)
		return vt_fail_at(err, VT_STEP_LANDLOCK, errno, "enter the ruleset", NULL);
	return 0;
}
