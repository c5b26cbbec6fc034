/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/child_test.h"

#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/skip_test.h"
#include "kernel/ns.h"

/* Ends a child of vt_ns_clone(), and says how it ended. */
static int reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	return status;
}

static void test_child_in_its_namespaces(void **state)
{
	struct vt_err err;
	int pidfd = -1;
	pid_t pid = vt_ns_clone(CLONE_NEWUSER | CLONE_NEWPID, -1, &pidfd, &err);

	(void)state;
	if (pid == 0)
		_exit(getpid() == 1 ? 7 : 8);
	assert_true(pid > 0);
	assert_true(pidfd >= 0);
	assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	assert_int_equal(poll(&ended, 1, 5000), 1);
	assert_int_equal(WEXITSTATUS(reap(pid)), 7);
	(void)close(pidfd);
}

static void test_clone_refused(void **state)
{
	struct vt_err err = { 0 };
	int pidfd = -5;

	(void)state;
	int before = count_fds();
	/* The kernel refuses the two together. */
	pid_t pid = vt_ns_clone(CLONE_NEWUSER | CLONE_FS, -1, &pidfd, &err);

	if (pid == 0)
		_exit(1);
	assert_int_equal(pid, -EINVAL);
	assert_int_equal(err.num, EINVAL);
	assert_int_equal(err.step, VT_STEP_CLONE);
	assert_int_equal(pidfd, -5);
	assert_int_equal(count_fds(), before);
}

static void never(int number)
{
	(void)number;
	_exit(9);
}

/* The caller's handlers are the caller's code: they do not run in a cell's init. */
static void clone_with_handler(void *arg)
{
	struct sigaction old, handler = { .sa_handler = never };
	struct vt_err err;
	int pidfd = -1, status;

	(void)arg;
	MUST(sigaction(SIGUSR1, &handler, NULL) == 0);
	pid_t pid = vt_ns_clone(0, -1, &pidfd, &err);

	if (pid == 0)
		_exit(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == SIG_DFL ? 0 : 1);
	MUST(pid > 0);
	MUST(waitpid(pid, &status, __WALL) == pid);
	MUST(status == 0);
	MUST(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == never);
}

static void test_handlers_stay_outside(void **state)
{
	(void)state;
	run_child(clone_with_handler, NULL);
}

/* A caller who ignores SIGCHLD, or waits for any child, does not take ours from us. */
static void clone_ignoring_children(void *arg)
{
	struct vt_err err;
	int pidfd = -1, status;

	(void)arg;
	MUST(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	pid_t pid = vt_ns_clone(0, -1, &pidfd, &err);

	if (pid == 0)
		_exit(3);
	MUST(pid > 0);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	MUST(poll(&ended, 1, 5000) == 1);
	MUST_FAIL(waitpid(-1, &status, WNOHANG), ECHILD);
	MUST(waitpid(pid, &status, __WALL) == pid);
	MUST(WEXITSTATUS(status) == 3);
}

static void test_child_is_not_the_callers(void **state)
{
	(void)state;
	run_child(clone_ignoring_children, NULL);
}

/* Clones into a user namespace a child that waits until `go` is closed, and then tries its ids. */
static pid_t clone_waiting(int *ret_go, int (*then)(void))
{
	struct vt_err err;
	AUTO_CLOSE int pidfd = -1;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid_t pid = vt_ns_clone(CLONE_NEWUSER, -1, &pidfd, &err);

	if (pid == 0) {
		char byte;

		(void)close(pair[0]);
		_exit(read(pair[1], &byte, 1) == 0 ? then() : 99);
	}
	assert_true(pid > 0);
	(void)close(pair[1]);
	*ret_go = pair[0];
	return pid;
}

static int is_user_1000(void)
{
	if (setresgid(1000, 1000, 1000) < 0 || setresuid(1000, 1000, 1000) < 0)
		return 1;
	if (getuid() != 1000 || getegid() != 1000)
		return 2;
	if (setresuid(1001, 1001, 1001) == 0) /* there is no such id here */
		return 3;
	return 0;
}

static int is_denied_setgroups(void)
{
	int r = is_user_1000();

	if (r)
		return r;
	return setgroups(0, NULL) < 0 && errno == EPERM ? 0 : 4;
}

static int can_drop_groups(void)
{
	if (setgroups(0, NULL) < 0 || getgroups(0, NULL) != 0)
		return 1;
	return is_user_1000();
}

static void test_own_id_is_mapped(void **state)
{
	struct vt_err err;
	int go;
	pid_t pid = clone_waiting(&go, is_denied_setgroups);
	int r = vt_ns_map_ids(pid, 1000, geteuid(), 1000, getegid(), false, &err);

	(void)state;
	(void)close(go);
	assert_int_equal(reap(pid), 0);
	assert_int_equal(r, 0);
}

static void test_other_id_is_mapped(void **state)
{
	struct vt_err err;
	int go;

	(void)state;
	NEEDS_ROOT();
	pid_t pid = clone_waiting(&go, can_drop_groups);
	int r = vt_ns_map_ids(pid, 1000, 0x70000001, 1000, 0x70000002, true, &err);

	(void)close(go);
	assert_int_equal(reap(pid), 0);
	assert_int_equal(r, 0);
}

/* Nobody maps an id that is not theirs; and the kernel's no is told as it is. */
static void test_map_refused(void **state)
{
	struct vt_err err = { 0 };
	int go;

	(void)state;
	if (geteuid() == 0)
		SKIP("root may map any id");
	pid_t pid = clone_waiting(&go, is_user_1000);
	int r = vt_ns_map_ids(pid, 1000, 0, 1000, getegid(), false, &err);

	(void)close(go);
	assert_int_equal(WEXITSTATUS(reap(pid)), 1);
	assert_int_equal(r, -EPERM);
	assert_int_equal(err.step, VT_STEP_IDS);
	assert_non_null(strstr(err.what, "uid_map"));
}

static void test_no_such_process(void **state)
{
	struct vt_err err = { 0 };

	(void)state;
	/* Pid numbers end at 2^22. */
	assert_int_equal(vt_ns_map_ids(1 << 23, 0, 0, 0, 0, false, &err), -ENOENT);
	assert_int_equal(err.step, VT_STEP_IDS);
}

/* ---- where clone3 is denied ---------------------------------------------------------------- */

/* What clone3 does, by clone: namespaces, a pidfd, and no signal at the end. */
static void clones_without_clone3(void *arg)
{
	unsigned num = *(unsigned *)arg;
	struct vt_err err = { 0 };
	int pidfd = -1, status;

	deny_call(SYS_clone3, num);
	MUST_FAIL(syscall(SYS_clone3, NULL, 0), (int)num);
	MUST(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	pid_t pid = vt_ns_clone(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWUTS, -1, &pidfd, &err);

	if (pid == 0)
		_exit(getpid() == 1 && sethostname("cell", 4) == 0 ? 7 : 8);
	MUST(pid > 0);
	MUST(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	MUST(poll(&ended, 1, 5000) == 1);
	MUST_FAIL(waitpid(-1, &status, WNOHANG), ECHILD);
	MUST(waitpid(pid, &status, __WALL) == pid && WEXITSTATUS(status) == 7);
	(void)close(pidfd);

	/* The pidfd is the child's, and nobody else's. */
	pid = vt_ns_clone(0, -1, &pidfd, &err);
	if (pid == 0)
		for (;;)
			(void)pause(); /* until killed */
	MUST(pid > 0 && syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0);
	MUST(waitpid(pid, &status, __WALL) == pid && WTERMSIG(status) == SIGKILL);
	(void)close(pidfd);

	int fds = count_fds();

	pidfd = -5;
	pid = vt_ns_clone(CLONE_NEWUSER | CLONE_FS, -1, &pidfd, &err);
	if (pid == 0)
		_exit(1);
	MUST(pid == -EINVAL && err.step == VT_STEP_CLONE && err.num == EINVAL);
	MUST(pidfd == -5 && count_fds() == fds);
}

static void test_without_clone3(void **state)
{
	static unsigned denials[] = { ENOSYS, EPERM };

	(void)state;
	run_child(clones_without_clone3, &denials[0]);
	run_child(clones_without_clone3, &denials[1]);
}

/* A folder with a file of that name is all that the child needs to see of a cgroup. */
static void joins_cgroup(void *arg)
{
	char *top = arg, path[64], text[8] = "";
	struct vt_err err;
	int pidfd = -1, status;

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", top); /* fits */
	deny_call(SYS_clone3, ENOSYS);
	int cgroup = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);

	MUST(cgroup >= 0);
	for (int there = 0; there < 2; there++) {
		if (there)
			MUST(mknod(path, S_IFREG | 0600, 0) == 0);
		pid_t pid = vt_ns_clone(0, cgroup, &pidfd, &err);

		if (pid == 0)
			_exit(7);
		MUST(pid > 0);
		MUST(waitpid(pid, &status, __WALL) == pid);
		/* Where it cannot be moved, nothing of it runs. */
		MUST(WEXITSTATUS(status) == (there ? 7 : 125));
		(void)close(pidfd);
	}
	read_own(path, text, sizeof(text));
	MUST(strcmp(text, "0") == 0);
}

static void test_without_clone3_in_cgroup(void **state)
{
	char top[] = "/tmp/vitro-ns-XXXXXX", path[64];

	(void)state;
	assert_non_null(mkdtemp(top));
	run_child(joins_cgroup, top);
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", top); /* fits */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(top), 0);
}

/* Any other answer of clone3 is the answer: clone is not asked. */
static void keeps_other_errors(void *arg)
{
	struct vt_err err = { 0 };
	int pidfd = -5;

	(void)arg;
	deny_call(SYS_clone3, ENOSPC);
	pid_t pid = vt_ns_clone(0, -1, &pidfd, &err);

	if (pid == 0)
		_exit(0);
	MUST(pid == -ENOSPC && err.num == ENOSPC && pidfd == -5);
}

static void test_other_errors_stay(void **state)
{
	(void)state;
	run_child(keeps_other_errors, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child_in_its_namespaces),
		cmocka_unit_test(test_clone_refused),
		cmocka_unit_test(test_handlers_stay_outside),
		cmocka_unit_test(test_child_is_not_the_callers),
		cmocka_unit_test(test_own_id_is_mapped),
		cmocka_unit_test(test_other_id_is_mapped),
		cmocka_unit_test(test_map_refused),
		cmocka_unit_test(test_no_such_process),
		cmocka_unit_test(test_without_clone3),
		cmocka_unit_test(test_without_clone3_in_cgroup),
		cmocka_unit_test(test_other_errors_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
