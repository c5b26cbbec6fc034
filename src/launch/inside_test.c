/* SPDX-License-Identifier: Apache-2.0 */
/* The child's side of a launch: what the occupant finds, and how a step that fails is told. */
#include "launch/stage_test.h"

#include "uapi/landlock.h"

/* ---- what it finds inside ------------------------------------------------------------------ */

static void test_inside(void **state)
{
	(void)state;
	check_prints("echo $$ $(id -u) $(id -g) $(id -G) $(uname -n) $(pwd) $(umask)",
		     "2 1000 1000 1000 vitro /tmp 0022\n");
	check_prints("env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD= | sort",
		     "HOME=/tmp\nLANG=C\n");
	check_prints("ls -A / | grep -v ^lib; cat /etc/words",
		     "bin\ndev\netc\nproc\ntmp\nusr\nsome words\n");
	check_prints("grep -E '^(NoNewPrivs|Seccomp|CapEff|CapBnd):' /proc/self/status",
		     "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"
		     "NoNewPrivs:\t1\nSeccomp:\t2\n");
	/* the mask is there, init is not */
	check_prints("cat /proc/version 2>/dev/null; ls -d /proc/1 2>/dev/null; ls -d /proc/2",
		     "/proc/2\n");
	check_prints("x=; touch /new /etc/new /usr/new 2>/dev/null || x=refused; "
		     "echo text >/tmp/new && echo text >/dev/null && cat /tmp/new && echo $x",
		     "text\nrefused\n");
}

/* A network of its own, where even the loopback is up only if the plan says so. */
static void test_network(void **state)
{
	struct stage stage;
	struct vt_note note;

	(void)state;
	check_prints("tail -n +3 /proc/self/net/dev | cut -d: -f1", "    lo\n");
	check_prints("if grep -q 127.0.0.1 /proc/self/net/fib_trie; then echo up; fi", "");
	plan(&stage, "if grep -q 127.0.0.1 /proc/self/net/fib_trie; then echo up; fi");
	stage.plan.loopback_up = true;
	assert_int_equal(spawn(&stage), 0);
	assert_string_equal(output(&stage), "up\n");
	assert_int_equal(next_note(&stage, &note), 1);
	assert_int_equal(note.kind, VT_NOTE_RUNNING);
	finish(&stage);
}

/* The listener comes as a note, once, and the command has no descriptor of it. */
static void test_listener(void **state)
{
	struct stage stage;
	struct vt_note note;

	(void)state;
	plan(&stage, "echo $(ls /proc/self/fd)");
	stage.plan.filters[0] = vt_seccomp_builtin(VT_SECCOMP_DEFAULT, VT_SOCKETS_BROKERED);
	stage.plan.broker.on = true;
	assert_int_equal(spawn(&stage), 0);
	assert_string_equal(output(&stage), "0 1 2 3\n"); /* 3 is the folder that ls reads */
	assert_int_equal(next_note(&stage, &note), 1);
	assert_int_equal(note.kind, VT_NOTE_RUNNING);
	assert_int_equal(next_note(&stage, &note), 1);
	assert_int_equal(note.kind, VT_NOTE_LISTENER);
	assert_int_equal(next_note(&stage, &note), 1);
	assert_int_equal(note.kind, VT_NOTE_ENDED);
	finish(&stage);
}

/* The root's tmpfs is bounded in bytes. */
static void test_scratch_bound(void **state)
{
	(void)state;
	check_prints("yes | head -c 3000000 >/tmp/big 2>/dev/null; "
		     "test $(wc -c </tmp/big) -le 1048576 && echo bounded",
		     "bounded\n");
}

/* What the caller leaked stays out: a descriptor that no exec would close. */
static void test_leaked_descriptor(void **state)
{
	AUTO_CLOSE int secret = open("/etc/hostname", O_RDONLY); /* NOLINT: not O_CLOEXEC */
	int high = fcntl(secret, F_DUPFD, 300);

	(void)state;
	assert_true(secret >= 0 && high >= 300);
	/* 3 is the folder that ls reads */
	check_prints("echo $(ls /proc/self/fd)", "0 1 2 3\n");
	(void)close(high);
}

static void never(int number)
{
	(void)number;
	_exit(99);
}

static void signals_init(void *arg)
{
	struct stage stage;
	struct vt_note note;

	(void)arg;
	MUST(signal(SIGUSR1, never) != SIG_ERR);
	MUST(signal(SIGTERM, never) != SIG_ERR);
	MUST(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	plan(&stage, "kill -USR1 1; kill -TERM 1; sleep 0.05; "
		     "grep -E '^(SigBlk|SigIgn):' /proc/self/status; exit 5");
	MUST(spawn(&stage) == 0);
	MUST(strcmp(output(&stage), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n") == 0);
	MUST(next_note(&stage, &note) == 1 && note.kind == VT_NOTE_RUNNING);
	MUST(next_note(&stage, &note) == 1 && note.kind == VT_NOTE_ENDED);
	MUST(note.wait_status == W_EXITCODE(5, 0));
}

/* An occupant cannot run the caller's handlers by signals to init, nor inherit what it ignores. */
static void test_callers_handlers(void **state)
{
	(void)state;
	run_child(signals_init, NULL);
}

/* ---- what fails ---------------------------------------------------------------------------- */

/* The cell says what failed, nothing of the call runs, and nothing is left. */
static void check_fails(struct stage *stage, enum vt_step step, int num, const char *what)
{
	struct vt_note note;
	bool failed = false;
	int r;

	assert_int_equal(spawn(stage), 0);
	while ((r = next_note(stage, &note)) == 1) {
		if (note.kind != VT_NOTE_FAILED)
			continue;
		failed = true;
		assert_int_equal(note.err.step, step);
		assert_int_equal(note.err.num, num);
		assert_non_null(strstr(note.err.what, what));
	}
	assert_int_equal(r, -EPIPE);
	assert_true(failed);
	assert_string_equal(output(stage), "");
	finish(stage);
}

static void test_bind_was_swapped(void **state)
{
	struct stage stage;

	(void)state;
	plan(&stage, "echo ran");
	stage.builds[1].ino++;
	check_fails(&stage, VT_STEP_MOUNTS, ESTALE, "'/usr'");
	plan(&stage, "echo ran");
	stage.builds[1].dev++;
	check_fails(&stage, VT_STEP_MOUNTS, ESTALE, "'/usr'");
	plan(&stage, "echo ran");
	stage.builds[1].from = "/no/such/folder";
	check_fails(&stage, VT_STEP_MOUNTS, ENOENT, "/no/such/folder");
}

static void test_exec_fails(void **state)
{
	struct stage stage;

	(void)state;
	plan(&stage, "echo ran");
	stage.plan.exec_path = "/usr/bin/no-such-program";
	check_fails(&stage, VT_STEP_EXEC, ENOENT, "/usr/bin/no-such-program");
	plan(&stage, "echo ran");
	stage.plan.exec_path = "/etc/words";
	check_fails(&stage, VT_STEP_EXEC, EACCES, "/etc/words");
}

/* What the kernel says to a ruleset with a right that it does not know. */
static int landlock_error(void)
{
	const struct landlock_ruleset_attr attr = { .handled_access_fs = UINT64_C(1) << 63 };

	assert_int_equal(syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0), -1);
	return errno;
}

static void test_other_steps_fail(void **state)
{
	const struct vt_rlimit unknown[] = { { 999, { 1, 1 } } };
	struct stage stage;

	(void)state;
	plan(&stage, "echo ran");
	stage.plan.cwd = "/absent";
	check_fails(&stage, VT_STEP_SESSION, ENOENT, "/absent");
	plan(&stage, "echo ran");
	stage.plan.rlimits = unknown;
	check_fails(&stage, VT_STEP_LIMITS, EINVAL, "limit");
	plan(&stage, "echo ran");
	stage.plan.landlock_fs = UINT64_C(1) << 63;
	check_fails(&stage, VT_STEP_LANDLOCK, landlock_error(), "ruleset");
	/* two acts for one place */
	plan(&stage, "echo ran");
	add(&stage, VT_ACT_DIR, "tmp", NULL);
	check_fails(&stage, VT_STEP_MOUNTS, EEXIST, "'tmp'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inside),           cmocka_unit_test(test_network),
		cmocka_unit_test(test_scratch_bound),    cmocka_unit_test(test_leaked_descriptor),
		cmocka_unit_test(test_callers_handlers), cmocka_unit_test(test_bind_was_swapped),
		cmocka_unit_test(test_exec_fails),       cmocka_unit_test(test_other_steps_fail),
		cmocka_unit_test(test_listener),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
