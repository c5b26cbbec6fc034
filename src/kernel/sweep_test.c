/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells without a pid namespace: all that lives in one is ended, whatever it does against it, and
 * nobody else is.
 *
 * A signal to everybody is what is tested here. It is sent only after vt_sweep_prepare() has said
 * that it is confined, only by a child that has looked for itself, and as root only by a user that
 * nobody else is. The control that the same signal reaches an outsider without that is kill(2)'s
 * promise; sending it would end everything of this user.
 */
#include "kernel/child_test.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/skip_test.h"
#include "kernel/caps.h"
#include "kernel/landlock.h"
#include "kernel/sweep.h"
#include "uapi/landlock.h"

#define ID_BASE 0x6f000000U /* that no cell and no user of this machine has */
enum { BOMBS = 50, PATIENCE_MS = 20000 };

/* One way of sweeping, and what lives in the cell. */
struct cell {
	enum vt_sweep how;
	void (*fill)(int ready);
	unsigned members; /* who say that they are there */
	uid_t uid;        /* of the cell; as root one of its own */
	pid_t outsider;
};

static bool can_scope(void)
{
	int abi = sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi > 0 && vt_landlock_rights(abi).scoped & LANDLOCK_SCOPE_SIGNAL;
}

static void become(uid_t uid)
{
	if (geteuid() == uid)
		return;
	MUST(syscall(SYS_setgroups, 0, NULL) == 0);
	MUST(setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0);
}

static _Noreturn void sleep_on(int ready)
{
	MUST(write(ready, "x", 1) == 1);
	for (;;)
		(void)pause(); /* until killed */
}

static pid_t must_fork(void)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	return pid;
}

/* ---- who lives there ----------------------------------------------------------------------- */

static void fill_with_nobody(int ready)
{
	(void)ready;
}

static void fill_with_orphans(int ready)
{
	for (int i = 0; i < 3; i++) {
		pid_t child = must_fork();

		if (child == 0) {
			if (must_fork() == 0) {
				(void)setsid(); /* it leads no group: cannot fail */
				if (must_fork() == 0)
					sleep_on(ready);
			}
			_exit(0);
		}
	}
}

static void fill_with_defiant(int ready)
{
	if (must_fork() == 0) {
		sigset_t all;

		(void)sigfillset(&all); /* cannot fail */
		MUST(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
		MUST(signal(SIGTERM, SIG_IGN) != SIG_ERR && signal(SIGHUP, SIG_IGN) != SIG_ERR);
		MUST(setsid() > 0);
		/* Orphans of this one come to it first. */
		MUST(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
		if (must_fork() == 0 && must_fork() == 0)
			sleep_on(ready);
		sleep_on(ready);
	}
}

static void fill_with_stopped(int ready)
{
	if (must_fork() == 0) {
		if (must_fork() == 0) {
			MUST(write(ready, "x", 1) == 1);
			MUST(raise(SIGSTOP) == 0);
			sleep_on(ready);
		}
		MUST(write(ready, "x", 1) == 1);
		MUST(raise(SIGSTOP) == 0);
		sleep_on(ready);
	}
}

/* Without a signal at its end, such as threads of other kinds: only __WALL sees it. */
static void fill_with_silent(int ready)
{
	long pid = syscall(SYS_clone, 0UL, NULL, NULL, NULL, NULL);

	MUST(pid >= 0);
	if (pid == 0)
		sleep_on(ready);
}

static void fill_with_vforked(int ready)
{
	if (must_fork() == 0) {
		long pid = syscall(SYS_clone, (unsigned long)(CLONE_VFORK | SIGCHLD), NULL, NULL,
				   NULL, NULL);

		/* The parent waits until the child is gone, and nothing but SIGKILL wakes it. */
		MUST(pid == 0);
		sleep_on(ready);
	}
}

static void fill_with_traced(int ready)
{
	if (must_fork() == 0) {
		pid_t child = must_fork();
		int status;

		if (child == 0) {
			MUST(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
			MUST(raise(SIGSTOP) == 0);
			sleep_on(ready);
		}
		MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		MUST(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACEEXIT) == 0);
		sleep_on(ready);
	}
}

/* Each makes short-lived children all the time, and never more than one at once. */
static void fill_with_mothers(int ready)
{
	for (int i = 0; i < BOMBS; i++) {
		if (must_fork() != 0)
			continue;
		MUST(write(ready, "x", 1) == 1);
		for (;;) {
			pid_t child = fork();

			if (child == 0)
				_exit(0);
			if (child > 0)
				(void)waitpid(child, NULL, 0); /* whatever became of it */
		}
	}
}

/* Never there twice under one number: each ends when it has made the next. */
static void fill_with_comets(int ready)
{
	for (int i = 0; i < 2; i++) {
		if (must_fork() != 0)
			continue;
		MUST(write(ready, "x", 1) == 1);
		for (;;)
			if (fork() > 0)
				_exit(0);
	}
}

/* As many as the user may have, of whom all make more. */
static void fill_with_bombs(int ready)
{
	const struct rlimit limit = { BOMBS, BOMBS };

	MUST(setrlimit(RLIMIT_NPROC, &limit) == 0);
	if (must_fork() == 0) {
		MUST(write(ready, "x", 1) == 1);
		for (;;)
			(void)fork(); /* the limit is reached, or there is one more */
	}
}

/* ---- sweeping ------------------------------------------------------------------------------ */

/* The life of an init, from its birth to the last of its children. */
static void sweeps(void *arg)
{
	const struct cell *cell = arg;
	struct vt_err err;
	int ends[2]; /* every member holds the second, and writes a byte */
	char byte;

	(void)alarm(60); /* returns the old one: none */
	MUST(pipe2(ends, O_CLOEXEC) == 0);
	become(cell->uid);
	MUST(geteuid() == cell->uid && getuid() == cell->uid);
	MUST(cell->how != VT_SWEEP_USER || (cell->uid & ID_BASE) == ID_BASE);
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (vt_sweep_prepare(cell->how, &err) < 0)
		child_fail(__FILE__, __LINE__, err.what, err.num);
	if (cell->how != VT_SWEEP_TREE) {
		MUST_FAIL(kill(cell->outsider, 0), EPERM);
		MUST_FAIL(kill(getppid(), 0), EPERM);
	}
	cell->fill(ends[1]);
	(void)close(ends[1]);
	for (unsigned i = 0; i < cell->members; i++)
		MUST(read(ends[0], &byte, 1) == 1);
	/* The control: with members there is somebody to be ended. */
	struct pollfd life = { .fd = ends[0], .events = POLLIN };

	MUST(!cell->members || poll(&life, 1, 50) == 0);
	int status = -5;

	vt_sweep(cell->how, getpid(), &status);
	MUST(status == -5); /* nobody's that was asked for */
	MUST_FAIL(waitpid(-1, NULL, __WALL | WNOHANG), ECHILD);
	ssize_t left;

	do { /* what members wrote beyond those that were waited for */
		MUST(poll(&life, 1, 0) == 1);
		left = read(ends[0], &byte, 1);
	} while (left > 0);
	MUST(left == 0);
}

/* Another process of the cell's user, or beside a cell that owns its user of the next one. */
static pid_t start_outsider(const struct cell *cell, int *ret_life)
{
	int life[2];

	assert_int_equal(pipe2(life, O_CLOEXEC), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		become(cell->how == VT_SWEEP_USER ? cell->uid + 1 : cell->uid);
		(void)close(life[0]);
		sleep_on(life[1]);
	}
	char byte;

	(void)close(life[1]);
	assert_int_equal(read(life[0], &byte, 1), 1);
	*ret_life = life[0];
	return pid;
}

static void check_sweeps(enum vt_sweep how, void (*fill)(int), unsigned members)
{
	struct cell cell = { .how = how, .fill = fill, .members = members, .uid = geteuid() };
	AUTO_CLOSE int life = -1;

	if (geteuid() == 0)
		cell.uid = ID_BASE + ((unsigned)getpid() << 1);
	cell.outsider = start_outsider(&cell, &life);
	run_child(sweeps, &cell);
	/* Nobody outside was touched. */
	struct pollfd outsider = { .fd = life, .events = POLLIN };

	assert_int_equal(poll(&outsider, 1, 10), 0);
	assert_int_equal(kill(cell.outsider, SIGKILL), 0);
	assert_int_equal(waitpid(cell.outsider, NULL, 0), cell.outsider);
}

static void check_all(enum vt_sweep how)
{
	check_sweeps(how, fill_with_nobody, 0);
	check_sweeps(how, fill_with_orphans, 3);
	check_sweeps(how, fill_with_defiant, 3);
	check_sweeps(how, fill_with_stopped, 2);
	check_sweeps(how, fill_with_silent, 1);
	check_sweeps(how, fill_with_vforked, 1);
	check_sweeps(how, fill_with_traced, 1);
	check_sweeps(how, fill_with_mothers, BOMBS);
	check_sweeps(how, fill_with_comets, 2);
	/* As an ordinary user the limit counts what has nothing to do with this test. */
	if (geteuid() == 0)
		check_sweeps(how, fill_with_bombs, 1);
}

static void test_domain(void **state)
{
	(void)state;
	if (!can_scope())
		SKIP("Landlock scopes no signals here");
	check_all(VT_SWEEP_DOMAIN);
}

static void test_user(void **state)
{
	(void)state;
	NEEDS_ROOT();
	check_all(VT_SWEEP_USER);
}

static void test_tree(void **state)
{
	(void)state;
	check_all(VT_SWEEP_TREE);
}

/* A proc that shows nobody but those whom the reader may trace, and a child that nobody may. */
static _Noreturn void sweep_unseen(void)
{
	struct vt_err err;
	char path[32];
	int ends[2], status = 0;
	char byte;

	(void)alarm(30); /* returns the old one: none */
	MUST(pipe2(ends, O_CLOEXEC) == 0);
	MUST(vt_sweep_prepare(VT_SWEEP_TREE, &err) == 0);
	MUST(vt_caps_empty(&err) == 0);
	MUST(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
	pid_t child = must_fork();

	if (child == 0) {
		MUST(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
		if (must_fork() == 0)
			sleep_on(ends[1]);
		sleep_on(ends[1]);
	}
	MUST(read(ends[0], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1);
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", child); /* fits */
	MUST_FAIL(access(path, F_OK), ENOENT);                      /* the control */
	vt_sweep(VT_SWEEP_TREE, child, &status);
	MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	_exit(0);
}

static void sweeps_unseen(void *arg)
{
	int status;

	become(*(uid_t *)arg); /* root's group sees everybody */
	MUST(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
	become_inner_root(CLONE_NEWPID | CLONE_NEWNS);
	pid_t pid = must_fork();

	if (pid == 0) {
		MUST(mount("proc", "/proc", "proc", 0, "hidepid=2") == 0);
		pid = must_fork();
		if (pid == 0)
			sweep_unseen();
		MUST(waitpid(pid, &status, 0) == pid);
		_exit(status == 0 ? 0 : 1);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void test_unseen(void **state)
{
	uid_t uid = geteuid() ? geteuid() : ID_BASE + ((unsigned)getpid() << 1);

	(void)state;
	if (access("/proc/thread-self/children", R_OK) < 0)
		SKIP("this kernel does not list children");
	run_child(sweeps_unseen, &uid);
}

/* ---- the safety catch ---------------------------------------------------------------------- */

static void is_refused(void *arg)
{
	struct vt_err err = { 0 };

	(void)arg;
	/* The parent is of the same user, or within reach of root's. */
	MUST(vt_sweep_prepare(VT_SWEEP_USER, &err) == -EPERM);
	MUST(err.step == VT_STEP_SESSION && err.num == EPERM);
	MUST(strstr(err.what, "confine"));
}

static void is_refused_in_a_namespace(void *arg)
{
	struct vt_err err = { 0 };
	int status;

	(void)arg;
	become_inner_root(CLONE_NEWPID);
	pid_t pid = must_fork();

	/* Its parent has no number here: what cannot be asked is not taken for out of reach. */
	if (pid == 0) {
		MUST(getppid() == 0);
		MUST(vt_sweep_prepare(VT_SWEEP_USER, &err) == -EPERM);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void test_prepare_refuses(void **state)
{
	(void)state;
	run_child(is_refused, NULL);
	run_child(is_refused_in_a_namespace, NULL);
}

/* A domain takes no_new_privs, or root; without either there is none, and no going on. */
static void needs_no_new_privs(void *arg)
{
	struct vt_err err = { 0 };

	become(*(uid_t *)arg);
	MUST(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
	MUST(vt_sweep_prepare(VT_SWEEP_DOMAIN, &err) == -EPERM);
	MUST(err.step == VT_STEP_LANDLOCK);
}

static void test_prepare_fails(void **state)
{
	uid_t uid = geteuid() ? geteuid() : ID_BASE + ((unsigned)getpid() << 1);

	(void)state;
	if (!can_scope())
		SKIP("Landlock scopes no signals here");
	run_child(needs_no_new_privs, &uid);
}

/* Looking for children takes no domain, and leaves the caller free to signal. */
static void prepares_a_tree(void *arg)
{
	struct vt_err err;
	int reaper = 0;

	(void)arg;
	MUST(vt_sweep_prepare(VT_SWEEP_TREE, &err) == 0);
	MUST(prctl(PR_GET_CHILD_SUBREAPER, &reaper, 0, 0, 0) == 0 && reaper == 1);
	MUST(kill(getppid(), 0) == 0);
}

static void test_prepare_tree(void **state)
{
	(void)state;
	run_child(prepares_a_tree, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prepare_refuses),
		cmocka_unit_test(test_prepare_fails),
		cmocka_unit_test(test_prepare_tree),
		cmocka_unit_test(test_domain),
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
