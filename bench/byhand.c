/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody would write who needs these mounts and nothing else: new user, mount and pid
 * namespaces, a tmpfs, one mount after the other, pivot_root, exec. No supervisor, no limits, no
 * filter. Everything after clone runs in the child, which reports by its exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "bench.h"
#include "uapi/mount.h"

void hand_fail(const char *what, const char *subject)
{
	dprintf(2, "by hand: %s %s: %s\n", what, subject, strerror(errno));
	_exit(125);
}

void hand_put(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		hand_fail("write", path);
}

void hand_map_ids(const char *proc, uid_t uid, gid_t gid)
{
	char path[64], map[64];

	(void)snprintf(path, sizeof(path), "%s/setgroups", proc);
	hand_put(path, "deny");
	(void)snprintf(path, sizeof(path), "%s/uid_map", proc);
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	hand_put(path, map);
	(void)snprintf(path, sizeof(path), "%s/gid_map", proc);
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	hand_put(path, map);
}

int hand_filesystem(const char *type, unsigned attrs)
{
	AUTO_CLOSE int fs = sys_fsopen(type, FSOPEN_CLOEXEC);

	if (fs < 0 || sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		hand_fail("make a", type);
	int mount = sys_fsmount(fs, FSMOUNT_CLOEXEC, attrs);

	if (mount < 0)
		hand_fail("mount a", type);
	return mount;
}

/* The folders above a path inside root, then the path itself as a folder or an empty file. */
static void make_point(int root, const char *path, bool folder)
{
	char partial[4096];

	for (size_t i = 1; path[i]; i++) {
		if (path[i] != '/' || i >= sizeof(partial))
			continue;
		memcpy(partial, path, i);
		partial[i] = '\0';
		if (mkdirat(root, partial, 0755) < 0 && errno != EEXIST)
			hand_fail("make", partial);
	}
	if (folder && mkdirat(root, path, 0755) < 0 && errno != EEXIST)
		hand_fail("make", path);
	if (!folder) {
		AUTO_CLOSE int fd = openat(root, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

		if (fd < 0)
			hand_fail("make", path);
	}
}

int hand_copy(int dir, const char *path)
{
	int mount = sys_open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (mount < 0)
		hand_fail("copy the mount of", path);
	return mount;
}

void hand_restrict(int mount, uint64_t attrs, unsigned flags)
{
	struct mount_attr attr = { .attr_set = attrs };

	if (sys_mount_setattr(mount, "", AT_EMPTY_PATH | flags, &attr) < 0)
		hand_fail("restrict", "a mount");
}

static void mount_one(int root, const struct mount *mount)
{
	const char *to = mount->at + 1;
	AUTO_CLOSE int fd = -1;
	uint64_t attrs = MOUNT_ATTR_NOSUID;

	/* what lies in proc is there already */
	if (mount->kind != MOUNT_MASK)
		make_point(root, to, mount->folder);
	switch (mount->kind) {
	case MOUNT_BIND:
	case MOUNT_DEVICE:
		fd = hand_copy(AT_FDCWD, mount->at);
		attrs |= mount->writable ? 0 : MOUNT_ATTR_RDONLY;
		attrs |= mount->kind == MOUNT_DEVICE ? 0 : MOUNT_ATTR_NODEV;
		hand_restrict(fd, attrs, AT_RECURSIVE);
		break;
	case MOUNT_SCRATCH:
		fd = hand_copy(root, to);
		break;
	case MOUNT_PROC:
		fd = hand_filesystem("proc",
				     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
		break;
	case MOUNT_MASK:
		fd = hand_copy(root, mount->folder ? ".folder" : ".file");
		hand_restrict(fd, attrs | MOUNT_ATTR_RDONLY, 0);
		break;
	}
	if (sys_move_mount(fd, "", root, to, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		hand_fail("mount", to);
}

/* Of a cell in a hull: mounted when there is a cell. */
static bool is_of_cell(const struct mount *mount)
{
	return mount->kind == MOUNT_SCRATCH || mount->kind == MOUNT_MASK;
}

void hand_root(const struct mounts *mounts, bool hull)
{
	int root = hand_filesystem("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

	if (sys_move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		hand_fail("attach", "the root");
	make_point(root, ".folder", true);
	make_point(root, ".file", false);
	for (size_t i = 0; i < mounts->count; i++) {
		const struct mount *mount = &mounts->items[i];

		if (!hull || !is_of_cell(mount))
			mount_one(root, mount);
		else if (mount->kind == MOUNT_SCRATCH)
			make_point(root, mount->at + 1, true);
	}
	for (size_t i = 0; i < mounts->link_count; i++)
		if (symlinkat(mounts->targets[i], root, mounts->links[i] + 1) < 0)
			hand_fail("link", mounts->links[i]);
	hand_restrict(root, MOUNT_ATTR_RDONLY, 0);
	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		hand_fail("enter", "the root");
}

static _Noreturn void run(const struct mounts *mounts, uid_t uid, gid_t gid)
{
	static char program[] = "/bin/true";
	char *argv[] = { program, NULL };
	char *envp[] = { NULL };

	hand_map_ids("/proc/self", uid, gid);
	hand_root(mounts, false);
	(void)execve(program, argv, envp); /* returns only to fail */
	hand_fail("execute", program);
}

pid_t byhand_start(const struct mounts *mounts)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	long pid = syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | SIGCHLD, 0, 0, 0,
			   0);

	if (pid < 0)
		die("clone: %s", strerror(errno));
	if (pid == 0)
		run(mounts, uid, gid);
	return (pid_t)pid;
}
