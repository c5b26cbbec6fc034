/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of both sides of a launch: a plan made by hand, and the cell that is made of it. */
#pragma once

#include "kernel/child_test.h"

#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/landlock.h"
#include "kernel/seccomp.h"
#include "launch/spawn.h"
#include "uapi/landlock.h"

enum { PATIENCE_MS = 20000, MAX_BUILDS = 24 };

/* It ends traced by its own child, which never waits for it: so nobody else can. */
static const char ends_traced[] __attribute__((unused)) =
	"exec python3 -c '\n"
	"import ctypes, os, time\n"
	"libc, parent, (read, write) = ctypes.CDLL(None), os.getpid(), os.pipe()\n"
	"libc.prctl(0x59616d61, ctypes.c_ulong(-1))\n" /* PR_SET_PTRACER, should there be Yama */
	"if os.fork() == 0:\n"
	"    if libc.ptrace(0x4206, parent, None, None) == 0: os.write(write, b\"x\")\n"
	"    else: os.kill(parent, 9)\n"
	"    time.sleep(1000)\n"
	"os.read(read, 1)\n"
	"os._exit(6)'";

/* A small plan: /usr and what leads there, /tmp, /proc, /dev/null, and a shell with a script. */
struct stage {
	struct vt_plan plan;
	struct vt_build builds[MAX_BUILDS];
	char *argv[4], *envp[3];
	char shell[8], flag[4], script[2048], lang[16], home[64];
	char scratch[64];
	struct vt_cell cell;
	int out; /* what the occupant wrote, and its children */
	int fds_before;
	struct vt_err err;
};

static inline struct vt_build *add(struct stage *stage, enum vt_act act, const char *to,
				   const char *from)
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

static inline void plan_root(struct stage *stage)
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

static inline void plan_shell(struct stage *stage, const char *script)
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

static inline void plan(struct stage *stage, const char *script)
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
			      CLONE_NEWUTS,
		.own_network = true,
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
		.filters = { vt_seccomp_builtin(VT_SECCOMP_DEFAULT, VT_SOCKETS_UNIX) },
		.filter_count = 1,
	};
}

/* The same without namespaces: in the host's own root, with a private folder of its own. */
static inline void plan_bare(struct stage *stage, enum vt_sweep sweep, const char *script)
{
	static unsigned count;

	plan(stage, script);
	(void)snprintf(stage->scratch, sizeof(stage->scratch), "/tmp/vitro-stage-%d-%u", getpid(),
		       count++);                                                        /* fits */
	(void)snprintf(stage->home, sizeof(stage->home), "HOME=%.50s", stage->scratch); /* fits */
	stage->plan.bare = true;
	stage->plan.sweep = sweep;
	stage->plan.scratch = stage->plan.cwd = stage->scratch;
	stage->plan.cwd_private = true;
	stage->plan.namespaces = 0;
	stage->plan.own_network = false;
	stage->plan.build_count = 0;
	/* Landlock's are as strict as init's domain, and the occupant's is in that. */
	stage->plan.landlock_scoped = sweep == VT_SWEEP_DOMAIN ? LANDLOCK_SCOPE_SIGNAL : 0;
}

/* The ways of ending a bare cell that this machine and user have. */
static inline size_t list_ways(enum vt_sweep ways[3])
{
	int abi = sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	size_t count = 0;

	if (abi > 0 && vt_landlock_rights(abi).scoped & LANDLOCK_SCOPE_SIGNAL)
		ways[count++] = VT_SWEEP_DOMAIN;
	if (geteuid() == 0)
		ways[count++] = VT_SWEEP_USER;
	ways[count++] = VT_SWEEP_TREE;
	return count;
}

/* Starts it with a pipe for its output, of which nobody else keeps the writing end. */
static inline int spawn(struct stage *stage)
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

static inline void start(struct stage *stage, const char *script)
{
	plan(stage, script);
	if (spawn(stage) < 0)
		fail_msg("%s: %s", vt_step_name(stage->err.step), stage->err.what);
}

static inline void await(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
}

/* The next note, with its descriptors closed after a look at them; -EPIPE at the end. */
static inline int next_note(struct stage *stage, struct vt_note *ret_note)
{
	int fds[VT_NOTE_FDS];

	await(stage->cell.status_fd);
	int r = vt_cell_note(&stage->cell, ret_note, fds, &stage->err);

	for (size_t i = 0; i < VT_NOTE_FDS; i++) {
		if (r == 1 && ret_note->kind == VT_NOTE_RUNNING) {
			if (i >= VT_NOTE_RUNNING_FDS ||
			    (i == VT_NOTE_PROC_FD && stage->plan.bare)) {
				assert_int_equal(fds[i], -1);
				continue;
			}
			assert_true(fds[i] >= 0);
			assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		} else if (r == 1 && ret_note->kind == VT_NOTE_LISTENER) {
			assert_int_equal(fds[i] >= 0, i == VT_NOTE_LISTENER_FD);
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
static inline void finish(struct stage *stage)
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
static inline void check_prints(const char *script, const char *wanted)
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
