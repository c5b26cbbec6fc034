/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/child_test.h"

#include <grp.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "kernel/process.h"

/* ---- descriptors --------------------------------------------------------------------------- */

/* A memfd whose content tells which one it is, at a number of our choice. */
static void put_at(int fd, char mark)
{
	int made = memfd_create("mark", 0);

	MUST(made >= 0);
	MUST(write(made, &mark, 1) == 1);
	if (made != fd) {
		MUST(dup2(made, fd) == fd);
		MUST(close(made) == 0);
	}
}

static char mark_at(int fd)
{
	char mark = 0;

	MUST(pread(fd, &mark, 1, 0) == 1);
	return mark;
}

struct sources {
	int in, out, err, keep;
};

static void places(void *arg)
{
	const struct sources *from = arg;
	struct vt_err err;

	MUST(syscall(SYS_close_range, 0U, ~0U, 0) == 0);
	for (int fd = 0; fd < 12; fd++)
		put_at(fd, (char)('a' + fd));
	/* what a careless caller leaked, far away and not close-on-exec */
	put_at(200, 'x');
	MUST(vt_process_descriptors(from->in, from->out, from->err, from->keep, &err) == 0);
	MUST(mark_at(0) == 'a' + from->in);
	MUST(mark_at(1) == 'a' + from->out);
	MUST(mark_at(2) == 'a' + from->err);
	MUST(mark_at(3) == 'a' + from->keep);
	for (int fd = 0; fd < 3; fd++)
		MUST(fcntl(fd, F_GETFD) == 0);
	MUST(fcntl(3, F_GETFD) == FD_CLOEXEC);
	for (int fd = 4; fd < 300; fd++)
		MUST_FAIL(fcntl(fd, F_GETFD), EBADF);
}

static void test_descriptors(void **state)
{
	const struct sources all[] = {
		{ 8, 9, 10, 11 }, { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 2, 3, 0 }, { 2, 0, 1, 9 },
		{ 3, 3, 3, 3 },   { 0, 0, 0, 0 }, { 7, 7, 7, 1 }, { 1, 0, 1, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		run_child(places, (void *)&all[i]);
}

/* With all below them closed, nothing on the way may land where another one is to be. */
static void places_in_the_void(void *arg)
{
	struct vt_err err;

	(void)arg;
	for (int fd = 20; fd < 24; fd++)
		put_at(fd, (char)('a' + fd));
	MUST(syscall(SYS_close_range, 0U, 19U, 0) == 0);
	MUST(syscall(SYS_close_range, 24U, ~0U, 0) == 0);
	MUST(vt_process_descriptors(20, 21, 22, 23, &err) == 0);
	for (int fd = 0; fd < 4; fd++)
		MUST(mark_at(fd) == 'a' + 20 + fd);
	for (int fd = 4; fd < 30; fd++)
		MUST_FAIL(fcntl(fd, F_GETFD), EBADF);
}

static void keeps_one_more(void *arg)
{
	struct vt_err err;

	(void)arg;
	MUST(syscall(SYS_close_range, 0U, ~0U, 0) == 0);
	for (int fd = 0; fd < 8; fd++)
		put_at(fd, (char)('a' + fd));
	MUST(vt_process_descriptors_with(4, 3, 2, 1, 0, &err) == 0);
	for (int fd = 0; fd < 5; fd++)
		MUST(mark_at(fd) == 'a' + 4 - fd);
	MUST(fcntl(3, F_GETFD) == FD_CLOEXEC);
	MUST(fcntl(4, F_GETFD) == 0);
	for (int fd = 5; fd < 30; fd++)
		MUST_FAIL(fcntl(fd, F_GETFD), EBADF);
}

static void refuses_a_closed_one(void *arg)
{
	struct vt_err err;

	(void)arg;
	MUST(vt_process_descriptors(0, 1, -1, 2, &err) == -EBADF);
	MUST(err.step == VT_STEP_DESCRIPTORS && err.num == EBADF);
}

static void test_descriptors_edges(void **state)
{
	(void)state;
	run_child(places_in_the_void, NULL);
	run_child(keeps_one_more, NULL);
	run_child(refuses_a_closed_one, NULL);
}

/* ---- session, signals ---------------------------------------------------------------------- */

static void handle(int number)
{
	(void)number;
}

static long session_keyring(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
}

static void detaches(void *arg)
{
	struct sigaction action;
	struct vt_err err;
	sigset_t all, blocked;

	(void)arg;
	MUST(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	MUST(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	MUST(signal(SIGUSR1, handle) != SIG_ERR);
	MUST(signal(SIGRTMAX, SIG_IGN) != SIG_ERR);
	MUST(sigfillset(&all) == 0 && sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	(void)umask(0077); /* returns the old one */
	/* not everybody may; then there is nothing to give up */
	(void)!sched_setscheduler(0, SCHED_RR, &(struct sched_param){ .sched_priority = 1 });
	(void)!syscall(SYS_ioprio_set, 1, 0, 1 << 13 | 4);
	MUST(personality(MMAP_PAGE_ZERO | ADDR_NO_RANDOMIZE) >= 0);
	long keyring = session_keyring();

	MUST(vt_process_detach(&err) == 0 && vt_process_leave_keys(&err) == 0);
	for (int number = 1; number < NSIG; number++) {
		if (number == 32 || number == 33)
			continue; /* libc's own */
		MUST(sigaction(number, NULL, &action) == 0);
		MUST(action.sa_handler == SIG_DFL);
	}
	MUST(sigprocmask(SIG_SETMASK, NULL, &blocked) == 0);
	for (int number = 1; number < NSIG; number++)
		MUST(sigismember(&blocked, number) != 1);
	MUST(umask(0) == 022);
	MUST(sched_getscheduler(0) == SCHED_OTHER);
	MUST(syscall(SYS_ioprio_get, 1, 0) >> 13 != 1);
	MUST(personality(UINT32_MAX) == 0);
	MUST(getsid(0) == getpid() && getpgrp() == getpid());
	MUST_FAIL(open("/dev/tty", O_RDWR), ENXIO);
	if (keyring >= 0)
		MUST(session_keyring() != keyring);
}

static void leads_already(void *arg)
{
	struct vt_err err;

	(void)arg;
	MUST(setpgid(0, 0) == 0);
	MUST(vt_process_detach(&err) == -EPERM);
	MUST(err.step == VT_STEP_SESSION);
}

static void test_detach(void **state)
{
	(void)state;
	run_child(detaches, NULL);
	run_child(leads_already, NULL);
}

/* ---- limits -------------------------------------------------------------------------------- */

static struct rlimit now(int resource)
{
	struct rlimit limit;

	MUST(getrlimit((__rlimit_resource_t)resource, &limit) == 0);
	return limit;
}

static void limits(void *arg)
{
	const struct rlimit lowered = { 60, 80 };
	const struct vt_rlimit wanted[] = {
		{ RLIMIT_NOFILE, { 1000, 1000 } },                  /* above what the caller has */
		{ RLIMIT_FSIZE, { RLIM_INFINITY, RLIM_INFINITY } }, /* as far above as can be */
		{ RLIMIT_CORE, { 0, 0 } },
		{ RLIMIT_STACK, { 1 << 20, RLIM_INFINITY } },
	};
	struct vt_err err;

	(void)arg;
	MUST(setrlimit(RLIMIT_NOFILE, &lowered) == 0);
	MUST(setrlimit(RLIMIT_FSIZE, &lowered) == 0);
	struct rlimit stack = now(RLIMIT_STACK);

	MUST(vt_process_limit(wanted, 4, &err) == 0);
	MUST(now(RLIMIT_NOFILE).rlim_cur == 80 && now(RLIMIT_NOFILE).rlim_max == 80);
	MUST(now(RLIMIT_FSIZE).rlim_cur == 80 && now(RLIMIT_FSIZE).rlim_max == 80);
	MUST(now(RLIMIT_CORE).rlim_cur == 0 && now(RLIMIT_CORE).rlim_max == 0);
	MUST(now(RLIMIT_STACK).rlim_cur == 1 << 20);
	MUST(now(RLIMIT_STACK).rlim_max == stack.rlim_max);
}

static void limits_bind(void *arg)
{
	const struct vt_rlimit wanted[] = { { RLIMIT_NOFILE, { 10, 10 } } };
	struct vt_err err;
	int fd;

	(void)arg;
	MUST(vt_process_limit(NULL, 0, &err) == 0);
	MUST(vt_process_limit(wanted, 1, &err) == 0);
	while ((fd = dup(0)) >= 0)
		MUST(fd < 10);
	MUST(errno == EMFILE);
}

static void unknown_limit(void *arg)
{
	const struct vt_rlimit wanted[] = { { 999, { 1, 1 } } };
	struct vt_err err;

	(void)arg;
	MUST(vt_process_limit(wanted, 1, &err) == -EINVAL);
	MUST(err.step == VT_STEP_LIMITS);
}

static void test_limits(void **state)
{
	(void)state;
	run_child(limits, NULL);
	run_child(limits_bind, NULL);
	run_child(unknown_limit, NULL);
}

/* ---- ids ----------------------------------------------------------------------------------- */

static void becomes(void *arg)
{
	const gid_t groups[] = { 4, 5 };
	uid_t real, effective, saved;
	struct vt_err err;

	(void)arg;
	MUST(setgroups(2, groups) == 0);
	MUST(vt_process_become(4001, 4002, true, &err) == 0);
	MUST(getresuid(&real, &effective, &saved) == 0);
	MUST(real == 4001 && effective == 4001 && saved == 4001);
	MUST(getresgid(&real, &effective, &saved) == 0);
	MUST(real == 4002 && effective == 4002 && saved == 4002);
	MUST(getgroups(0, NULL) == 0);
	MUST_FAIL(setuid(0), EPERM);
}

static void becomes_nobody_else(void *arg)
{
	struct vt_err err;

	(void)arg;
	if (geteuid() == 0)
		MUST(setresuid(4001, 4001, 4001) == 0);
	MUST(vt_process_become(0, getegid(), false, &err) == -EPERM);
	MUST(err.step == VT_STEP_IDS && strstr(err.what, "user"));
	MUST(vt_process_become(geteuid(), getegid(), true, &err) == -EPERM);
	MUST(strstr(err.what, "groups"));
	/* one's own, without touching the groups, is fine */
	MUST(vt_process_become(geteuid(), getegid(), false, &err) == 0);
}

static void test_become(void **state)
{
	(void)state;
	NEEDS_ROOT();
	run_child(becomes, NULL);
}

static void test_become_refused(void **state)
{
	(void)state;
	run_child(becomes_nobody_else, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_descriptors), cmocka_unit_test(test_descriptors_edges),
		cmocka_unit_test(test_detach),      cmocka_unit_test(test_limits),
		cmocka_unit_test(test_become),      cmocka_unit_test(test_become_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
