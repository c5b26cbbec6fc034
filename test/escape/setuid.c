/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setuid and setgid files, planted in a folder of the host that may be written: nosuid holds only
 * inside, so outside the file would run with its owner's rights. argv[1] is that folder. An act
 * first makes the same file without the bit, so that a folder that cannot be written passes for
 * nothing.
 */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* Debian 12's headers end before it. */
#define NR_FCHMODAT2  452
#define NR_SETXATTRAT 463

enum { SETUID = 04755, SETGID = 02755 };

static int make(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	return fd;
}

/* Says whether the bit is really on the file, whatever the call said; removes it. */
static int look(const char *path, int failed, int err, const char *what)
{
	struct stat st;
	int missing = stat(path, &st);
	unlink(path);
	if (!missing && (st.st_mode & (S_ISUID | S_ISGID)))
		return reached("%s: mode %o", what, st.st_mode & 07777);
	if (failed)
		return denied(err, "%s", what);
	return denied(0, "%s: the bit was dropped", what);
}

#define PLANT(name, setup, call)                          \
	static int name(int argc, char **argv)            \
	{                                                 \
		(void)argc;                               \
		const char *path = join(argv[1], #name);  \
		(void)umask(0);                           \
		int fd = make(path);                      \
		if (fd < 0)                               \
			return broken("create %s", path); \
		setup;                                    \
		long got = call;                          \
		int err = errno;                          \
		close(fd);                                \
		return look(path, got < 0, err, #name);   \
	}

#ifdef SYS_chmod
PLANT(setuid_chmod, (void)0, syscall(SYS_chmod, path, SETUID))
PLANT(setgid_chmod, (void)0, syscall(SYS_chmod, path, SETGID))
PLANT(setuid_open, unlink(path), syscall(SYS_open, path, O_WRONLY | O_CREAT, SETUID))
PLANT(setuid_creat, unlink(path), syscall(SYS_creat, path, SETUID))
PLANT(setuid_mknod, unlink(path), syscall(SYS_mknod, path, S_IFREG | SETUID, 0))
#else
PLANT(setuid_chmod, (void)0, chmod(path, SETUID))
PLANT(setgid_chmod, (void)0, chmod(path, SETGID))
PLANT(setuid_open, unlink(path), open(path, O_WRONLY | O_CREAT, SETUID))
PLANT(setuid_creat, unlink(path), creat(path, SETUID))
PLANT(setuid_mknod, unlink(path), mknod(path, S_IFREG | SETUID, 0))
#endif
PLANT(setuid_fchmod, (void)0, syscall(SYS_fchmod, fd, SETUID))
PLANT(setuid_fchmodat, (void)0, syscall(SYS_fchmodat, AT_FDCWD, path, SETUID))
PLANT(setuid_fchmodat2, (void)0, syscall(NR_FCHMODAT2, AT_FDCWD, path, SETUID, 0))
PLANT(setuid_openat, unlink(path), syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT, SETUID))
PLANT(setgid_openat, unlink(path), syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT, SETGID))
PLANT(setuid_mknodat, unlink(path), syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | SETUID, 0))
PLANT(setuid_openat2, unlink(path),
      syscall(SYS_openat2, AT_FDCWD, path,
	      &((struct open_how){ .flags = O_WRONLY | O_CREAT, .mode = SETUID }),
	      sizeof(struct open_how)))

static int setuid_tmpfile(int argc, char **argv)
{
	(void)argc;
	const char *path = join(argv[1], "setuid_tmpfile");
	char link[64];

	(void)umask(0);
	int fd = open(argv[1], O_WRONLY | O_TMPFILE | O_CLOEXEC, 0755);
	if (fd < 0)
		return broken("O_TMPFILE in %s", argv[1]);
	close(fd);
	fd = open(argv[1], O_WRONLY | O_TMPFILE | O_CLOEXEC, SETUID);
	if (fd < 0)
		return denied(errno, "O_TMPFILE with the bit");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	int failed = linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW), err = errno;
	close(fd);
	return look(path, failed, err, "setuid_tmpfile");
}

static int plant_capability(int argc, char **argv)
{
	(void)argc;
	const char *path = join(argv[1], "capable");
	struct vfs_cap_data data = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
				     .data[0].permitted = 1 << CAP_NET_RAW };
	int fd = make(path);
	if (fd < 0)
		return broken("create %s", path);
	int failed = setxattr(path, "security.capability", &data, sizeof(data), 0), err = errno;
	close(fd);
	unlink(path);
	return failed ? denied(err, "setxattr") : reached("a file got capabilities");
}

/* A label lets others in, and which ones a kernel has differs; but a user's own are in most. */
static int plant_label(int argc, char **argv)
{
	(void)argc;
	static const char *const names[] = { "user.vitro", "security.selinux", "security.SMACK64",
					     "system.posix_acl_access" };
	const char *path = join(argv[1], "labelled");
	const struct {
		const void *value;
		uint32_t size, flags;
	} args = { "x", 1, 0 };
	int fd = make(path), err = 0;
	if (fd < 0)
		return broken("create %s", path);
	const char *set = NULL;
	for (size_t i = 0; !set && i < sizeof(names) / sizeof(names[0]); i++) {
		bool done = setxattr(path, names[i], "x", 1, 0) == 0;
		err = errno;
		done |= lsetxattr(path, names[i], "x", 1, 0) == 0;
		done |= fsetxattr(fd, names[i], "x", 1, 0) == 0;
		done |= syscall(NR_SETXATTRAT, AT_FDCWD, path, 0, names[i], &args, sizeof(args)) ==
			0;
		if (done)
			set = names[i];
	}
	close(fd);
	unlink(path);
	return set ? reached("a file got %s", set) : denied(err, "setxattr");
}

/* The effective user of another process, from its status. -1: not found. */
static long effective_user(pid_t pid)
{
	char path[64], line[256];
	long real, effective = -1;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *status = fopen(path, "re");
	if (!status) {
		/* Its folder's owner is the same, and can be asked where nothing can be opened. */
		struct stat st;
		*strrchr(path, '/') = '\0';
		return stat(path, &st) < 0 ? -1 : (long)st.st_uid;
	}
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "Uid: %ld %ld", &real, &effective) == 2)
			break;
	fclose(status);
	return effective;
}

/* argv: a setuid-root program that waits for input */
static int run_setuid(int argc, char **argv)
{
	(void)argc;
	int hold[2], said[2];
	if (pipe(hold) < 0 || pipe2(said, O_CLOEXEC) < 0)
		return broken("pipe");
	pid_t child = fork();
	if (child < 0)
		return broken("fork");
	if (child == 0) {
		dup2(hold[0], 0);
		close(hold[1]);
		int quiet = open("/dev/null", O_WRONLY);
		dup2(quiet, 1);
		dup2(quiet, 2);
		execl(argv[1], argv[1], NULL);
		int err = errno;
		(void)!write(said[1], &err, sizeof(err)); /* the parent sees it die anyhow */
		_exit(127);
	}
	int err = 0;
	close(said[1]);
	ssize_t got = read(said[0], &err, sizeof(err)); /* ends when exec closed the pipe */
	(void)nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000 * 1000 }, NULL);
	long user = effective_user(child);
	close(hold[1]);
	(void)kill(child, SIGKILL); /* root's process cannot be killed; it ends with its input */
	(void)waitpid(child, NULL, 0);
	if (got == (ssize_t)sizeof(err))
		return denied(err, "exec %s", argv[1]);
	if (user == 0)
		return reached("%s runs as root", argv[1]);
	return user < 0 ? unclear("%s ended at once", argv[1])
			: denied(0, "%s runs as user %ld", argv[1], user);
}

const struct act setuid_acts[] = {
	{ "setuid_chmod", "chmod u+s", "plants a setuid file", setuid_chmod },
	{ "setgid_chmod", "chmod g+s", "plants a setgid file", setgid_chmod },
	{ "setuid_fchmod", "fchmod u+s", "plants a setuid file", setuid_fchmod },
	{ "setuid_fchmodat", "fchmodat u+s", "plants a setuid file", setuid_fchmodat },
	{ "setuid_fchmodat2", "fchmodat2 u+s", "plants a setuid file", setuid_fchmodat2 },
	{ "setuid_open", "open with mode u+s", "plants a setuid file", setuid_open },
	{ "setuid_openat", "openat with mode u+s", "plants a setuid file", setuid_openat },
	{ "setgid_openat", "openat with mode g+s", "plants a setgid file", setgid_openat },
	{ "setuid_openat2", "openat2 with mode u+s", "plants a setuid file", setuid_openat2 },
	{ "setuid_creat", "creat with mode u+s", "plants a setuid file", setuid_creat },
	{ "setuid_mknod", "mknod with mode u+s", "plants a setuid file", setuid_mknod },
	{ "setuid_mknodat", "mknodat with mode u+s", "plants a setuid file", setuid_mknodat },
	{ "setuid_tmpfile", "O_TMPFILE with mode u+s", "plants a setuid file", setuid_tmpfile },
	{ "plant_capability", "security.capability", "plants a file with capabilities",
	  plant_capability },
	{ "plant_label", "user.* and security.selinux", "plants a file with labels", plant_label },
	{ "run_setuid", "a setuid-root program", "becomes root by running it", run_setuid },
	{ NULL }
};
