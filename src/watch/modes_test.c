/* SPDX-License-Identifier: Apache-2.0 */
/* Callers that wait at a real filter, and the thread that answers: between folders of a test's own.
 */
#include "watch/caller_test.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "kernel/caps.h"
#include "kernel/seccomp.h"
#include "watch/modes.h"

enum { OLD = 0640, NEW = 0751 };

/* "own" is the private folder, "granted" can be written, "other" is anything else of the caller's.
 */
struct stage {
	char base[64];
	int scratch_fd;
	struct vt_build build;
	struct vt_plan plan;
	struct vt_loop loop;
	struct vt_modes modes;
	struct vt_err err;
};

static void set(struct stage *stage)
{
	static const char *const folders[] = { "own", "granted", "granted/sub", "other" };
	static const char *const files[] = { "own/file", "granted/file", "granted/sub/file",
					     "other/file" };
	static char from[96];
	struct stat st;

	*stage = (struct stage){ .base = "/tmp/test-modes-XXXXXX" };
	MUST(mkdtemp(stage->base) && chdir(stage->base) == 0);
	for (size_t i = 0; i < 4; i++) {
		int fd;

		MUST(mkdir(folders[i], 0755) == 0);
		MUST((fd = open(files[i], O_CREAT | O_WRONLY | O_CLOEXEC, OLD)) >= 0);
		MUST(fchmod(fd, OLD) == 0 && close(fd) == 0);
	}
	MUST(symlink("../other/file", "granted/out") == 0);
	MUST(symlink("../other", "granted/away") == 0);
	MUST(symlink("sub/file", "granted/in") == 0);
	stage->scratch_fd = open("own", O_PATH | O_DIRECTORY | O_CLOEXEC);
	MUST(stage->scratch_fd >= 0 && stat("granted", &st) == 0);
	(void)snprintf(from, sizeof(from), "%s/granted", stage->base); /* fits */
	stage->build = (struct vt_build){ .act = VT_ACT_BIND,
					  .from = from,
					  .writable = true,
					  .dev = st.st_dev,
					  .ino = st.st_ino };
	stage->plan = (struct vt_plan){ .bare = true, .builds = &stage->build, .build_count = 1 };
	stage->plan.broker = (struct vt_brokered){ .on = true, .modes = true };
	MUST(vt_loop_init(&stage->loop, &stage->err) == 0);
}

static void clear(const struct stage *stage)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", stage->base); /* fits */
	MUST(chdir("/") == 0 && system(command) == 0);
}

/* Without capabilities, as in a cell: else a thread without them could not look at it. */
static int filter_modes(struct vt_err *err)
{
	MUST(vt_caps_empty(err) == 0);
	return vt_seccomp_listen(vt_seccomp_addon(VT_SECCOMP_OWNER, VT_SOCKETS_BROKERED), err);
}

/* Runs act in a process under the filter, and the supervisor's part beside it. */
static void answer_for(struct stage *stage, void (*act)(void *))
{
	struct caller caller;
	int listener = start_caller(&caller, filter_modes, act, stage);

	MUST(vt_modes_listen(&stage->modes, &stage->loop, &stage->plan, listener, stage->scratch_fd,
			     &stage->err) == 0);
	see_caller_out(&caller, &stage->loop);
	vt_modes_done(&stage->modes);
	vt_modes_done(&stage->modes);
	MUST(!stage->modes.work);
	vt_loop_done(&stage->loop);
	clear(stage);
}

static bool has_mode(const char *path, mode_t mode)
{
	struct stat st;

	MUST(stat(path, &st) == 0);
	return (st.st_mode & 07777) == mode;
}

static bool has_time(const char *path, time_t seconds)
{
	struct stat st;

	MUST(lstat(path, &st) == 0);
	return st.st_mtim.tv_sec == seconds;
}

static int at_fd(int fd, mode_t mode)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* fits */
	return chmod(path, mode);
}

static void change_modes(void *arg)
{
	const struct stage *stage = arg;
	int folder = open("granted", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int file = open("own/file", O_RDONLY | O_CLOEXEC);
	int path = open("granted/file", O_PATH | O_CLOEXEC);

	MUST(folder >= 0 && file >= 0 && path >= 0);
	MUST(chmod("granted/file", NEW) == 0 && has_mode("granted/file", NEW));
	MUST(chmod("other/../granted/./file", OLD) == 0 && has_mode("granted/file", OLD));
	MUST(chmod("granted/in", NEW) == 0 && has_mode("granted/sub/file", NEW));
	MUST(fchmodat(folder, "sub/file", OLD, 0) == 0 && has_mode("granted/sub/file", OLD));
	MUST(fchmod(file, NEW) == 0 && has_mode("own/file", NEW));
	MUST(at_fd(path, NEW) == 0 && has_mode("granted/file", NEW));
	MUST(fchmodat(folder, "file", OLD, AT_SYMLINK_NOFOLLOW) == 0);
	MUST(has_mode("granted/file", OLD));
	MUST(chdir("own") == 0 && chmod("file", 01600) == 0 && has_mode("file", 01600));
	MUST(mkdir("new", 0700) == 0 && chmod("new", 0555) == 0 && has_mode("new", 0555));
	MUST(chmod("new", 0700) == 0);
	MUST(chdir(stage->base) == 0 && chmod("granted/sub", 0) == 0 &&
	     chmod("granted/sub", 0700) == 0);
}

static void test_modes(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	answer_for(&stage, change_modes);
}

static void change_times(void *arg)
{
	const struct timespec then[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000, .tv_nsec = 5 } };
	const struct timespec partly[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 3000 } };
	int file = open("own/file", O_RDONLY | O_CLOEXEC);

	(void)arg;
	MUST(utimensat(AT_FDCWD, "granted/file", then, 0) == 0 && has_time("granted/file", 2000));
	MUST(utimensat(AT_FDCWD, "granted/file", partly, 0) == 0 && has_time("granted/file", 3000));
	MUST(futimens(file, then) == 0 && has_time("own/file", 2000));
	MUST(futimens(file, NULL) == 0 && !has_time("own/file", 2000));
	/* The link itself, which lies inside, wherever it leads. */
	MUST(utimensat(AT_FDCWD, "granted/out", then, AT_SYMLINK_NOFOLLOW) == 0);
	MUST(has_time("granted/out", 2000) && !has_time("other/file", 2000));
	MUST(syscall(SYS_utimensat, file, "", then, AT_EMPTY_PATH) == 0);
	MUST(has_time("own/file", 2000));
}

static void test_times(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	answer_for(&stage, change_times);
}

static void reach_out(void *arg)
{
	const struct stage *stage = arg;
	const struct timespec then[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	int folder = open("granted", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int other = open("other/file", O_RDWR | O_CLOEXEC);
	char path[PATH_MAX];

	MUST(folder >= 0 && other >= 0);
	MUST_FAIL(chmod("other/file", NEW), EPERM);
	MUST_FAIL(chmod("granted/out", NEW), EPERM);
	MUST_FAIL(chmod("granted/away/file", NEW), EPERM);
	MUST_FAIL(chmod("granted/../other/file", NEW), EPERM);
	MUST_FAIL(fchmodat(folder, "../other/file", NEW, 0), EPERM);
	MUST_FAIL(fchmod(other, NEW), EPERM);
	MUST_FAIL(at_fd(other, NEW), EPERM);
	MUST_FAIL(futimens(other, then), EPERM);
	MUST_FAIL(utimensat(AT_FDCWD, "other/file", then, 0), EPERM);
	MUST_FAIL(utimensat(AT_FDCWD, "granted/out", then, 0), EPERM);
	MUST_FAIL(utimensat(AT_FDCWD, "other", NULL, 0), EPERM);
	(void)snprintf(path, sizeof(path), "/proc/%d/root%s/granted/file", getpid(), stage->base);
	MUST_FAIL(chmod(path, NEW), ELOOP);
	(void)snprintf(path, sizeof(path), "/proc/%d/cwd/other/file", getpid()); /* both fit */
	MUST_FAIL(chmod(path, NEW), ELOOP);
	/* "grantedness" begins as the folder's name does. */
	MUST(mkdir("grantedness", 0755) == 0);
	MUST_FAIL(chmod("grantedness", 0700), EPERM);
	/* The folders themselves. */
	MUST_FAIL(chmod("granted", 0700), EPERM);
	MUST_FAIL(chmod("own", 0700), EPERM);
	MUST_FAIL(fchmod(folder, 0700), EPERM);
	MUST_FAIL(utimensat(AT_FDCWD, "granted/.", NULL, 0), EPERM);
	MUST(has_mode("other/file", OLD) && !has_time("other/file", 2000));
}

static void test_outside(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	answer_for(&stage, reach_out);
}

/* What would not be a file's own, and what nobody could look into any more. */
static void ask_too_much(void *arg)
{
	int pipe_fds[2], memory = memfd_create("memory", MFD_CLOEXEC);
	int gone = open("own/gone", O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	(void)arg;
	MUST(pipe2(pipe_fds, O_CLOEXEC) == 0 && memory >= 0 && gone >= 0);
	MUST(unlink("own/gone") == 0 && mkdir("own/sub", 0700) == 0);
	MUST_FAIL(chmod("own/file", 04755), EPERM);
	MUST_FAIL(chmod("own/file", 02755), EPERM);
	MUST_FAIL(fchmod(pipe_fds[0], 0600), EPERM);
	MUST_FAIL(fchmod(memory, 0600), EPERM);
	MUST_FAIL(fchmod(gone, 0600), EPERM);
	MUST_FAIL(chmod("own/sub", 0), EPERM);
	MUST_FAIL(chmod("own/sub", 0300), EPERM);
	MUST(has_mode("own/sub", 0700) && has_mode("own/file", OLD));
}

static void test_too_much(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	answer_for(&stage, ask_too_much);
}

static void ask_nonsense(void *arg)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char longer[PATH_MAX + 1];

	(void)arg;
	MUST(pages != MAP_FAILED && mprotect(pages + 4096, 4096, PROT_NONE) == 0);
	memset(longer, 'x', PATH_MAX);
	MUST_FAIL(chmod("granted/none", NEW), ENOENT);
	MUST_FAIL(chmod("", NEW), ENOENT);
	MUST_FAIL(chmod("granted/file/x", NEW), ENOTDIR);
	MUST_FAIL(chmod(longer, NEW), ENAMETOOLONG);
	MUST_FAIL(chmod((const char *)1, NEW), EFAULT);
	MUST_FAIL(fchmod(-1, NEW), EBADF);
	MUST_FAIL(fchmod(AT_FDCWD, NEW), EBADF);
	MUST_FAIL(fchmod(999, NEW), EBADF);
	MUST_FAIL(at_fd(999, NEW), EBADF);
	MUST_FAIL(fchmodat(999, "file", NEW, 0), EBADF);
	MUST_FAIL(syscall(SYS_utimensat, AT_FDCWD, "granted/file", NULL, 1), EINVAL);
	MUST_FAIL(syscall(SYS_utimensat, AT_FDCWD, NULL, NULL, 0), EFAULT);
	MUST_FAIL(syscall(SYS_utimensat, AT_FDCWD, "granted/file", 1, 0), EFAULT);
	/* A text that ends where its page does, and one that does not. */
	memcpy(pages + 4096 - sizeof("granted/file"), "granted/file", sizeof("granted/file"));
	MUST(chmod(pages + 4096 - sizeof("granted/file"), NEW) == 0);
	memset(pages + 4000, 'x', 96);
	MUST_FAIL(chmod(pages + 4000, NEW), EFAULT);
	MUST(mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE) == 0);
	memcpy(pages + 4090, "granted/file", sizeof("granted/file"));
	MUST(chmod(pages + 4090, OLD) == 0 && has_mode("granted/file", OLD));
}

static void test_nonsense(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	answer_for(&stage, ask_nonsense);
}

static void be_refused(void *arg)
{
	(void)arg;
	MUST_FAIL(chmod("granted/file", NEW), EPERM);
	MUST(chmod("own/file", NEW) == 0);
}

/* A folder that took the place of the one that the plan saw is not granted. */
static void test_another_folder(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	stage.build.ino++;
	answer_for(&stage, be_refused);
}

static void test_read_only(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	stage.build.writable = false;
	answer_for(&stage, be_refused);
}

/* The folder goes where the cell may take it, and what lies in it goes along. */
static void move_folder(void *arg)
{
	(void)arg;
	MUST(chmod("granted/file", NEW) == 0);
	MUST(rename("granted", "moved") == 0 && symlink("other", "granted") == 0);
	MUST_FAIL(chmod("granted/file", NEW), EPERM);
	MUST(chmod("moved/file", OLD) == 0 && has_mode("moved/file", OLD));
	MUST(has_mode("other/file", OLD));
}

static void test_moved(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	answer_for(&stage, move_folder);
}

static void flood(void *arg)
{
	int status;

	(void)arg;
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();

		MUST(pid >= 0);
		for (int j = 0; pid == 0 && j < 100; j++)
			MUST(chmod("granted/file", (mode_t)(0600 + j % 64)) == 0);
		if (pid == 0)
			_exit(0);
	}
	for (int i = 0; i < 40; i++)
		MUST(wait(&status) > 0 && status == 0);
}

/* All get their answer, though one after the other. */
static void test_flood(void *arg)
{
	struct stage stage;

	(void)arg;
	set(&stage);
	answer_for(&stage, flood);
}

static void outlast(void *arg)
{
	struct stage *stage = arg;

	MUST(chmod("granted/file", NEW) == 0);
	MUST(write(stage->scratch_fd, "", 1) == 1); /* a pipe, here */
	while (chmod("granted/file", NEW) == 0)
		;
	MUST(errno == ENOSYS);
}

static void told(struct vt_watch *source, uint32_t events)
{
	struct stage *stage = source->owner;

	(void)events;
	vt_loop_remove(&stage->loop, source);
	vt_modes_stop(&stage->modes);
	vt_modes_stop(&stage->modes);
}

/* Once it is told to end, nobody waits any more. */
static void test_stop(void *arg)
{
	struct stage stage;
	int fds[2];

	(void)arg;
	set(&stage);
	MUST(pipe2(fds, O_CLOEXEC) == 0);
	struct vt_watch word = { .fd = fds[0], .ready = told, .owner = &stage };

	MUST(vt_loop_add(&stage.loop, &word, EPOLLIN, &stage.err) == 0);
	stage.scratch_fd = fds[1]; /* where nothing lies inside of */
	answer_for(&stage, outlast);
}

/* One that was never needed, and one that nobody asked anything. */
static void test_unused(void *arg)
{
	struct vt_modes modes = { 0 };
	struct vt_plan plan = { 0 };
	struct vt_loop loop;
	struct vt_err err;
	int fds[2];

	(void)arg;
	vt_modes_stop(&modes);
	vt_modes_done(&modes);
	MUST(pipe2(fds, O_CLOEXEC) == 0 && vt_loop_init(&loop, &err) == 0);
	MUST(vt_modes_listen(&modes, &loop, &plan, fds[0], -1, &err) == 0);
	vt_modes_stop(&modes);
	vt_modes_done(&modes);
	MUST_FAIL(fcntl(fds[0], F_GETFD), EBADF);
	vt_loop_done(&loop);
}

#define IN_CHILD(name)                            \
	static void name##_in_child(void **state) \
	{                                         \
		(void)state;                      \
		run_child(name, NULL);            \
	}

IN_CHILD(test_modes)
IN_CHILD(test_times)
IN_CHILD(test_outside)
IN_CHILD(test_too_much)
IN_CHILD(test_nonsense)
IN_CHILD(test_another_folder)
IN_CHILD(test_read_only)
IN_CHILD(test_moved)
IN_CHILD(test_flood)
IN_CHILD(test_stop)
IN_CHILD(test_unused)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes_in_child),
		cmocka_unit_test(test_times_in_child),
		cmocka_unit_test(test_outside_in_child),
		cmocka_unit_test(test_too_much_in_child),
		cmocka_unit_test(test_nonsense_in_child),
		cmocka_unit_test(test_another_folder_in_child),
		cmocka_unit_test(test_read_only_in_child),
		cmocka_unit_test(test_moved_in_child),
		cmocka_unit_test(test_flood_in_child),
		cmocka_unit_test(test_stop_in_child),
		cmocka_unit_test(test_unused_in_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
