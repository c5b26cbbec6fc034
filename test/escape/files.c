/* SPDX-License-Identifier: Apache-2.0 */
/* Host files by every road but mounts. Arguments are host paths that the test made. */
#include "escape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static int read_absolute(int argc, char **argv)
{
	(void)argc;
	return take(AT_FDCWD, argv[1]);
}

static int read_dotdot(int argc, char **argv)
{
	(void)argc;
	return take(AT_FDCWD, join("../../../../../../../../..", argv[1]));
}

/* argv: a folder that may be written, the file wanted */
static int read_symlink(int argc, char **argv)
{
	(void)argc;
	const char *link = join(argv[1], "planted");
	if (symlink(argv[2], link) < 0)
		return broken("cannot plant %s", link);
	int code = take(AT_FDCWD, link);
	unlink(link);
	return code;
}

/* A link to a folder above, so that the way out leads through "..". */
static int read_symlink_dotdot(int argc, char **argv)
{
	(void)argc;
	char target[PATH_MAX];
	snprintf(target, sizeof(target), "../../../../../../../../..%s", argv[2]);
	const char *link = join(argv[1], "planted");
	if (symlink(target, link) < 0)
		return broken("cannot plant %s", link);
	int code = take(AT_FDCWD, link);
	unlink(link);
	return code;
}

static int read_hardlink(int argc, char **argv)
{
	(void)argc;
	const char *link = join(argv[1], "hard");
	if (linkat(AT_FDCWD, argv[2], AT_FDCWD, link, 0) < 0)
		return denied(errno, "link %s", argv[2]);
	int code = take(AT_FDCWD, link);
	unlink(link);
	return code;
}

static int read_proc_root(int argc, char **argv)
{
	(void)argc;
	return take(AT_FDCWD, join("/proc/1/root", argv[1]));
}

static int read_proc_cwd(int argc, char **argv)
{
	(void)argc;
	return take(AT_FDCWD, join("/proc/1/cwd", argv[1]));
}

static int read_leaked_cwd(int argc, char **argv)
{
	(void)argc;
	return take(AT_FDCWD, argv[1]);
}

static int read_proc_self_cwd(int argc, char **argv)
{
	(void)argc;
	return take(AT_FDCWD, join("/proc/self/cwd", argv[1]));
}

/* argv: the number of a folder's descriptor, a name in it */
static int read_leaked_folder(int argc, char **argv)
{
	(void)argc;
	return take((int)number(argv, 1), argv[2]);
}

static int read_leaked_folder_up(int argc, char **argv)
{
	(void)argc;
	return take((int)number(argv, 1), join("..", argv[2]));
}

static int leaked_descriptor(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (int fd = 3; fd < 4096; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		char link[64], to[256] = "";
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		(void)!readlink(link, to, sizeof(to) - 1); /* only for the message */
		return reached("descriptor %d is open: %s", fd, to);
	}
	return denied(EBADF, "no descriptor above 2");
}

static int read_stdin_folder(int argc, char **argv)
{
	(void)argc;
	return take(0, argv[1]);
}

/* In the next two standard input is a file that the caller opened for reading only. */
static int stdin_is_file(void)
{
	struct stat st;
	return fstat(0, &st) == 0 && S_ISREG(st.st_mode);
}

static int write_stdin_file(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!stdin_is_file())
		return denied(0, "standard input is not the file itself");
	int fd = open("/proc/self/fd/0", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return denied(errno, "open /proc/self/fd/0 for writing");
	ssize_t put = write(fd, "X", 1);
	int err = errno;
	close(fd);
	return put == 1 ? reached("wrote to the caller's input file") : denied(err, "write");
}

static int chmod_stdin_file(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!stdin_is_file())
		return denied(0, "standard input is not the file itself");
	if (fchmod(0, 0777) < 0)
		return denied(errno, "fchmod");
	return reached("changed the mode of the caller's input file");
}

/* argv: a file that may be read, on the same file system as the wanted one */
static int open_by_handle(int argc, char **argv)
{
	(void)argc;
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = { .head.handle_bytes = MAX_HANDLE_SZ };
	int mount_id;
	char text[8];

	/* An overlay has no handles to give. */
	if (name_to_handle_at(AT_FDCWD, argv[1], &handle.head, &mount_id, 0) < 0)
		return errno == EPERM || errno == ENOSYS || errno == EOPNOTSUPP
			       ? denied(errno, "name_to_handle_at")
			       : broken("name_to_handle_at");
	int mount = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (mount < 0)
		return broken("open %s", argv[1]);
	int fd = open_by_handle_at(mount, &handle.head, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return gated(errno, "open_by_handle_at");
	return read(fd, text, sizeof(text)) > 0 ? reached("a file handle was opened")
						: unclear("the file does not read");
}

/* argv: a folder that may be written */
static int make_device(int argc, char **argv)
{
	(void)argc;
	const char *node = join(argv[1], "node");
	/* The memory device's /dev/null: making and opening it harms nobody, and needs what sda
	 * needs. */
	if (mknod(node, S_IFCHR | 0600, makedev(1, 3)) < 0)
		return gated(errno, "mknod of a character device");
	int fd = open(node, O_RDWR | O_CLOEXEC);
	int err = errno;
	unlink(node);
	if (fd < 0)
		return denied(err, "the node was made and does not open");
	return reached("a device was made and opened");
}

static int make_block_device(int argc, char **argv)
{
	(void)argc;
	const char *node = join(argv[1], "node");
	if (mknod(node, S_IFBLK | 0600, makedev(7, 0)) < 0)
		return gated(errno, "mknod of a block device");
	unlink(node);
	return reached("a block device was made");
}

static int open_device(int argc, char **argv)
{
	static const char *const nodes[] = {
		"/dev/mem",       "/dev/kmem",     "/dev/port",        "/dev/kmsg",
		"/dev/vda",       "/dev/sda",      "/dev/loop0",       "/dev/kvm",
		"/dev/fuse",      "/dev/net/tun",  "/dev/tty0",        "/dev/vsock",
		"/dev/ptmx",      "/dev/snapshot", "/dev/userfaultfd", "/dev/nvme0n1",
		"/dev/dri/card0", "/dev/rfkill",   "/dev/vhost-vsock", NULL
	};
	(void)argc;
	(void)argv;
	return open_any(nodes, O_RDWR);
}

/* argv: a folder that may only be read; in all of the following, it holds "file" */
static int write_new(int argc, char **argv)
{
	(void)argc;
	const char *path = join(argv[1], "new");
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return denied(errno, "create %s", path);
	close(fd);
	unlink(path);
	return reached("created %s", path);
}

static int write_over(int argc, char **argv)
{
	(void)argc;
	const char *path = join(argv[1], "file");
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return denied(errno, "open %s for writing", path);
	close(fd);
	return reached("opened %s for writing", path);
}

static int write_truncate(int argc, char **argv)
{
	(void)argc;
	const char *path = join(argv[1], "file");
	struct stat st;
	if (stat(path, &st) < 0)
		return broken("stat %s", path);
	if (truncate(path, st.st_size) < 0)
		return denied(errno, "truncate %s", path);
	return reached("truncated %s", path);
}

static int write_mode(int argc, char **argv)
{
	(void)argc;
	const char *path = join(argv[1], "file");
	struct stat st;
	if (stat(path, &st) < 0)
		return broken("stat %s", path);
	if (chmod(path, st.st_mode & 0777) < 0)
		return denied(errno, "chmod %s", path);
	return reached("changed the mode of %s", path);
}

static int write_times(int argc, char **argv)
{
	(void)argc;
	const char *path = join(argv[1], "file");
	if (utimensat(AT_FDCWD, path, NULL, 0) < 0)
		return denied(errno, "utimensat %s", path);
	return reached("changed the times of %s", path);
}

static int write_xattr(int argc, char **argv)
{
	(void)argc;
	const char *path = join(argv[1], "file");
	if (setxattr(path, "user.vitro", "x", 1, 0) < 0)
		return denied(errno, "setxattr %s", path);
	removexattr(path, "user.vitro");
	return reached("set an attribute of %s", path);
}

static int write_unlink(int argc, char **argv)
{
	(void)argc;
	const char *path = join(argv[1], "spare");
	if (unlink(path) < 0)
		return denied(errno, "unlink %s", path);
	return reached("removed %s", path);
}

/*
 * argv: a named pipe in a folder that may only be read. Somebody of the host's reads from it,
 * without whom it does not open: one that is another pipe by the same name is told from it by that.
 */
static int write_fifo(int argc, char **argv)
{
	(void)argc;
	int fd = open(argv[1], O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return broken("open %s", argv[1]);
	if (fd < 0)
		return denied(errno, "open %s for writing", argv[1]);
	ssize_t put = write(fd, "X", 1);
	int err = errno;
	close(fd);
	return put == 1 ? reached("wrote to whoever reads %s", argv[1]) : denied(err, "write");
}

/* The same; something of the host's waits in it for its reader. */
static int read_fifo(int argc, char **argv)
{
	(void)argc;
	char text[16];
	int fd = open(argv[1], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return broken("open %s", argv[1]);
	if (fd < 0)
		return denied(errno, "open %s", argv[1]);
	ssize_t got = read(fd, text, sizeof(text));
	int err = got < 0 ? errno : 0;
	close(fd);
	return got > 0 ? reached("took what was in %s", argv[1]) : denied(err, "nothing is in it");
}

/* argv: a folder that may only be read, one that may be written */
static int write_rename_out(int argc, char **argv)
{
	(void)argc;
	const char *from = join(argv[1], "file"), *to = join(argv[2], "taken");
	if (rename(from, to) < 0)
		return denied(errno, "rename %s", from);
	(void)rename(to, from);
	return reached("moved %s", from);
}

static int write_hardlink(int argc, char **argv)
{
	(void)argc;
	const char *from = join(argv[1], "file"), *to = join(argv[2], "alias");
	if (link(from, to) < 0)
		return denied(errno, "link %s", from);
	int fd = open(to, O_RDWR | O_CLOEXEC);
	int err = errno;
	unlink(to);
	return fd < 0 ? denied(err, "open the alias") : reached("opened an alias of %s", from);
}

/* Replaces the file that it is itself running from. */
static int replace_self(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	char self[PATH_MAX] = "", next[PATH_MAX + 8];
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return broken("readlink /proc/self/exe");
	snprintf(next, sizeof(next), "%s.next", self);
	int fd = open(next, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0)
		return denied(errno, "create %s", next);
	close(fd);
	if (rename(next, self) < 0)
		return denied(errno, "rename over %s", self);
	return reached("replaced %s", self);
}

static int open_init_program(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return take(AT_FDCWD, "/proc/1/exe");
}

/* argv: a prefix of the places to try: "" for the root itself */
static int write_root(int argc, char **argv)
{
	static const char *const places[] = { "",     "/etc",  "/usr",       "/dev",
					      "/run", "/var",  "/home",      "/proc",
					      "/sys", "/root", "/usr/local", "/opt" };
	(void)argc;
	int err = ENOENT;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s%s/vitro-escape", argv[1], places[i]);
		if (mkdir(path, 0700) == 0) {
			rmdir(path);
			return reached("made %s", path);
		}
		if (errno != ENOENT)
			err = errno;
	}
	return denied(err, "no place of the root can be written");
}

static int see_file(int argc, char **argv)
{
	(void)argc;
	struct stat st;
	if (stat(argv[1], &st) < 0)
		return denied(errno, "stat %s", argv[1]);
	return reached("%s has %lld bytes", argv[1], (long long)st.st_size);
}

/* argv: a folder that may be written */
static int give_away(int argc, char **argv)
{
	(void)argc;
	const char *path = join(argv[1], "owned");
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return broken("create %s", path);
	int failed = fchown(fd, 1, 1), err = errno;
	close(fd);
	unlink(path);
	return failed ? denied(err, "fchown") : reached("made a file of another user's");
}

/* argv: a file that others may want to write */
static int hold_lease(int argc, char **argv)
{
	(void)argc;
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return broken("open %s", argv[1]);
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		return gated(errno, "F_SETLEASE");
	return reached("whoever writes %s waits for it", argv[1]);
}

/* argv: a file that may only be read */
static int set_hint(int argc, char **argv)
{
	(void)argc;
	uint64_t none = 0; /* as it is with every file that nobody gave one */
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return broken("open %s", argv[1]);
	if (fcntl(fd, F_SET_RW_HINT, &none) < 0)
		return gated(errno, "F_SET_RW_HINT");
	return reached("says where the data of %s goes", argv[1]);
}

/* argv: a folder that may be written */
static int make_whiteout(int argc, char **argv)
{
	(void)argc;
	const char *from = join(argv[1], "covered"), *to = join(argv[1], "away");
	int fd = open(from, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return broken("create %s", from);
	close(fd);
	long code = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 4 /* RENAME_WHITEOUT */);
	int err = errno;
	struct stat st;
	bool device = code == 0 && lstat(from, &st) == 0 && S_ISCHR(st.st_mode);
	unlink(from);
	unlink(to);
	if (code < 0)
		return gated(err, "RENAME_WHITEOUT");
	return device ? reached("%s is a device", from) : unclear("%s is no device", from);
}

const struct act file_acts[] = {
	{ "read_absolute", "absolute path", "reads a host file that was not granted",
	  read_absolute },
	{ "see_file", "stat", "learns of a host file that was not granted", see_file },
	{ "read_dotdot", "path with ..", "climbs out of the root", read_dotdot },
	{ "read_symlink", "planted symbolic link", "reads through a link to a host path",
	  read_symlink },
	{ "read_symlink_dotdot", "planted relative link", "climbs out through a link",
	  read_symlink_dotdot },
	{ "read_hardlink", "planted hard link", "takes a host file into a granted folder",
	  read_hardlink },
	{ "read_proc_root", "/proc/1/root", "reaches the host's root through init",
	  read_proc_root },
	{ "read_proc_cwd", "/proc/1/cwd", "reads in the folder that init stands in",
	  read_proc_cwd },
	{ "read_leaked_cwd", "inherited working directory", "reads in the caller's folder",
	  read_leaked_cwd },
	{ "read_proc_self_cwd", "/proc/self/cwd", "reads in the caller's folder through proc",
	  read_proc_self_cwd },
	{ "read_leaked_folder", "leaked folder descriptor", "opens a file in a folder left open",
	  read_leaked_folder },
	{ "read_leaked_folder_up", "leaked folder descriptor and ..",
	  "climbs from a folder left open", read_leaked_folder_up },
	{ "leaked_descriptor", "leaked descriptor", "inherits more than 0, 1 and 2",
	  leaked_descriptor },
	{ "read_stdin_folder", "a folder as standard input", "opens a file below descriptor 0",
	  read_stdin_folder },
	{ "write_stdin_file", "reopening standard input", "writes to a file given for reading",
	  write_stdin_file },
	{ "chmod_stdin_file", "fchmod of standard input", "changes a file given for reading",
	  chmod_stdin_file },
	{ "open_by_handle", "open_by_handle_at", "opens files by number, past every path check",
	  open_by_handle },
	{ "make_device", "mknod of a character device", "makes a way to the kernel's drivers",
	  make_device },
	{ "make_block_device", "mknod of a block device", "makes a way to the disk",
	  make_block_device },
	{ "make_whiteout", "RENAME_WHITEOUT", "makes a device node by another name",
	  make_whiteout },
	{ "hold_lease", "F_SETLEASE", "makes others wait to write what it may only read",
	  hold_lease },
	{ "set_hint", "F_SET_RW_HINT", "says where the disk puts what others write", set_hint },
	{ "open_device", "device nodes", "opens a device of the host", open_device },
	{ "write_new", "creating in a read grant", "writes where only reading was granted",
	  write_new },
	{ "write_over", "opening a read grant's file for writing", "overwrites a file",
	  write_over },
	{ "write_truncate", "truncate in a read grant", "empties a file", write_truncate },
	{ "write_mode", "chmod in a read grant", "changes a file's mode", write_mode },
	{ "write_times", "utimensat in a read grant", "changes a file's times", write_times },
	{ "write_xattr", "setxattr in a read grant", "changes a file's attributes", write_xattr },
	{ "write_unlink", "unlink in a read grant", "removes a file", write_unlink },
	{ "write_fifo", "a named pipe in a read grant", "talks to a process of the host's",
	  write_fifo },
	{ "read_fifo", "a named pipe of the host's", "takes what was meant for another reader",
	  read_fifo },
	{ "write_rename_out", "rename out of a read grant", "takes a file away", write_rename_out },
	{ "write_hardlink", "hard link out of a read grant", "writes to it by another name",
	  write_hardlink },
	{ "replace_self", "replacing /proc/self/exe", "replaces the program that it runs",
	  replace_self },
	{ "open_init_program", "/proc/1/exe", "reads the program that init runs",
	  open_init_program },
	{ "write_root", "writing outside grants", "fills a root that nobody bounds", write_root },
	{ "give_away", "chown", "makes files of other users on the host", give_away },
	{ NULL }
};
