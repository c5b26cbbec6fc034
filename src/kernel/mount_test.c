/* SPDX-License-Identifier: Apache-2.0 */
/* Each body is root of its own user and mount namespaces, on a tmpfs of its own: all undone by
 * exit. */
#include "kernel/child_test.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/skip_test.h"
#include "kernel/mount.h"

/* Enters new namespaces and a scratch tmpfs at /tmp, which is then the working directory. */
static void enter_scratch(int more_namespaces)
{
	become_inner_root(more_namespaces);
	MUST(mount("none", "/tmp", "tmpfs", 0, NULL) == 0);
	MUST(chdir("/tmp") == 0);
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	MUST(fd >= 0);
	(void)close(fd); /* nothing written */
}

static int here(void)
{
	int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	MUST(fd >= 0);
	return fd;
}

static unsigned long flags_of(const char *path)
{
	struct statvfs fs;

	MUST(statvfs(path, &fs) == 0);
	return fs.f_flag;
}

/* ---- tmpfs --------------------------------------------------------------------------------- */

static void bounds_hold(void *arg)
{
	enum { BYTES = 1 << 20, INODES = 20 };
	static char block[64 << 10];
	struct vt_err err;
	char name[32];
	int64_t written = 0;
	ssize_t n;
	int made = 0;

	(void)arg;
	enter_scratch(0);
	MUST(mkdir("t", 0755) == 0);
	int fd = vt_mount_tmpfs(BYTES, INODES, &err);

	MUST(fd >= 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	MUST(vt_mount_attach(fd, here(), "t", &err) == 0);
	struct stat st;

	MUST(stat("t", &st) == 0 && (st.st_mode & 07777) == 0755);
	MUST((flags_of("t") & (ST_NOSUID | ST_NODEV)) == (ST_NOSUID | ST_NODEV));
	int file = open("t/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	while ((n = write(file, block, sizeof(block))) > 0)
		written += n;
	MUST(n < 0 && errno == ENOSPC);
	MUST(written > BYTES / 2 && written <= BYTES);
	MUST(close(file) == 0 && unlink("t/big") == 0);
	for (;; made++) {
		(void)snprintf(name, sizeof(name), "t/%d", made); /* fits */
		file = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (file < 0)
			break;
		(void)close(file); /* nothing written */
		MUST(made < INODES);
	}
	MUST(errno == ENOSPC && made > INODES / 2);
}

/* Zero means "no bound" to the kernel; nobody gets that by asking for nothing. */
static void no_tmpfs_without_bounds(void *arg)
{
	struct vt_err err;

	(void)arg;
	enter_scratch(0);
	MUST(vt_mount_tmpfs(0, 20, &err) == -EINVAL && err.step == VT_STEP_MOUNTS);
	MUST(vt_mount_tmpfs(1 << 20, 0, &err) == -EINVAL);
	MUST(vt_mount_tmpfs(-1, 20, &err) == -EINVAL);
}

static void test_tmpfs(void **state)
{
	(void)state;
	run_child(bounds_hold, NULL);
	run_child(no_tmpfs_without_bounds, NULL);
}

static void large_numbers(void *arg)
{
	struct vt_err err;
	struct statvfs fs;

	(void)arg;
	enter_scratch(0);
	AUTO_CLOSE int fd = vt_mount_tmpfs(INT64_C(12345) << 20, 1234567, &err);

	MUST(fd >= 0 && fstatvfs(fd, &fs) == 0);
	MUST(fs.f_blocks * fs.f_frsize == UINT64_C(12345) << 20);
	MUST(fs.f_files == 1234567);
}

static void test_tmpfs_numbers(void **state)
{
	(void)state;
	run_child(large_numbers, NULL);
}

static void tmpfs_refused(void *arg)
{
	struct vt_err err;

	(void)arg;
	MUST(vt_mount_tmpfs(1 << 20, 20, &err) == -EPERM);
	MUST(err.step == VT_STEP_MOUNTS);
}

static void test_tmpfs_refused(void **state)
{
	(void)state;
	if (geteuid() == 0)
		SKIP("root may mount");
	run_child(tmpfs_refused, NULL);
}

/* ---- proc ---------------------------------------------------------------------------------- */

static void proc_of_own(void *arg)
{
	struct vt_err err;
	char target[32] = "";
	int status;

	(void)arg;
	enter_scratch(CLONE_NEWPID);
	pid_t pid = fork();

	if (pid > 0) {
		MUST(waitpid(pid, &status, 0) == pid);
		_exit(status != 0);
	}
	MUST(mkdir("p", 0755) == 0);
	int fd = vt_mount_proc(false, &err);

	MUST(fd >= 0);
	MUST(vt_mount_attach(fd, here(), "p", &err) == 0);
	MUST(readlink("p/self", target, sizeof(target) - 1) == 1);
	MUST(strcmp(target, "1") == 0);
	MUST_FAIL(access("p/2", F_OK), ENOENT);
	MUST_FAIL(open("p/self/comm", O_WRONLY), EROFS);
	MUST((flags_of("p") & (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC)) ==
	     (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC));
}

static void test_proc(void **state)
{
	(void)state;
	run_child(proc_of_own, NULL);
}

/* ---- copying, checking, restricting -------------------------------------------------------- */

/* out/ with a file, and a mount in out/below with a file of its own. */
static void make_tree(void)
{
	MUST(mkdir("out", 0755) == 0 && mkdir("out/below", 0755) == 0 && mkdir("at", 0755) == 0);
	make_file("out/file");
	MUST(mount("none", "out/below", "tmpfs", 0, NULL) == 0);
	make_file("out/below/file");
}

static void restricts_all_below(void *arg)
{
	const struct vt_mount_traits read_only = { .idmap_fd = -1 };
	struct vt_err err;

	(void)arg;
	enter_scratch(0);
	make_tree();
	int fd = vt_mount_copy(AT_FDCWD, "out", &err);

	MUST(fd >= 0);
	MUST(vt_mount_restrict(fd, &read_only, "out", &err) == 0);
	MUST(vt_mount_attach(fd, here(), "at", &err) == 0);
	MUST(access("at/file", R_OK) == 0 && access("at/below/file", R_OK) == 0);
	MUST_FAIL(open("at/file", O_WRONLY), EROFS);
	MUST_FAIL(open("at/below/file", O_WRONLY), EROFS);
	MUST_FAIL(open("at/below/new", O_WRONLY | O_CREAT, 0644), EROFS);
	MUST((flags_of("at") & (ST_NOSUID | ST_NODEV)) == (ST_NOSUID | ST_NODEV));
	MUST((flags_of("at/below") & (ST_NOSUID | ST_NODEV)) == (ST_NOSUID | ST_NODEV));
	/* the original is as it was */
	MUST(!(flags_of("out") & ST_RDONLY));
	make_file("out/below/new");
}

static void writable_or_here(void *arg)
{
	const struct vt_mount_traits writable = { .writable = true, .idmap_fd = -1 };
	const struct vt_mount_traits only_here = { .here = true, .idmap_fd = -1 };
	struct vt_err err;

	(void)arg;
	enter_scratch(0);
	make_tree();
	int fd = vt_mount_copy(AT_FDCWD, "out", &err);

	MUST(vt_mount_restrict(fd, &writable, "out", &err) == 0);
	MUST(vt_mount_attach(fd, here(), "at", &err) == 0);
	make_file("at/new");
	make_file("at/below/new");
	MUST((flags_of("at/below") & (ST_NOSUID | ST_NODEV)) == (ST_NOSUID | ST_NODEV));
	MUST(vt_mount_restrict(fd, &only_here, "out", &err) == 0);
	MUST_FAIL(open("at/newer", O_WRONLY | O_CREAT, 0644), EROFS);
	make_file("at/below/newer");
}

static void devices(void *arg)
{
	const struct vt_mount_traits device = { .device = true, .writable = true, .idmap_fd = -1 };
	const struct vt_mount_traits plain = { .writable = true, .idmap_fd = -1 };
	struct vt_err err;

	(void)arg;
	enter_scratch(0);
	make_file("null");
	make_file("dead");
	int fd = vt_mount_copy(AT_FDCWD, "/dev/null", &err);
	int dead = vt_mount_copy(AT_FDCWD, "/dev/null", &err);

	MUST(vt_mount_restrict(fd, &device, "/dev/null", &err) == 0);
	MUST(vt_mount_restrict(dead, &plain, "/dev/null", &err) == 0);
	MUST(vt_mount_attach(fd, here(), "null", &err) == 0);
	MUST(vt_mount_attach(dead, here(), "dead", &err) == 0);
	MUST(open("null", O_RDWR | O_CLOEXEC) >= 0);
	MUST_FAIL(open("dead", O_RDWR), EACCES);
}

static void test_restrict(void **state)
{
	(void)state;
	run_child(restricts_all_below, NULL);
	run_child(writable_or_here, NULL);
	run_child(devices, NULL);
}

/* Between planning and mounting somebody puts another folder there. */
static void notices_a_swap(void *arg)
{
	struct vt_err err;
	struct stat seen;

	(void)arg;
	enter_scratch(0);
	MUST(mkdir("grant", 0755) == 0 && stat("grant", &seen) == 0);
	int fd = vt_mount_copy(AT_FDCWD, "grant", &err);

	MUST(vt_mount_check(fd, seen.st_dev, seen.st_ino, "grant", &err) == 0);
	MUST(vt_mount_check(fd, seen.st_dev + 1, seen.st_ino, "grant", &err) == -ESTALE);
	MUST(vt_mount_check(fd, seen.st_dev, seen.st_ino + 1, "grant", &err) == -ESTALE);
	(void)close(fd);
	MUST(rename("grant", "gone") == 0 && symlink("/etc", "grant") == 0);
	fd = vt_mount_copy(AT_FDCWD, "grant", &err);
	MUST(fd >= 0);
	MUST(vt_mount_check(fd, seen.st_dev, seen.st_ino, "grant", &err) == -ESTALE);
	MUST(err.step == VT_STEP_MOUNTS && strstr(err.what, "'grant'"));
	MUST(unlink("grant") == 0);
	MUST(vt_mount_copy(AT_FDCWD, "grant", &err) == -ENOENT);
	MUST(err.step == VT_STEP_MOUNTS && strstr(err.what, "'grant'"));
}

static void test_check(void **state)
{
	(void)state;
	run_child(notices_a_swap, NULL);
}

/* ---- attaching ----------------------------------------------------------------------------- */

/* What a granted folder holds is its owner's: a link in it must not lead a mount astray. */
static void follows_no_link(void *arg)
{
	static const char *const astray[] = { "link", "link/below", "up", "up/tmp", "out/self" };
	struct vt_err err;

	(void)arg;
	enter_scratch(0);
	MUST(mkdir("root", 0755) == 0 && mkdir("root/out", 0755) == 0);
	MUST(mkdir("root/out/below", 0755) == 0);
	MUST(symlink("out", "root/link") == 0 && symlink("..", "root/up") == 0);
	MUST(symlink("/proc/self/cwd", "root/out/self") == 0);
	int root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(astray) / sizeof(astray[0]); i++) {
		AUTO_CLOSE int fd = vt_mount_tmpfs(1 << 20, 20, &err);

		MUST(vt_mount_attach_nested(fd, root, astray[i], &err) == -ELOOP);
		MUST(err.step == VT_STEP_MOUNTS);
	}
	AUTO_CLOSE int absent = vt_mount_tmpfs(1 << 20, 20, &err);

	MUST(vt_mount_attach_nested(absent, root, "absent", &err) == -ENOENT);
	int fd = vt_mount_tmpfs(1 << 20, 20, &err);

	/* ".." stops at the root that it was given */
	MUST(vt_mount_attach_nested(fd, root, "../../out/below", &err) == 0);
	make_file("root/out/below/file");
	struct stat outside, inside;

	MUST(stat("root/out", &outside) == 0 && stat("root/out/below", &inside) == 0);
	MUST(outside.st_dev != inside.st_dev);
}

static void folder_on_file(void *arg)
{
	struct vt_err err;

	(void)arg;
	enter_scratch(0);
	make_file("file");
	int fd = vt_mount_tmpfs(1 << 20, 20, &err);

	MUST(vt_mount_attach(fd, AT_FDCWD, "file", &err) <
	     0); /* which errno depends on the kernel */
	MUST(err.step == VT_STEP_MOUNTS && strstr(err.what, "'file'"));
}

static void test_attach(void **state)
{
	(void)state;
	run_child(follows_no_link, NULL);
	run_child(folder_on_file, NULL);
}

/* ---- the root ------------------------------------------------------------------------------ */

static void leaves_nothing(void *arg)
{
	struct vt_err err;
	char table[4096];

	(void)arg;
	enter_scratch(CLONE_NEWPID);
	int status;
	pid_t pid = fork(); /* into the new pid namespace, for its proc */

	if (pid > 0) {
		MUST(waitpid(pid, &status, 0) == pid);
		_exit(status != 0);
	}
	AUTO_CLOSE int old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int root = vt_mount_tmpfs(1 << 20, 20, &err);

	MUST(root >= 0);
	MUST(vt_mount_attach(root, old, ".", &err) == 0);
	MUST(mkdirat(root, "proc", 0755) == 0);
	MUST(vt_mount_attach(vt_mount_proc(false, &err), root, "proc", &err) == 0);
	MUST(access("/etc/passwd", F_OK) == 0); /* the control */
	MUST(vt_mount_enter_root(root, &err) == 0);
	MUST_FAIL(access("/etc", F_OK), ENOENT);
	MUST_FAIL(access("../../usr", F_OK), ENOENT);
	char where[64];

	MUST(getcwd(where, sizeof(where)) && strcmp(where, "/") == 0);
	read_own("/proc/self/mountinfo", table, sizeof(table));
	int mounts = 0;

	for (const char *at = table; (at = strchr(at, '\n')); at++)
		mounts++;
	MUST(mounts == 2); /* the root and its proc */
}

static void cannot_enter(void *arg)
{
	struct vt_err err;

	(void)arg;
	enter_scratch(0);
	MUST(mkdir("plain", 0755) == 0);
	int fd = open("plain", O_PATH | O_DIRECTORY | O_CLOEXEC);

	MUST(vt_mount_enter_root(fd, &err) == -EINVAL); /* not a mount point */
	MUST(err.step == VT_STEP_MOUNTS);
	MUST(access("/etc/passwd", F_OK) == 0);
}

static void test_enter_root(void **state)
{
	(void)state;
	run_child(leaves_nothing, NULL);
	run_child(cannot_enter, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tmpfs),         cmocka_unit_test(test_tmpfs_numbers),
		cmocka_unit_test(test_tmpfs_refused), cmocka_unit_test(test_proc),
		cmocka_unit_test(test_restrict),      cmocka_unit_test(test_check),
		cmocka_unit_test(test_attach),        cmocka_unit_test(test_enter_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
