/* SPDX-License-Identifier: Apache-2.0 */
/* A hull with its spawner, cells in it, and a zygote that forks occupants into them: the real ones.
 */
#include "launch/stage_test.h"

#include "kernel/ns.h"
#include "kernel/pass.h"
#include "launch/image.h"
#include "launch/spawner.h"
#include "launch/zygote.h"
#include "plan/pooled.h"

/* What the supervisor of a pool has. */
struct pool {
	struct stage stage;
	struct vt_cell hull, zygote; /* of the zygote: its process and control socket */
	int image;
};

struct warm {
	int init, root, proc;
	int call, out;
	pid_t pid;
	int occupant;
};

static void note_of(const struct vt_cell *cell, enum vt_note_kind wanted, struct vt_note *ret_note,
		    int fds[VT_NOTE_FDS])
{
	struct vt_err err;

	await(cell->status_fd);
	if (vt_cell_note(cell, ret_note, fds, &err) < 0)
		fail_msg("%s", err.what);
	if (ret_note->kind == VT_NOTE_FAILED)
		fail_msg("%s: %s", ret_note->err.what, strerror(ret_note->err.num));
	assert_int_equal(ret_note->kind, wanted);
}

/* Prints what it finds as an occupant, and whatever its call socket says. */
static _Noreturn void be_occupant(void)
{
	char text[256];
	struct vt_err err;

	if (vt_zygote_park(&err) < 0)
		_exit(1);
	ssize_t len = read(VT_OCCUPANT_CALL_FD, text, sizeof(text) - 1);

	if (len <= 0)
		_exit(2);
	text[len] = '\0';
	execl("/bin/sh", "sh", "-c", text, NULL);
	_exit(3);
}

static _Noreturn void be_zygote(int control)
{
	struct vt_zygote zygote;
	struct vt_err err;

	if (vt_zygote_join(&zygote, control, &err) < 0)
		_exit(4);
	if (vt_zygote_serve(&zygote, &err) == 0)
		be_occupant();
	_exit(err.num == EPIPE ? 0 : 5);
}

static void start_zygote(struct pool *pool, const int *hull_fds)
{
	const struct vt_note order = { .kind = VT_NOTE_PLAN };
	struct vt_note note;
	struct vt_err err;
	int pair[2], fds[VT_NOTE_FDS] = { pool->image };

	vt_cell_init(&pool->zygote);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pool->zygote.init = vt_ns_clone(0, -1, &pool->zygote.init_fd, &err);
	assert_true(pool->zygote.init >= 0);
	if (pool->zygote.init == 0) {
		(void)close(pair[0]);
		be_zygote(pair[1]);
	}
	(void)close(pair[1]);
	pool->zygote.status_fd = pair[0];
	memcpy(fds + 1, hull_fds, VT_HULL_FDS * sizeof(int));
	assert_int_equal(vt_pass_send(pair[0], &order, sizeof(order), fds, 1 + VT_HULL_FDS, &err),
			 0);
	note_of(&pool->zygote, VT_NOTE_READY, &note, fds);
}

static void start_pool(struct pool *pool)
{
	const struct vt_note order = { .kind = VT_NOTE_PLAN };
	struct vt_note note;
	struct vt_err err;
	int fds[VT_NOTE_FDS], hull[VT_NOTE_FDS];
	AUTO_CLOSE int self = open("/proc/self/exe", O_PATH | O_CLOEXEC);

	plan(&pool->stage, "");
	pool->stage.plan.pooled = true;
	pool->stage.plan.arena = vt_arena_new();
	assert_int_equal(vt_pooled_divide(&pool->stage.plan, &err), 0);
	if (vt_spawn_hull(&pool->stage.plan, self, &pool->hull, &err) < 0)
		fail_msg("%s", err.what);
	pool->image = vt_image_make(&pool->stage.plan, &err);
	assert_true(pool->image >= 0);
	note_of(&pool->hull, VT_NOTE_BORN, &note, fds);
	pool->hull.init = note.pid;
	pool->hull.init_fd = fds[0];
	/* There is nothing that it would stay for. */
	assert_int_equal(waitpid(pool->hull.maker, NULL, __WALL), pool->hull.maker);
	note_of(&pool->hull, VT_NOTE_HULL, &note, hull);
	assert_int_equal(
		vt_pass_send(pool->hull.status_fd, &order, sizeof(order), &pool->image, 1, &err),
		0);
	note_of(&pool->hull, VT_NOTE_READY, &note, fds);
	start_zygote(pool, hull);
	for (size_t i = 0; i < VT_HULL_FDS; i++)
		vt_fd_close(&hull[i]);
}

static void make_cell(struct pool *pool, uint64_t number, struct warm *warm)
{
	const struct vt_note order = { .kind = VT_NOTE_MAKE, .cell = number };
	struct vt_note note;
	struct vt_err err;
	int fds[VT_NOTE_FDS];

	assert_int_equal(vt_pass_send(pool->hull.status_fd, &order, sizeof(order), NULL, 0, &err),
			 0);
	note_of(&pool->hull, VT_NOTE_MADE, &note, fds);
	assert_int_equal(note.cell, number);
	warm->init = fds[0];
	note_of(&pool->hull, VT_NOTE_BUILT, &note, fds);
	assert_int_equal(note.cell, number);
	warm->root = fds[VT_BUILT_ROOT_FD];
	warm->proc = fds[VT_BUILT_PROC_FD];
	assert_true(warm->root >= 0 && warm->proc >= 0);
}

static void enter(struct pool *pool, uint64_t number, struct warm *warm)
{
	const struct vt_note order = { .kind = VT_NOTE_ENTER, .cell = number };
	struct vt_note note;
	struct vt_err err;
	int call[2], out[2], fds[VT_NOTE_FDS], none;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, call), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	const int sent[VT_ENTER_FDS] = { warm->init, call[1], out[1], out[1] };

	assert_int_equal(vt_pass_send(pool->zygote.status_fd, &order, sizeof(order), sent,
				      VT_ENTER_FDS, &err),
			 0);
	(void)close(call[1]);
	(void)close(out[1]);
	note_of(&pool->zygote, VT_NOTE_ENTERED, &note, fds);
	warm->occupant = fds[0];
	warm->pid = note.pid;
	warm->call = call[0];
	warm->out = out[0];
	await(warm->call);
	if (vt_pass_take(warm->call, &note, sizeof(note), &none, 1, 0, &err) < 0)
		fail_msg("%s", err.what);
	if (note.kind != VT_NOTE_PARKED)
		fail_msg("%s: %s", note.err.what, strerror(note.err.num));
}

static const char *call(struct warm *warm, const char *script)
{
	static struct stage reader;

	assert_int_equal(write(warm->call, script, strlen(script)), (ssize_t)strlen(script));
	reader.out = warm->out;
	return output(&reader);
}

static void end_cell(struct warm *warm)
{
	int status;

	assert_int_equal(syscall(SYS_pidfd_send_signal, warm->init, SIGKILL, NULL, 0), 0);
	assert_int_equal(waitpid(warm->pid, &status, __WALL), warm->pid);
	await(warm->init);
	int *fds[] = { &warm->init, &warm->root, &warm->proc,
		       &warm->call, &warm->out,  &warm->occupant };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		vt_fd_close(fds[i]);
}

static void end_pool(struct pool *pool)
{
	struct vt_err err;
	int status;

	vt_fd_close(&pool->zygote.status_fd);
	assert_int_equal(waitpid(pool->zygote.init, &status, __WALL), pool->zygote.init);
	assert_int_equal(status, 0);
	vt_fd_close(&pool->zygote.init_fd);
	assert_int_equal(vt_cell_kill(&pool->hull, &err), 0);
	assert_int_equal(waitpid(pool->hull.init, &status, __WALL), pool->hull.init);
	assert_int_equal(vt_cell_done(&pool->hull, &err), 0);
	vt_fd_close(&pool->image);
	vt_arena_free(pool->stage.plan.arena);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
}

static void test_occupant_is_sealed_in_its_cell(void **state)
{
	const int before = count_fds();
	struct pool pool;
	struct warm warm;
	char expected[512];

	(void)state;
	(void)snprintf(expected, sizeof(expected),
		       "1000\n/tmp\n/proc/2\nsome words\nbin\ndev\netc\nlib\n%sproc\ntmp\nusr\n"
		       "CapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
		       "touch: cannot touch '/x': Read-only file system\ny\n"
		       "ls: cannot access '/proc/1/fd': No such file or directory\n",
		       access("/lib64", F_OK) == 0 ? "lib64\n" : "");
	start_pool(&pool);
	make_cell(&pool, 1, &warm);
	enter(&pool, 1, &warm);
	assert_string_equal(call(&warm,
				 "id -u; pwd; echo /proc/[0-9]*; cat /etc/words; ls /; ls -A /tmp;"
				 "grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status;"
				 "touch /x /tmp/y; ls /tmp; ls /proc/1/fd; ls /.vitro"),
			    expected);
	end_cell(&warm);
	end_pool(&pool);
	assert_int_equal(count_fds(), before);
}

/* Cells of one hull do not see each other, nor what the other left. */
static void test_cells_are_apart(void **state)
{
	struct pool pool;
	struct warm a, b;

	(void)state;
	start_pool(&pool);
	make_cell(&pool, 1, &a);
	make_cell(&pool, 2, &b);
	enter(&pool, 1, &a);
	enter(&pool, 2, &b);
	assert_string_equal(call(&a, "echo mine > /tmp/a; hostname; exec >&- 2>&-; sleep 50"),
			    "vitro\n");
	assert_string_equal(call(&b, "ls /tmp; echo /proc/[0-9]*; kill -9 -1; echo alive"),
			    "/proc/2\nsh: 1: kill: No such process\n\nalive\n");
	end_cell(&b);
	end_cell(&a);
	end_pool(&pool);
}

static void test_everything_ends_with_the_spawner(void **state)
{
	struct pool pool;
	struct warm warm;
	int status;

	(void)state;
	start_pool(&pool);
	make_cell(&pool, 1, &warm);
	enter(&pool, 1, &warm);
	assert_int_equal(kill(pool.hull.init, SIGKILL), 0);
	assert_int_equal(waitpid(warm.pid, &status, __WALL), warm.pid);
	assert_true(WIFSIGNALED(status));
	await(warm.init);
	int *fds[] = { &warm.init, &warm.root, &warm.proc, &warm.call, &warm.out, &warm.occupant };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		vt_fd_close(fds[i]);
	end_pool(&pool);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_occupant_is_sealed_in_its_cell),
		cmocka_unit_test(test_cells_are_apart),
		cmocka_unit_test(test_everything_ends_with_the_spawner),
	};

	if (argc > 0 && strcmp(argv[0], "vitro-spawner") == 0)
		vt_spawner_run();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
