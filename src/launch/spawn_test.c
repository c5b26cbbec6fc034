/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side of a launch: cells that start, end, are killed, or do not come to be. */
#include "launch/stage_test.h"

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
	check_ends(ends_traced, W_EXITCODE(6, 0));
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
	plan(&stage, "id -u; stat -c %u /grant; echo text >/grant/new; echo $?");
	add(&stage, VT_ACT_DIR, "grant", NULL);
	struct vt_build *grant = add(&stage, VT_ACT_BIND, "grant", folder);

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

/* ---- what fails ----------------------------------------------------------------------------- */

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
		cmocka_unit_test(test_caller_ignores_children),
		cmocka_unit_test(test_dies_with_its_supervisor),
		cmocka_unit_test(test_mapped_grant),
		cmocka_unit_test(test_clone_fails),
		cmocka_unit_test(test_maps_fail),
		cmocka_unit_test(test_mapped_grant_fails),
		cmocka_unit_test(test_note_of_one_who_did_not_listen),
		cmocka_unit_test(test_note_of_wrong_size),
		cmocka_unit_test(test_note_without_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
