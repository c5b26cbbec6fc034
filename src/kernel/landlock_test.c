/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/child_test.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/skip_test.h"
#include "kernel/landlock.h"
#include "uapi/landlock.h"

static int kernel_abi(void)
{
	return sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

#define NEEDS_ABI(wanted)                                                              \
	do {                                                                           \
		if (kernel_abi() < (wanted))                                           \
			SKIP("this kernel's Landlock is older than ABI %d", (wanted)); \
	} while (0)

static void test_rights_by_abi(void **state)
{
	const struct {
		int abi;
		uint64_t fs, net, scoped;
	} rows[] = {
		{ -1, 0, 0, 0 },        { 0, 0, 0, 0 },      { 1, 0x1fff, 0, 0 },
		{ 2, 0x3fff, 0, 0 },    { 3, 0x7fff, 0, 0 }, { 4, 0x7fff, 3, 0 },
		{ 5, 0xffff, 3, 0 },    { 6, 0xffff, 3, 3 }, { 7, 0xffff, 3, 3 },
		{ 1000, 0xffff, 3, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vt_landlock_abi rights = vt_landlock_rights(rows[i].abi);

		assert_int_equal(rights.fs, rows[i].fs);
		assert_int_equal(rights.net, rows[i].net);
		assert_int_equal(rights.scoped, rows[i].scoped);
	}
}

/* Reading and writing do not overlap, and neither makes device nodes nor talks to devices. */
static void test_read_and_write(void **state)
{
	(void)state;
	assert_int_equal(vt_landlock_read() & vt_landlock_write(), 0);
	assert_int_equal((vt_landlock_read() | vt_landlock_write()) &
				 (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
				  LANDLOCK_ACCESS_FS_IOCTL_DEV),
			 0);
	assert_int_equal((vt_landlock_read() | vt_landlock_write()) |
				 (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
				  LANDLOCK_ACCESS_FS_IOCTL_DEV),
			 vt_landlock_rights(1000).fs);
}

/* Every row that this kernel knows is one that it takes. */
static void test_kernel_takes_the_table(void **state)
{
	struct vt_err err = { 0 };

	(void)state;
	NEEDS_ABI(1);
	for (int abi = 1; abi <= kernel_abi(); abi++) {
		struct vt_landlock_abi rights = vt_landlock_rights(abi);
		AUTO_CLOSE int ruleset = vt_landlock_new(&rights, &err);

		assert_true(ruleset >= 0);
		assert_true(fcntl(ruleset, F_GETFD) & FD_CLOEXEC);
	}
	const struct vt_landlock_abi unknown = { .fs = UINT64_C(1) << 63 };

	assert_int_equal(vt_landlock_new(&unknown, &err), -EINVAL);
	assert_int_equal(err.step, VT_STEP_LANDLOCK);
}

/* A folder with open/ and shut/, each with a file. */
static int make_places(void **state)
{
	char *top = strdup("/tmp/vitro-landlock-XXXXXX");
	char path[128];

	if (!top || !mkdtemp(top))
		return -1;
	*state = top;
	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", top, i ? "open" : "shut"); /* fits */
		if (mkdir(path, 0755) < 0)
			return -1;
		strcat(path, "/file");
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		if (fd < 0 || write(fd, "text", 4) != 4)
			return -1;
		(void)close(fd); /* written */
	}
	return 0;
}

static int drop_places(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state); /* fits */
	free(*state);
	return system(command);
}

static void can(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);

	MUST(fd >= 0);
	(void)close(fd); /* nothing written */
}

/* A ruleset of all that this kernel handles. */
static int new_ruleset(void)
{
	struct vt_err err;
	struct vt_landlock_abi handled = vt_landlock_rights(kernel_abi());
	int ruleset = vt_landlock_new(&handled, &err);

	MUST(ruleset >= 0);
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	return ruleset;
}

static uint64_t known(uint64_t rights)
{
	return rights & vt_landlock_rights(kernel_abi()).fs;
}

static void denies_outside(void *arg)
{
	struct vt_err err;

	MUST(chdir(arg) == 0);
	int ruleset = new_ruleset();
	int top = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	MUST(vt_landlock_allow(ruleset, top, "open", known(vt_landlock_read()), &err) == 0);
	/* the control: before, everything works */
	can("open/file", O_RDONLY);
	can("open/file", O_RDWR);
	can("shut/file", O_RDWR);
	can("shut", O_RDONLY | O_DIRECTORY);
	MUST(vt_landlock_enter(ruleset, &err) == 0);
	can("open/file", O_RDONLY);
	can("open", O_RDONLY | O_DIRECTORY);
	MUST_FAIL(open("open/file", O_RDWR), EACCES);
	MUST_FAIL(open("open/new", O_WRONLY | O_CREAT, 0644), EACCES);
	MUST_FAIL(truncate("open/file", 0), EACCES);
	MUST_FAIL(open("shut/file", O_RDONLY), EACCES);
	MUST_FAIL(open("shut", O_RDONLY | O_DIRECTORY), EACCES);
	MUST_FAIL(unlink("shut/file"), EACCES);
	MUST_FAIL(open("/etc/passwd", O_RDONLY), EACCES);
}

static void test_denies_outside(void **state)
{
	NEEDS_ABI(3);
	run_child(denies_outside, *state);
}

static void allows_writing(void *arg)
{
	struct vt_err err;

	MUST(chdir(arg) == 0);
	int ruleset = new_ruleset();
	int open_fd = open("open", O_PATH | O_DIRECTORY | O_CLOEXEC);
	uint64_t rights = known(vt_landlock_read() | vt_landlock_write());

	/* "" is the folder itself */
	MUST(vt_landlock_allow(ruleset, open_fd, "", rights, &err) == 0);
	MUST(vt_landlock_enter(ruleset, &err) == 0);
	can("open/file", O_RDWR | O_TRUNC);
	can("open/new", O_WRONLY | O_CREAT | O_EXCL);
	MUST(mkdir("open/folder", 0755) == 0);
	MUST(rename("open/new", "open/folder/new") == 0);
	MUST(unlink("open/folder/new") == 0);
	MUST(rmdir("open/folder") == 0);
	MUST(symlink("x", "open/link") == 0);
	MUST(unlink("open/link") == 0);
	MUST(mkfifo("open/fifo", 0644) == 0);
	MUST(unlink("open/fifo") == 0);
	MUST_FAIL(mknod("open/dev", S_IFCHR | 0666, 0), EACCES);
	MUST_FAIL(link("open/file", "shut/file2"), EACCES);
}

static void test_allows_writing(void **state)
{
	NEEDS_ABI(3);
	run_child(allows_writing, *state);
}

/* The kernel takes only rights that make sense for a file. */
static void allows_one_file(void *arg)
{
	struct vt_err err;

	MUST(chdir(arg) == 0);
	int ruleset = new_ruleset();
	uint64_t rights = known(vt_landlock_read() | vt_landlock_write());

	MUST(vt_landlock_allow(ruleset, AT_FDCWD, "shut/file", rights, &err) == 0);
	MUST(vt_landlock_enter(ruleset, &err) == 0);
	can("shut/file", O_RDWR | O_TRUNC);
	MUST_FAIL(unlink("shut/file"), EACCES);
	MUST_FAIL(open("open/file", O_RDONLY), EACCES);
}

static void test_allows_one_file(void **state)
{
	NEEDS_ABI(3);
	run_child(allows_one_file, *state);
}

static void is_told_failures(void *arg)
{
	struct vt_err err = { 0 };
	struct vt_landlock_abi handled = vt_landlock_rights(1);

	MUST(chdir(arg) == 0);
	int ruleset = vt_landlock_new(&handled, &err);
	int before = count_fds();

	MUST(vt_landlock_allow(ruleset, AT_FDCWD, "absent", 1, &err) == -ENOENT);
	MUST(err.step == VT_STEP_LANDLOCK && strstr(err.what, "absent"));
	/* a right that the ruleset does not handle */
	MUST(vt_landlock_allow(ruleset, AT_FDCWD, "open", LANDLOCK_ACCESS_FS_TRUNCATE, &err) ==
	     -EINVAL);
	MUST(count_fds() == before);
	if (geteuid() != 0) /* root needs no no_new_privs for it */
		MUST(vt_landlock_enter(ruleset, &err) == -EPERM);
	MUST(vt_landlock_enter(-1, &err) < 0);
	can("shut/file", O_RDWR);
}

static void test_failures(void **state)
{
	NEEDS_ABI(3);
	run_child(is_told_failures, *state);
}

/* An abstract socket of the host is out of reach, its own is not. */
static void is_scoped(void *arg)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(sa_family_t);
	struct vt_err err;

	(void)arg;
	AUTO_CLOSE int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO_CLOSE int before = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO_CLOSE int after = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(bind(listener, (struct sockaddr *)&name, len) ==
	     0); /* a name of the kernel's choice */
	len = sizeof(name);
	MUST(getsockname(listener, (struct sockaddr *)&name, &len) == 0);
	MUST(listen(listener, 5) == 0);
	MUST(connect(before, (struct sockaddr *)&name, len) == 0);
	MUST(vt_landlock_enter(new_ruleset(), &err) == 0);
	MUST_FAIL(connect(after, (struct sockaddr *)&name, len), EPERM);
}

static void test_abstract_sockets(void **state)
{
	(void)state;
	NEEDS_ABI(6);
	run_child(is_scoped, NULL);
}

/* By an absolute path, through links, to the very file or folder that was seen before. */
static void allows_inode(void *arg)
{
	char path[128], link[128];
	struct vt_err err = { 0 };
	struct stat st;

	MUST(chdir(arg) == 0);
	int ruleset = new_ruleset();
	uint64_t rights = known(vt_landlock_read() | vt_landlock_write());

	(void)snprintf(path, sizeof(path), "%s/open", (char *)arg); /* fits */
	(void)snprintf(link, sizeof(link), "%s/link", (char *)arg); /* fits */
	MUST(symlink(path, link) == 0 && stat(path, &st) == 0);
	MUST(vt_landlock_allow_inode(ruleset, path, st.st_dev, st.st_ino + 1, rights, &err) ==
	     -ESTALE);
	MUST(vt_landlock_allow_inode(ruleset, path, st.st_dev + 1, st.st_ino, rights, &err) ==
	     -ESTALE);
	MUST(err.step == VT_STEP_LANDLOCK && strstr(err.what, path));
	MUST(vt_landlock_allow_inode(ruleset, "/no/such", 0, 0, rights, &err) == -ENOENT);
	MUST(vt_landlock_allow_inode(ruleset, link, st.st_dev, st.st_ino, rights, &err) == 0);
	/* No number stands for any file. */
	MUST(vt_landlock_allow_inode(ruleset, path, 0, 0, rights, &err) == -ESTALE);
	/* A file takes what makes sense for files of the same rights. */
	AUTO_CLOSE int file = open("/etc/passwd", O_PATH | O_CLOEXEC);

	MUST(file >= 0 && vt_landlock_allow_fd(ruleset, file, rights, "it", &err) == 0);
	MUST(vt_landlock_allow_fd(ruleset, -1, rights, "it", &err) == -EBADF);
	MUST(unlink(link) == 0);
	MUST(vt_landlock_enter(ruleset, &err) == 0);
	can("open/file", O_RDWR);
	can("/etc/passwd", O_RDONLY);
	MUST_FAIL(open("shut/file", O_RDONLY), EACCES);
	MUST_FAIL(open("/etc/group", O_RDONLY), EACCES);
}

static void test_allows_inode(void **state)
{
	NEEDS_ABI(3);
	run_child(allows_inode, *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rights_by_abi),
		cmocka_unit_test(test_read_and_write),
		cmocka_unit_test(test_kernel_takes_the_table),
		cmocka_unit_test_setup_teardown(test_denies_outside, make_places, drop_places),
		cmocka_unit_test_setup_teardown(test_allows_writing, make_places, drop_places),
		cmocka_unit_test_setup_teardown(test_allows_one_file, make_places, drop_places),
		cmocka_unit_test_setup_teardown(test_allows_inode, make_places, drop_places),
		cmocka_unit_test_setup_teardown(test_failures, make_places, drop_places),
		cmocka_unit_test(test_abstract_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
