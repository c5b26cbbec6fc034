/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides of a launch, with a plan made by hand: real cells, and what they say. */
#include "kernel/child_test.h"

#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/seccomp.h"
#include "launch/spawn.h"

enum { PATIENCE_MS = 20000, MAX_BUILDS = 24 };

/* A small plan: /usr and what leads there, /tmp, /proc, /dev/null, and a shell that runs a script.
 */
struct stage {
	struct vt_plan plan;
	struct vt_build builds[MAX_BUILDS];
	char *argv[4], *envp[3];
	char shell[8], flag[4], script[2048], lang[16], home[16];
	struct vt_cell cell;
	int out; /* what the occupant wrote, and its children */
	int fds_before;
	struct vt_err err;
};

static struct vt_build *add(struct stage *stage, enum vt_act act, const char *to, const char *from)
{
	struct vt_build *build = &stage->builds[stage->plan.build_count++];
	struct stat st;

	assert_true(stage->plan.build_count <= MAX_BUILDS);
	*build = (struct vt_build){ .act = act, .to = to, .from = from, .mode = 0755, .idmap = -1 };
	if (act == VT_ACT_BIND) {
		assert_int_equal(stat(from, &st), 0);
		build->dev = st.st_dev;
		build->ino = st.st_ino;
	}
	return build;
}

static void plan_root(struct stage *stage)
{
	static const char *const links[][2] = {
		{ "bin", "/bin" },
		{ "lib", "/lib" },
		{ "lib64", "/lib64" },
	};
	static char targets[3][64];

	add(stage, VT_ACT_DIR, "usr", NULL);
	add(stage, VT_ACT_BIND, "usr", "/usr");
	for (size_t i = 0; i < 3; i++) {
		ssize_t len = readlink(links[i][1], targets[i], sizeof(targets[i]) - 1);

		if (len > 0) {
			targets[i][len] = '\0';
			add(stage, VT_ACT_LINK, links[i][0], targets[i]);
		} else if (access(links[i][1], F_OK) == 0) {
			add(stage, VT_ACT_DIR, links[i][0], NULL);
			add(stage, VT_ACT_BIND, links[i][0], links[i][1]);
		}
	}
	add(stage, VT_ACT_DIR, "proc", NULL);
	add(stage, VT_ACT_PROC, "proc", NULL);
	add(stage, VT_ACT_DIR, "tmp", NULL)->mode = 01777;
	add(stage, VT_ACT_SCRATCH, "tmp", NULL);
	add(stage, VT_ACT_DIR, "etc", NULL);
	add(stage, VT_ACT_FILE, "etc/words", "some words\n");
	add(stage, VT_ACT_DIR, "dev", NULL);
	add(stage, VT_ACT_FILE, "dev/null", "");
	add(stage, VT_ACT_BIND, "dev/null", "/dev/null")->device = true;
	add(stage, VT_ACT_MASK, "proc/version", "dev/null");
	add(stage, VT_ACT_MASK, "proc/no-such-thing", "dev/null");
}

static void plan_shell(struct stage *stage, const char *script)
{
	(void)snprintf(stage->script, sizeof(stage->script), "%s", script); /* they are short */
	strcpy(stage->shell, "/bin/sh");
	strcpy(stage->flag, "-c");
	strcpy(stage->lang, "LANG=C");
	strcpy(stage->home, "HOME=/tmp");
	stage->argv[0] = stage->shell;
	stage->argv[1] = stage->flag;
	stage->argv[2] = stage->script;
	stage->envp[0] = stage->lang;
	stage->envp[1] = stage->home;
}

static void plan(struct stage *stage, const char *script)
{
	static const struct vt_rlimit no_core[] = { { RLIMIT_CORE, { 0, 0 } } };

	*stage = (struct stage){ .out = -1 };
	vt_cell_init(&stage->cell);
	plan_root(stage);
	plan_shell(stage, script);
	stage->plan = (struct vt_plan){
		.exec_path = stage->shell,
		.argv = stage->argv,
		.envp = stage->envp,
		.cwd = "/tmp",
		.namespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC |
			      CLONE_NEWUTS | CLONE_NEWNET,
		.inner_uid = 1000,
		.inner_gid = 1000,
		.own_ids = geteuid() == 0,
		.id_base = 0x70000000,
		.id_count = 4194304,
		.outer_uid = geteuid(),
		.outer_gid = getegid(),
		.scratch_bytes = 1 << 20,
		.scratch_inodes = 100,
		.builds = stage->builds,
		.build_count = stage->plan.build_count,
		.rlimits = no_core,
		.rlimit_count = 1,
		.seccomp = vt_seccomp_builtin(VT_SECCOMP_DEFAULT, VT_SOCKETS_UNIX),
	};
}

/* Starts it with a pipe for its output, of which nobody else keeps the writing end. */
static int spawn(struct stage *stage)
{
	int ends[2];

	stage->fds_before = count_fds();
	AUTO_CLOSE int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(null >= 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	const struct vt_stdio stdio = { .in = null, .out = ends[1], .err = ends[1] };
	int r = vt_spawn(&stage->plan, &stdio, &stage->cell, &stage->err);

	(void)close(ends[1]); /* the cell has its own */
	stage->out = ends[0];
	return r;
}

static void start(struct stage *stage, const char *script)
{
	plan(stage, script);
	if (spawn(stage) < 0)
		fail_msg("%s: %s", vt_step_name(stage->err.step), stage->err.what);
}

static void await(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
}

/* The next note, with its descriptors closed after a look at them; -EPIPE at the end. */
static int next_note(struct stage *stage, struct vt_note *ret_note)
{
	int fds[VT_NOTE_FDS];

	await(stage->cell.status_fd);
	int r = vt_cell_note(&stage->cell, ret_note, fds, &stage->err);

	for (size_t i = 0; i < VT_NOTE_FDS; i++) {
		if (r == 1 && ret_note->kind == VT_NOTE_RUNNING) {
			assert_true(fds[i] >= 0);
			assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		} else {
			assert_int_equal(fds[i], -1);
		}
		vt_fd_close(&fds[i]);
	}
	return r;
}

/* All that was written, to the end of the pipe: then nobody of the cell lives who has it. */
static const char *output(struct stage *stage)
{
	static char text[8192];
	size_t len = 0;

	for (;;) {
		await(stage->out);
		ssize_t n = read(stage->out, text + len, sizeof(text) - 1 - len);

		assert_true(n >= 0);
		len += (size_t)n;
		if (n == 0 || len == sizeof(text) - 1)
			break;
	}
	text[len] = '\0';
	return text;
}

/* The cell is over: reaps it, and nothing of it is left in this process. */
static void finish(struct stage *stage)
{
	int status;

	await(stage->cell.init_fd);
	assert_int_equal(waitpid(stage->cell.init, &status, __WALL), stage->cell.init);
	assert_int_equal(vt_cell_done(&stage->cell, &stage->err), 0);
	vt_fd_close(&stage->out);
	assert_int_equal(count_fds(), stage->fds_before);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* Runs a script that must print exactly this and exit with 0. */
static void check_prints(const char *script, const char *wanted)
{
	struct stage stage;
	struct vt_note note;

	start(&stage, script);
	assert_string_equal(output(&stage), wanted);
	assert_int_equal(next_note(&stage, &note), 1);
	assert_int_equal(note.kind, VT_NOTE_RUNNING);
	assert_int_equal(next_note(&stage, &note), 1);
	assert_int_equal(note.kind, VT_NOTE_ENDED);
	assert_int_equal(note.wait_status, 0);
	finish(&stage);
}

/* ---- how it ends --------------------------------------------------------------------------- */

static void check_ends(const char *script, int wait_status)
{
	struct stage stage;
	struct vt_note note;

	start(&stage, script);
	assert_int_equal(next_note(&stage, &note), 1);
	assert_int_equal(note.kind, VT_NOTE_RUNNING);
	assert_int_equal(next_note(&stage, &note), 1);
	assert_int_equal(note.kind, VT_NOTE_ENDED);
	assert_int_equal(note.wait_status, wait_status);
	assert_int_equal(next_note(&stage, &note), -EPIPE);
	finish(&stage);
}

static void test_ends(void **state)
{
	(void)state;
	check_ends("exit 0", 0);
	check_ends("exit 7", W_EXITCODE(7, 0));
	check_ends("kill -KILL $$", W_EXITCODE(0, SIGKILL));
	check_ends("kill -SEGV $$", W_EXITCODE(0, SIGSEGV));
	/* an orphan that outlives it is reaped by nobody's leave, and changes nothing */
	check_ends("(sleep 0.01 &) ; exit 3", W_EXITCODE(3, 0));
	check_ends("(exit 9) & sleep 1000 & exit 4", W_EXITCODE(4, 0));
}

/* Without a note there is none; the caller is not made to wait. */
static void test_note_does_not_wait(void **state)
{
	struct stage stage;
	struct vt_note note;
	int fds[VT_NOTE_FDS];

	(void)state;
	start(&stage, "exec sleep 1000");
	assert_int_equal(next_note(&stage, &note), 1);
	assert_int_equal(note.kind, VT_NOTE_RUNNING);
	int64_t before = vt_clock_now();

	assert_int_equal(vt_cell_note(&stage.cell, &note, fds, &stage.err), 0);
	assert_true(vt_clock_now() - before < VT_NS_PER_S);
	assert_int_equal(vt_cell_kill(&stage.cell, &stage.err), 0);
	finish(&stage);
}

/* Whatever it does against it: double forks, sessions, ignored and stopped processes. */
static void test_kill(void **state)
{
	struct stage stage;
	struct vt_note note;
	char byte;

	(void)state;
	start(&stage, "trap '' TERM HUP INT; (setsid sleep 1000 &); sleep 1000 & kill -STOP $!; "
		      "(trap '' TERM; while :; do sleep 1000; done) & echo ready; sleep 1000");
	await(stage.out);
	assert_int_equal(read(stage.out, &byte, 1), 1);
	int64_t before = vt_clock_now();

	assert_int_equal(vt_cell_kill(&stage.cell, &stage.err), 0);
	assert_string_equal(output(&stage), "eady\n");
	await(stage.cell.init_fd);
	assert_true(vt_clock_now() - before < 5 * VT_NS_PER_S);
	assert_int_equal(next_note(&stage, &note), 1);
	assert_int_equal(note.kind, VT_NOTE_RUNNING);
	assert_int_equal(next_note(&stage, &note), -EPIPE);
	assert_int_equal(vt_cell_kill(&stage.cell, &stage.err), 0); /* twice is fine */
	finish(&stage);
}

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

static void ignores_children(void *arg)
{
	struct stage stage;
	struct vt_note note;
	int status;

	(void)arg;
	MUST(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	plan(&stage, "exit 6");
	MUST(spawn(&stage) == 0);
	MUST(next_note(&stage, &note) == 1 && note.kind == VT_NOTE_RUNNING);
	MUST(next_note(&stage, &note) == 1 && note.kind == VT_NOTE_ENDED);
	MUST(note.wait_status == W_EXITCODE(6, 0));
	MUST(waitpid(stage.cell.init, &status, __WALL) == stage.cell.init);
}

static void test_caller_ignores_children(void **state)
{
	(void)state;
	run_child(ignores_children, NULL);
}

/* The supervisor dies without a word: so does the cell, at once. */
static void test_dies_with_its_supervisor(void **state)
{
	struct stage stage;
	struct pollfd ready;
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t supervisor = fork();

	assert_true(supervisor >= 0);
	if (supervisor == 0) {
		const struct vt_stdio stdio = { .in = ends[1], .out = ends[1], .err = ends[1] };

		plan(&stage, "echo; sleep 1000 & exec sleep 1000");
		if (vt_spawn(&stage.plan, &stdio, &stage.cell, &stage.err) < 0)
			_exit(1);
		for (;;)
			(void)pause(); /* until killed */
	}
	(void)close(ends[1]);
	ready = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	assert_int_equal(read(ends[0], &byte, 1), 1); /* it runs */
	assert_int_equal(kill(supervisor, SIGKILL), 0);
	assert_int_equal(waitpid(supervisor, NULL, 0), supervisor);
	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
	assert_int_equal(read(ends[0], &byte, 1), 0); /* nobody has it any more */
	(void)close(ends[0]);
}

/* A folder that only its owner may enter, given to the cell's user; new files are the owner's. */
static void test_mapped_grant(void **state)
{
	char folder[] = "/tmp/vitro-spawn-XXXXXX", path[64];
	const struct vt_idmap owner = { .uid = 4321, .gid = 4322 };
	struct stage stage;
	struct vt_note note;
	struct stat st;

	(void)state;
	NEEDS_ROOT();
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chown(folder, owner.uid, owner.gid), 0);
	plan(&stage, "id -u; stat -c %u /work; echo text >/work/new; echo $?");
	add(&stage, VT_ACT_DIR, "work", NULL);
	struct vt_build *grant = add(&stage, VT_ACT_BIND, "work", folder);

	grant->writable = true;
	grant->idmap = 0;
	stage.plan.idmaps = &owner;
	stage.plan.idmap_count = 1;
	assert_int_equal(spawn(&stage), 0);
	assert_string_equal(output(&stage), "1000\n1000\n0\n");
	(void)snprintf(path, sizeof(path), "%s/new", folder); /* fits */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, owner.uid);
	assert_int_equal(st.st_gid, owner.gid);
	assert_int_equal(next_note(&stage, &note), 1);
	finish(&stage);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
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
	check_fails(&stage, VT_STEP_LANDLOCK, EINVAL, "ruleset");
	/* two acts for one place */
	plan(&stage, "echo ran");
	add(&stage, VT_ACT_DIR, "tmp", NULL);
	check_fails(&stage, VT_STEP_MOUNTS, EEXIST, "'tmp'");
}

/* What fails on the parent's side leaves no descriptor and no child, and the cell as it was. */
static void check_spawn_fails(struct stage *stage, enum vt_step step)
{
	struct vt_cell untouched = stage->cell;

	assert_true(spawn(stage) < 0);
	assert_int_equal(stage->err.step, step);
	assert_memory_equal(&stage->cell, &untouched, sizeof(untouched));
	assert_string_equal(output(stage), "");
	vt_fd_close(&stage->out);
	assert_int_equal(count_fds(), stage->fds_before);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void test_clone_fails(void **state)
{
	struct stage stage;

	(void)state;
	plan(&stage, "echo ran");
	stage.plan.namespaces |= CLONE_FS;
	check_spawn_fails(&stage, VT_STEP_CLONE);
}

static void test_maps_fail(void **state)
{
	struct stage stage;

	(void)state;
	plan(&stage, "echo ran");
	stage.plan.own_ids = false;
	stage.plan.outer_uid = (uid_t)-1; /* no id at all */
	check_spawn_fails(&stage, VT_STEP_IDS);
}

static void test_mapped_grant_fails(void **state)
{
	const struct vt_idmap owners[] = { { 1, 1 }, { 2, 2 } };
	struct stage stage;

	(void)state;
	NEEDS_ROOT();
	plan(&stage, "echo ran");
	/* the first grant works, the second is on a file system that takes no map */
	add(&stage, VT_ACT_DIR, "one", NULL);
	add(&stage, VT_ACT_BIND, "one", "/tmp")->idmap = 0;
	add(&stage, VT_ACT_DIR, "two", NULL);
	add(&stage, VT_ACT_BIND, "two", "/proc/sys")->idmap = 1;
	stage.plan.idmaps = owners;
	stage.plan.idmap_count = 2;
	check_spawn_fails(&stage, VT_STEP_MOUNTS);
}

/* ---- notes --------------------------------------------------------------------------------- */

/* A cell that consists of a socket: the other end is returned. */
static int fake_cell(struct vt_cell *cell)
{
	int pair[2];

	vt_cell_init(cell);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	cell->status_fd = pair[0];
	return pair[1];
}

/* Init failed and ended before it took what the supervisor said: its note still counts. */
static void test_note_of_one_who_did_not_listen(void **state)
{
	const struct vt_note go = { .kind = VT_NOTE_GO };
	const struct vt_note failed = { .kind = VT_NOTE_FAILED, .err = { .num = EIO } };
	struct vt_cell cell;
	struct vt_note note;
	struct vt_err err;
	int fds[VT_NOTE_FDS];
	int other = fake_cell(&cell);

	(void)state;
	assert_int_equal(send(cell.status_fd, &go, sizeof(go), 0), sizeof(go));
	assert_int_equal(send(other, &failed, sizeof(failed), 0), sizeof(failed));
	(void)close(other);
	assert_int_equal(vt_cell_note(&cell, &note, fds, &err), 1);
	assert_int_equal(note.kind, VT_NOTE_FAILED);
	assert_int_equal(note.err.num, EIO);
	assert_int_equal(vt_cell_note(&cell, &note, fds, &err), -EPIPE);
	assert_int_equal(vt_cell_done(&cell, &err), 0);
}

static void test_note_of_wrong_size(void **state)
{
	struct vt_cell cell;
	struct vt_note note = { .wait_status = 12345 };
	struct vt_err err;
	int fds[VT_NOTE_FDS];
	AUTO_CLOSE int other = fake_cell(&cell);

	(void)state;
	assert_int_equal(send(other, "short", 5, 0), 5);
	assert_int_equal(vt_cell_note(&cell, &note, fds, &err), -EBADMSG);
	assert_int_equal(note.wait_status, 12345);
	assert_int_equal(vt_cell_note(&cell, &note, fds, &err), 0);
	assert_int_equal(vt_cell_done(&cell, &err), 0);
}

/* The text of an error is a string, whoever wrote it. */
static void test_note_without_an_end(void **state)
{
	struct vt_cell cell;
	struct vt_note note = { .kind = VT_NOTE_FAILED };
	struct vt_err err;
	int fds[VT_NOTE_FDS];
	AUTO_CLOSE int other = fake_cell(&cell);

	(void)state;
	memset(note.err.what, 'x', sizeof(note.err.what));
	assert_int_equal(send(other, &note, sizeof(note), 0), sizeof(note));
	assert_int_equal(vt_cell_note(&cell, &note, fds, &err), 1);
	assert_int_equal(strlen(note.err.what), sizeof(note.err.what) - 1);
	assert_int_equal(vt_cell_done(&cell, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_note_does_not_wait),
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_inside),
		cmocka_unit_test(test_network),
		cmocka_unit_test(test_scratch_bound),
		cmocka_unit_test(test_leaked_descriptor),
		cmocka_unit_test(test_callers_handlers),
		cmocka_unit_test(test_caller_ignores_children),
		cmocka_unit_test(test_dies_with_its_supervisor),
		cmocka_unit_test(test_mapped_grant),
		cmocka_unit_test(test_bind_was_swapped),
		cmocka_unit_test(test_exec_fails),
		cmocka_unit_test(test_other_steps_fail),
		cmocka_unit_test(test_clone_fails),
		cmocka_unit_test(test_maps_fail),
		cmocka_unit_test(test_mapped_grant_fails),
		cmocka_unit_test(test_note_of_one_who_did_not_listen),
		cmocka_unit_test(test_note_of_wrong_size),
		cmocka_unit_test(test_note_without_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
