/* SPDX-License-Identifier: Apache-2.0 */
/* What a host learns from a cell that could not be built, and looks for then. */
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/skip_test.h"
#include "kernel/mount.h"

/* ---- what a cell that could not be built teaches ------------------------------------------- */

static struct vt_host fresh(void)
{
	return (struct vt_host){
		.uid = geteuid(), .gid = getegid(), .proc = true, .own_proc.tried = VT_MOUNT_PROC
	};
}

static bool learns(struct vt_host *host, enum vt_step step, int num, const char *what)
{
	struct vt_err failure = { .step = step, .num = num };

	(void)snprintf(failure.what, sizeof(failure.what), "%s", what); /* they are short */
	return vt_host_learn(host, &failure);
}

static void test_learn(void **state)
{
	static const enum vt_step building[] = { VT_STEP_CLONE, VT_STEP_IDS, VT_STEP_MOUNTS,
						 VT_STEP_NETWORK };
	static const int teaches[] = { EPERM,  EACCES, ENOSYS, EOPNOTSUPP,
				       EINVAL, ENODEV, ENOSPC, EUSERS };
	static const int passes[] = { ENOENT, ESTALE, EEXIST, ENOMEM, EAGAIN, EMFILE, EPIPE, EIO };

	(void)state;
	for (size_t i = 0; i < sizeof(building) / sizeof(building[0]); i++) {
		for (size_t j = 0; j < sizeof(teaches) / sizeof(teaches[0]); j++) {
			struct vt_host host = fresh();

			assert_true(learns(&host, building[i], teaches[j], "do this"));
			assert_int_equal(host.userns.err, teaches[j]);
			assert_string_equal(host.userns.tried, "do this");
			assert_int_equal(host.own_proc.err, 0);
			/* what a bare cell needs has been looked for */
			assert_true(host.tasks > 0);
			/* and nothing more can be learned, whatever is told */
			assert_false(learns(&host, building[i], teaches[j], "do this"));
			assert_false(learns(&host, VT_STEP_MOUNTS, EPERM, VT_MOUNT_PROC));
		}
		for (size_t j = 0; j < sizeof(passes) / sizeof(passes[0]); j++) {
			struct vt_host host = fresh();

			assert_false(learns(&host, building[i], passes[j], "do this"));
			assert_int_equal(host.userns.err, 0);
			assert_null(host.scratch);
		}
	}
}

/* What is not about building, or was the call's own: nothing of the host's. */
static void test_learn_nothing(void **state)
{
	static const enum vt_step others[] = { VT_STEP_NONE,     VT_STEP_POLICY,  VT_STEP_COMMAND,
					       VT_STEP_PLAN,     VT_STEP_CGROUP,  VT_STEP_SESSION,
					       VT_STEP_LANDLOCK, VT_STEP_SECCOMP, VT_STEP_CAPS,
					       VT_STEP_LIMITS,   VT_STEP_EXEC,    VT_STEP_WATCH };

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct vt_host host = fresh();

		assert_false(learns(&host, others[i], EPERM, VT_MOUNT_PROC));
		assert_int_equal(host.userns.err, 0);
		assert_int_equal(host.own_proc.err, 0);
	}
}

/* A folder that its owner has closed says nothing of namespaces; a call that is missing does. */
static void test_learn_closed_way(void **state)
{
	struct vt_host host = fresh();

	(void)state;
	assert_false(learns(&host, VT_STEP_MOUNTS, EACCES, VT_MOUNT_PLACE " 'srv/a/out'"));
	assert_int_equal(host.userns.err, 0);
	assert_true(learns(&host, VT_STEP_MOUNTS, ENOSYS, VT_MOUNT_PLACE " 'srv/a/out'"));
	assert_int_equal(host.userns.err, ENOSYS);
}

/* A masked proc costs a cell its own proc; only then, if it fails again, its namespaces. */
static void test_learn_masked_proc(void **state)
{
	struct vt_host host = fresh();
	int learned = 0;

	(void)state;
	assert_true(learns(&host, VT_STEP_MOUNTS, EPERM, VT_MOUNT_PROC));
	assert_int_equal(host.own_proc.err, EPERM);
	assert_string_equal(host.own_proc.tried, VT_MOUNT_PROC);
	assert_int_equal(host.userns.err, 0);
	assert_null(host.scratch);
	assert_true(learns(&host, VT_STEP_MOUNTS, EACCES, VT_MOUNT_PROC));
	assert_int_equal(host.userns.err, EACCES);
	assert_int_equal(host.own_proc.err, EPERM);
	/* whoever tries again as long as something is learned comes to an end */
	host = fresh();
	while (learned < 10 && learns(&host, VT_STEP_MOUNTS, EPERM, VT_MOUNT_PROC))
		learned++;
	assert_int_equal(learned, 2);
	/* what is told is cut, and not lost */
	host = fresh();
	char long_words[sizeof(((struct vt_err *)0)->what)];

	memset(long_words, 'x', sizeof(long_words) - 1);
	long_words[sizeof(long_words) - 1] = '\0';
	assert_true(learns(&host, VT_STEP_CLONE, EPERM, long_words));
	assert_string_equal(host.userns.tried, long_words);
}

/* ---- where a private folder can be --------------------------------------------------------- */

/* A file system of our own there, with this mode. */
static void cover(const char *path, const char *mode)
{
	char options[32];

	(void)snprintf(options, sizeof(options), "mode=%s", mode); /* fits */
	if (mount("none", path, "tmpfs", 0, options) < 0)
		_exit(77);
}

static const char *scratch_of(bool can_change_ids)
{
	struct vt_host host = fresh();

	host.uid = geteuid();
	host.proc = false;
	host.can_change_ids = can_change_ids;
	if (!learns(&host, VT_STEP_CLONE, EPERM, "clone"))
		_exit(3);
	return host.scratch ? host.scratch : "";
}

#define EXPECT(code, condition)      \
	do {                         \
		if (!(condition))    \
			_exit(code); \
	} while (0)

static _Noreturn void choose_scratch(void)
{
	if (geteuid() != 0) {
		char map[32];
		uid_t uid = geteuid();

		if (unshare(CLONE_NEWUSER) < 0)
			_exit(77);
		(void)snprintf(map, sizeof(map), "0 %u 1\n", uid); /* fits */
		AUTO_CLOSE int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);

		if (fd < 0 || write(fd, map, strlen(map)) != (ssize_t)strlen(map))
			_exit(77);
	}
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		_exit(77);
	cover("/var/tmp", "1777");
	cover("/dev/shm", "1777");
	cover("/tmp", "1777");
	EXPECT(10, strcmp(scratch_of(false), "/tmp") == 0 && strcmp(scratch_of(true), "/tmp") == 0);
	/* one's own, which nobody else writes to: not for a cell with another user */
	cover("/tmp", "0755");
	EXPECT(11, strcmp(scratch_of(false), "/tmp") == 0);
	EXPECT(12, strcmp(scratch_of(true), "/var/tmp") == 0);
	/* sticky, and closed to others */
	cover("/tmp", "1755");
	EXPECT(13, strcmp(scratch_of(true), "/var/tmp") == 0);
	/* anybody could take the folder away */
	cover("/tmp", "0777");
	EXPECT(14, strcmp(scratch_of(false), "/var/tmp") == 0);
	EXPECT(15, strcmp(scratch_of(true), "/var/tmp") == 0);
	cover("/var/tmp", "0777");
	EXPECT(16, strcmp(scratch_of(false), "/dev/shm") == 0);
	/* read-only */
	if (mount("none", "/dev/shm", NULL, MS_REMOUNT | MS_RDONLY, NULL) < 0)
		_exit(77);
	EXPECT(17, strcmp(scratch_of(false), "") == 0 && strcmp(scratch_of(true), "") == 0);
	_exit(0);
}

static void test_scratch(void **state)
{
	int status;

	(void)state;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		choose_scratch();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("nothing can be mounted here");
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- how many there are of a user's -------------------------------------------------------- */

static void *wait_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		(void)pause(); /* until killed */
	return NULL;
}

/* As root of a user that nobody else is, else of the caller: `threads` beside the first. */
static pid_t start_tasks(uid_t uid, int threads)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() != uid && setresuid(uid, uid, uid) < 0)
			_exit(1);
		for (int i = 0; i < threads; i++) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
				_exit(1);
		}
		if (write(ends[1], "x", 1) == 1)
			(void)wait_for_ever(NULL);
		_exit(1);
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	(void)close(ends[0]);
	return pid;
}

static unsigned tasks_of(uid_t uid)
{
	struct vt_host host = fresh();

	host.uid = uid;
	assert_true(learns(&host, VT_STEP_CLONE, EPERM, "clone"));
	return host.tasks;
}

static void test_tasks(void **state)
{
	uid_t uid = geteuid() ? geteuid() : 0x6f000000U + (unsigned)getpid();
	struct vt_host host = fresh();

	(void)state;
	pid_t one = start_tasks(uid, 0), other = start_tasks(uid, 40);
	unsigned count = tasks_of(uid);

	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(waitpid(other, NULL, 0), other);
	unsigned later = tasks_of(uid);

	assert_int_equal(kill(one, SIGKILL), 0);
	assert_int_equal(waitpid(one, NULL, 0), one);
	if (geteuid() == 0) {
		assert_int_equal(count, 42);
		assert_int_equal(later, 1);
		assert_int_equal(tasks_of(uid), 0);
	} else {
		/* others of this user come and go */
		assert_true(count >= 43 && later >= 2);
	}
	/* whoever gives cells an id of their own has nobody to count, and without proc nobody can
	 */
	host.can_change_ids = true;
	assert_true(learns(&host, VT_STEP_CLONE, EPERM, "clone"));
	assert_int_equal(host.tasks, 0);
	host = fresh();
	host.proc = false;
	assert_true(learns(&host, VT_STEP_CLONE, EPERM, "clone"));
	assert_int_equal(host.tasks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learn),
		cmocka_unit_test(test_learn_nothing),
		cmocka_unit_test(test_learn_closed_way),
		cmocka_unit_test(test_learn_masked_proc),
		cmocka_unit_test(test_scratch),
		cmocka_unit_test(test_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
