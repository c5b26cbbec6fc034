/* SPDX-License-Identifier: Apache-2.0 */
/* Cells without namespaces: whatever happens to them, no process and no folder is left. */
#include "launch/stage_test.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/skip_test.h"
#include "kernel/landlock.h"

enum { OTHER_ID = 0x6f000005 };

static void in_every_way(void (*check)(enum vt_sweep))
{
	enum vt_sweep ways[3];
	size_t count = list_ways(ways);

	for (size_t i = 0; i < count; i++)
		check(ways[i]);
}

static void must_spawn(struct stage *stage)
{
	if (spawn(stage) < 0)
		fail_msg("%s: %s", vt_step_name(stage->err.step), stage->err.what);
}

static void expect(struct stage *stage, enum vt_note_kind kind, struct vt_note *note)
{
	assert_int_equal(next_note(stage, note), 1);
	if (note->kind == VT_NOTE_FAILED && kind != VT_NOTE_FAILED)
		fail_msg("%s: %s", vt_step_name(note->err.step), note->err.what);
	assert_int_equal(note->kind, kind);
}

static void check_gone(const struct stage *stage)
{
	struct stat st;

	assert_int_equal(lstat(stage->scratch, &st), -1);
	assert_int_equal(errno, ENOENT);
}

static void end(struct stage *stage)
{
	finish(stage);
	check_gone(stage);
}

/* The first line that it prints; then it runs. */
static void await_line(struct stage *stage, char *line, size_t size)
{
	size_t len = 0;

	while (len < size - 1) {
		await(stage->out);
		assert_int_equal(read(stage->out, line + len, 1), 1);
		if (line[len++] == '\n')
			break;
	}
	line[len] = '\0';
}

/* ---- how it ends --------------------------------------------------------------------------- */

static void check_ends(enum vt_sweep how, const char *script, int wait_status)
{
	struct stage stage;
	struct vt_note note;

	plan_bare(&stage, how, script);
	must_spawn(&stage);
	expect(&stage, VT_NOTE_RUNNING, &note);
	expect(&stage, VT_NOTE_ENDED, &note);
	assert_int_equal(note.wait_status, wait_status);
	assert_true(note.empty);
	assert_true(note.usage.ru_maxrss > 0);
	assert_string_equal(output(&stage), "");
	assert_int_equal(next_note(&stage, &note), -EPIPE);
	end(&stage);
}

static void check_all_ends(enum vt_sweep how)
{
	check_ends(how, ends_traced, W_EXITCODE(6, 0));
	check_ends(how, "exit 0", 0);
	check_ends(how, "exit 7", W_EXITCODE(7, 0));
	check_ends(how, "kill -SEGV $$", W_EXITCODE(0, SIGSEGV));
	check_ends(how, "(sleep 0.01 &) ; exit 3", W_EXITCODE(3, 0));
	check_ends(how, "(setsid sleep 1000 &) ; (trap '' TERM; sleep 1000) & exit 4",
		   W_EXITCODE(4, 0));
	/* the private folder, full and shut */
	check_ends(how, "mkdir -p a/b/c; echo >a/b/c/d; ln -s /etc a/etc; chmod 0 a/b a .; exit 5",
		   W_EXITCODE(5, 0));
}

static void test_ends(void **state)
{
	(void)state;
	in_every_way(check_all_ends);
}

static void check_killed(enum vt_sweep how)
{
	struct stage stage;
	struct vt_note note;
	char line[16];

	plan_bare(&stage, how,
		  "trap '' TERM HUP INT; (setsid sleep 1000 &); sleep 1000 & kill -STOP $!; "
		  "echo text >file; echo ready; sleep 1000");
	must_spawn(&stage);
	await_line(&stage, line, sizeof(line));
	expect(&stage, VT_NOTE_RUNNING, &note);
	assert_int_equal(vt_cell_kill(&stage.cell, &stage.err), 0);
	assert_string_equal(output(&stage), "");
	expect(&stage, VT_NOTE_EMPTY, &note);
	assert_true(note.empty);
	assert_int_equal(next_note(&stage, &note), -EPIPE);
	assert_int_equal(vt_cell_kill(&stage.cell, &stage.err), 0); /* twice is fine */
	end(&stage);
}

static void test_kill(void **state)
{
	(void)state;
	in_every_way(check_killed);
}

/* Killed at whatever moment of its building. */
static void test_kill_early(void **state)
{
	struct stage stage;

	(void)state;
	for (int i = 0; i < 40; i++) {
		plan_bare(&stage, VT_SWEEP_TREE, "sleep 1000 & exec sleep 1000");
		must_spawn(&stage);
		(void)usleep((useconds_t)i * 100);
		assert_int_equal(vt_cell_kill(&stage.cell, &stage.err), 0);
		assert_string_equal(output(&stage), "");
		end(&stage);
	}
}

/* What runs supervises as well as spawns: it is killed, after a while. */
static void lose_supervisor(enum vt_sweep how, int after_us)
{
	struct stage stage;
	struct stat st;
	int ends[2];

	plan_bare(&stage, how, "echo text >file; (setsid sleep 1000 &) ; exec sleep 1000");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t supervisor = fork();

	assert_true(supervisor >= 0);
	if (supervisor == 0) {
		const struct vt_stdio stdio = { .in = ends[1], .out = ends[1], .err = ends[1] };

		if (vt_spawn(&stage.plan, &stdio, &stage.cell, &stage.err) < 0)
			_exit(1);
		for (;;)
			(void)pause(); /* until killed */
	}
	(void)close(ends[1]);
	(void)usleep((useconds_t)after_us);
	assert_int_equal(kill(supervisor, SIGKILL), 0);
	assert_int_equal(waitpid(supervisor, NULL, 0), supervisor);
	stage.out = ends[0];
	assert_string_equal(output(&stage), ""); /* to its end: nobody is left */
	(void)close(ends[0]);
	/* Init removes the folder after the last of them. */
	for (int i = 0; i < PATIENCE_MS && lstat(stage.scratch, &st) == 0; i++)
		(void)usleep(1000);
	check_gone(&stage);
}

static void check_loses_supervisor(enum vt_sweep how)
{
	for (int i = 0; i < 20; i++)
		lose_supervisor(how, i * 300);
	lose_supervisor(how, 100000);
}

static void test_dies_with_its_supervisor(void **state)
{
	(void)state;
	in_every_way(check_loses_supervisor);
}

/* ---- when init is killed ------------------------------------------------------------------- */

/* It reaches the occupant at once; what that started is left, and its user's alone. */
static void test_bury(void **state)
{
	struct stage stage;
	struct vt_note note;
	char line[32];

	(void)state;
	plan_bare(&stage, VT_SWEEP_TREE,
		  "mkdir d; chmod 0 d; setsid sleep 1000 & echo $!; exec sleep 1000");
	must_spawn(&stage);
	expect(&stage, VT_NOTE_RUNNING, &note);
	await_line(&stage, line, sizeof(line));
	pid_t left = (pid_t)strtol(line, NULL, 10);

	assert_true(left > 1);
	assert_int_equal(kill(stage.cell.init, SIGKILL), 0);
	assert_int_equal(next_note(&stage, &note), -EPIPE);
	assert_int_equal(waitpid(stage.cell.init, NULL, __WALL), stage.cell.init);
	assert_int_equal(kill(left, 0), 0); /* the control: it would stay */
	bool buried = vt_cell_bury(&stage.plan, PATIENCE_MS);

	assert_int_equal(buried, geteuid() == 0);
	if (!buried) {
		/* The caller's own id: others of his are nobody's to end, and so this one stays. */
		assert_int_equal(kill(left, SIGKILL), 0);
		char command[128];

		(void)snprintf(command, sizeof(command), "rm -rf '%s'", stage.scratch); /* fits */
		assert_int_equal(system(command), 0);
	}
	assert_string_equal(output(&stage), "");
	assert_int_equal(vt_cell_done(&stage.cell, &stage.err), 0);
	vt_fd_close(&stage.out);
	assert_int_equal(count_fds(), stage.fds_before);
	check_gone(&stage);
}

/* An id that is not the cell's alone is nobody's to end. */
static void test_bury_refuses(void **state)
{
	struct stage stage;

	(void)state;
	plan_bare(&stage, VT_SWEEP_TREE, "");
	stage.plan.own_ids = true;
	stage.plan.id_count = VT_IDS_FOR_ALL - 1;
	assert_false(vt_cell_bury(&stage.plan, PATIENCE_MS));
	stage.plan.id_count = VT_IDS_FOR_ALL;
	stage.plan.own_ids = false;
	assert_false(vt_cell_bury(&stage.plan, PATIENCE_MS));
	stage.plan.own_ids = true;
	stage.plan.bare = false;
	assert_false(vt_cell_bury(&stage.plan, PATIENCE_MS));
	if (geteuid() == 0) {
		/* Nothing is left of it: then that is done. */
		stage.plan.bare = true;
		assert_true(vt_cell_bury(&stage.plan, PATIENCE_MS));
	}
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
}

/* ---- what it finds ------------------------------------------------------------------------- */

static void check_bare_prints(struct stage *stage, const char *wanted)
{
	struct vt_note note;

	must_spawn(stage);
	assert_string_equal(output(stage), wanted);
	expect(stage, VT_NOTE_RUNNING, &note);
	expect(stage, VT_NOTE_ENDED, &note);
	assert_int_equal(note.wait_status, 0);
	end(stage);
}

static void test_finds(void **state)
{
	struct stage stage;
	char wanted[256];

	(void)state;
	plan_bare(&stage, VT_SWEEP_TREE, "pwd; stat -c '%a %u' .; id -u; id -G; umask");
	const struct vt_outer outer = vt_spawn_ids(&stage.plan);

	if (geteuid() == 0)
		assert_true(outer.uid >= 0x70000000);
	else
		assert_int_equal(outer.uid, geteuid());
	(void)snprintf(wanted, sizeof(wanted), "%s\n700 %u\n%u\n%u\n0022\n", stage.scratch,
		       outer.uid, outer.uid, outer.gid); /* fits */
	check_bare_prints(&stage, wanted);
	plan_bare(&stage, VT_SWEEP_TREE,
		  "grep -E '^(NoNewPrivs|Seccomp|CapPrm|CapEff|CapAmb|SigBlk|SigIgn):' "
		  "/proc/self/status | sort; cat /proc/self/oom_score_adj; "
		  "echo $(ls /proc/self/fd)");
	check_bare_prints(&stage, "CapAmb:\t0000000000000000\nCapEff:\t0000000000000000\n"
				  "CapPrm:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
				  "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
				  "1000\n0 1 2 3\n");
}

/* Init is out of reach where the occupant is in a domain of its own below init's. */
static void test_init_is_out_of_reach(void **state)
{
	enum vt_sweep ways[3];
	struct stage stage;

	(void)state;
	(void)list_ways(ways);
	if (ways[0] != VT_SWEEP_DOMAIN)
		SKIP("Landlock scopes no signals here");
	plan_bare(&stage, VT_SWEEP_DOMAIN, "kill -0 $PPID && echo reached");
	stage.plan.landlock_scoped = 0; /* the control: in one domain they reach each other */
	check_bare_prints(&stage, "reached\n");
	plan_bare(&stage, VT_SWEEP_DOMAIN,
		  "exec 2>/dev/null; kill -KILL $PPID || echo refused; kill -KILL -1; "
		  "sleep 1000 & kill $!; wait $!; echo $?");
	check_bare_prints(&stage, "refused\n143\n");
}

/* Landlock alone shows what the rules name. */
static void test_landlock(void **state)
{
	static const char script[] = "exec 2>/dev/null; read line </etc/hostname && echo outside; "
				     "echo text >file && cat file; read line </proc/self/status "
				     "&& echo own; test -x /bin/sh && echo sh; "
				     "echo >/tmp/vitro-stage-new || echo shut; "
				     "rm -f /tmp/vitro-stage-new";
	static const char *const shown[] = { "/usr", "/bin", "/lib", "/lib64", "/dev/null" };
	struct vt_landlock_abi abi = vt_landlock_rights(
		sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION));
	struct vt_landlock_rule rules[8];
	struct stage stage;
	struct stat st;
	size_t count = 0;

	(void)state;
	if (!(abi.fs & LANDLOCK_ACCESS_FS_TRUNCATE))
		SKIP("Landlock knows too little here");
	plan_bare(&stage, VT_SWEEP_TREE, script);
	check_bare_prints(&stage, "outside\ntext\nown\nsh\n");
	plan_bare(&stage, VT_SWEEP_TREE, script);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (stat(shown[i], &st) == 0)
			rules[count++] = (struct vt_landlock_rule){
				.to = shown[i],
				.rights = vt_landlock_read() | LANDLOCK_ACCESS_FS_WRITE_FILE,
				.dev = st.st_dev,
				.ino = st.st_ino,
			};
	rules[count++] = (struct vt_landlock_rule){
		.to = stage.scratch,
		.rights = (vt_landlock_read() | vt_landlock_write()) & abi.fs,
		.scratch = true,
	};
	stage.plan.landlock_fs = abi.fs;
	stage.plan.landlock_rules = rules;
	stage.plan.landlock_rule_count = count;
	check_bare_prints(&stage, "text\nown\nsh\nshut\n");
}

static int send_ten(int to, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(10 * sizeof(int))];
	} control = { 0 };
	char byte = 'x';
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	const struct msghdr message = { .msg_iov = &iov,
					.msg_iovlen = 1,
					.msg_control = &control,
					.msg_controllen = sizeof(control) };
	const int fds[10] = { fd, fd, fd, fd, fd, fd, fd, fd, fd, fd };

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	return (int)sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Another of the same user has so many descriptors on their way that nobody may send one. */
static void is_crowded(void *arg)
{
	struct rlimit limit;
	struct stage stage;
	struct vt_note note;
	int pair[2], sent = 0;

	(void)arg;
	if (geteuid() == 0) {
		MUST(setresgid(OTHER_ID, OTHER_ID, OTHER_ID) == 0);
		MUST(setresuid(OTHER_ID, OTHER_ID, OTHER_ID) == 0);
		MUST(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
	}
	MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max > 200);
	limit.rlim_cur = 100;
	MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	for (int i = 0; i < 20 && sent >= 0; i++)
		sent = send_ten(pair[0], pair[1]);
	MUST(sent < 0 && errno == ETOOMANYREFS); /* the control */
	plan_bare(&stage, VT_SWEEP_TREE, "ulimit -n");
	MUST(spawn(&stage) == 0);
	MUST(next_note(&stage, &note) == 1);
	if (note.kind == VT_NOTE_FAILED)
		child_fail(__FILE__, __LINE__, note.err.what, note.err.num);
	MUST(note.kind == VT_NOTE_RUNNING);
	MUST(next_note(&stage, &note) == 1 && note.kind == VT_NOTE_ENDED && note.wait_status == 0);
	finish(&stage);
}

static void test_is_crowded(void **state)
{
	(void)state;
	run_child(is_crowded, NULL);
}

/* What the caller has in its environment is not there for anybody who looks at init. */
static void test_init_is_hidden(void **state)
{
	struct stage stage;
	struct vt_note note;
	char path[64], text[4096];

	(void)state;
	plan_bare(&stage, VT_SWEEP_TREE, "exec sleep 1000");
	must_spawn(&stage);
	expect(&stage, VT_NOTE_RUNNING, &note);
	(void)snprintf(path, sizeof(path), "/proc/%d/environ", stage.cell.init); /* fits */
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (geteuid() != 0) {
		assert_int_equal(fd, -1);
		assert_int_equal(errno, EACCES);
	} else {
		ssize_t len = read(fd, text, sizeof(text));

		assert_true(len >= 0);
		for (ssize_t i = 0; i < len; i++)
			assert_int_equal(text[i], 0);
	}
	vt_fd_close(&fd);
	assert_int_equal(vt_cell_kill(&stage.cell, &stage.err), 0);
	end(&stage);
}

static void test_rehearsal(void **state)
{
	struct stage stage;

	(void)state;
	plan_bare(&stage, VT_SWEEP_TREE, "echo ran");
	stage.plan.rehearsal = true;
	check_bare_prints(&stage, "");
}

/* ---- what fails ---------------------------------------------------------------------------- */

/* `late`: the occupant finds out, and it is reported as running before. */
static void check_fails(struct stage *stage, enum vt_step step, int num, bool late)
{
	struct vt_note note;

	must_spawn(stage);
	if (late)
		expect(stage, VT_NOTE_RUNNING, &note);
	expect(stage, VT_NOTE_FAILED, &note);
	assert_int_equal(note.err.step, step);
	assert_int_equal(note.err.num, num);
	assert_string_equal(output(stage), "");
	assert_int_equal(vt_cell_kill(&stage->cell, &stage->err), 0);
	finish(stage);
}

static void test_folder_is_taken(void **state)
{
	struct stage stage;
	struct stat st;

	(void)state;
	plan_bare(&stage, VT_SWEEP_TREE, "echo ran");
	assert_int_equal(mkdir(stage.scratch, 0755), 0);
	check_fails(&stage, VT_STEP_MOUNTS, EEXIST, false);
	assert_int_equal(stat(stage.scratch, &st), 0); /* somebody else's: it stays */
	assert_int_equal(rmdir(stage.scratch), 0);
}

/* The caller's own id, which is the caller's too: a signal to all would reach him. */
static void is_unconfined(void *arg)
{
	struct stage stage;
	struct vt_note note;
	struct stat st;
	int status;

	(void)arg;
	/* In a pid namespace, beyond which that signal does not go, should it ever be sent. */
	become_inner_root(CLONE_NEWPID);
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid == 0) {
		MUST(getpid() == 1);
		pid_t supervisor = fork();

		MUST(supervisor >= 0);
		if (supervisor > 0) {
			MUST(waitpid(supervisor, &status, 0) == supervisor);
			_exit(status == 0 ? 0 : 1);
		}
		plan_bare(&stage, VT_SWEEP_USER, "echo ran");
		stage.plan.own_ids = false;
		MUST(spawn(&stage) == 0);
		MUST(next_note(&stage, &note) == 1 && note.kind == VT_NOTE_FAILED);
		MUST(note.err.step == VT_STEP_SESSION && note.err.num == EPERM);
		MUST(*output(&stage) == '\0');
		MUST(waitpid(stage.cell.init, &status, __WALL) == stage.cell.init);
		MUST_FAIL(lstat(stage.scratch, &st), ENOENT);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void test_signals_unconfined(void **state)
{
	(void)state;
	run_child(is_unconfined, NULL);
}

static void test_occupant_fails(void **state)
{
	const struct vt_landlock_rule absent = { .to = "/no/such", .rights = vt_landlock_read() };
	const struct vt_landlock_rule other = {
		.to = "/usr", .rights = vt_landlock_read(), .dev = 1, .ino = 1
	};
	struct stage stage;

	(void)state;
	plan_bare(&stage, VT_SWEEP_TREE, "echo ran");
	stage.plan.exec_path = "/no/such";
	check_fails(&stage, VT_STEP_EXEC, ENOENT, true);
	check_gone(&stage);
	plan_bare(&stage, VT_SWEEP_TREE, "echo ran");
	stage.plan.cwd = "/no/such";
	stage.plan.cwd_private = false;
	check_fails(&stage, VT_STEP_SESSION, ENOENT, true);
	check_gone(&stage);
	plan_bare(&stage, VT_SWEEP_TREE, "echo ran");
	stage.plan.cwd = "/usr"; /* but the plan saw another */
	stage.plan.cwd_private = false;
	stage.plan.cwd_dev = stage.plan.cwd_ino = 1;
	check_fails(&stage, VT_STEP_SESSION, ESTALE, true);
	check_gone(&stage);
	if (sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 3)
		return;
	for (int i = 0; i < 2; i++) {
		plan_bare(&stage, VT_SWEEP_TREE, "echo ran");
		stage.plan.landlock_fs = vt_landlock_read();
		stage.plan.landlock_rules = i ? &other : &absent;
		stage.plan.landlock_rule_count = 1;
		check_fails(&stage, VT_STEP_LANDLOCK, i ? ESTALE : ENOENT, false);
		check_gone(&stage);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_kill_early),
		cmocka_unit_test(test_dies_with_its_supervisor),
		cmocka_unit_test(test_bury),
		cmocka_unit_test(test_bury_refuses),
		cmocka_unit_test(test_finds),
		cmocka_unit_test(test_init_is_out_of_reach),
		cmocka_unit_test(test_landlock),
		cmocka_unit_test(test_is_crowded),
		cmocka_unit_test(test_init_is_hidden),
		cmocka_unit_test(test_rehearsal),
		cmocka_unit_test(test_folder_is_taken),
		cmocka_unit_test(test_signals_unconfined),
		cmocka_unit_test(test_occupant_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
