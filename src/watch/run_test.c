/* SPDX-License-Identifier: Apache-2.0 */
/* Whole calls: a policy, this machine, a plan, a cell, a result. */
#include "watch/call_test.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

static void test_ends_by_itself(void **state)
{
	static const struct row rows[] = {
		{ "{}", "/bin/true", VT_STATUS_OK, 0, 0, "", "" },
		{ "{}", "/bin/false", VT_STATUS_ERROR, 1, 0, "", "" },
		{ "{}", "exit 42", VT_STATUS_ERROR, 42, 0, "", "" },
		{ "{}", "echo out; echo err >&2", VT_STATUS_OK, 0, 0, "out\n", "err\n" },
		{ "{}", "kill -SEGV $$", VT_STATUS_CRASHED, -1, SIGSEGV, "", "" },
		{ "{}", "kill -KILL $$", VT_STATUS_CRASHED, -1, SIGKILL, "", "" },
		/* a grandchild that holds the pipe is not waited for */
		{ "{}", "echo a; setsid sleep 1000 & exit 0", VT_STATUS_OK, 0, 0, "a\n", "" },
		/* the end of the input is seen */
		{ "{}", "cat; echo done", VT_STATUS_OK, 0, 0, "done\n", "" },
		{ "{}", "{ kill -TERM 1; kill -KILL 1; } 2>/dev/null; echo up", VT_STATUS_OK, 0, 0,
		  "up\n", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
}

static void test_cannot_execute(void **state)
{
	static const struct row rows[] = {
		{ "{}", "/usr/bin/no-such-program", VT_STATUS_ERROR, 127, 0, "", "" },
		{ "{}", "/etc/passwd", VT_STATUS_ERROR, 126, 0, "", "" },
		{ "{}", "/usr", VT_STATUS_ERROR, 126, 0, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
}

static void test_deadline(void **state)
{
	static const struct row rows[] = {
		{ "{\"limits\": {\"wall_ms\": 100}}", "echo a; exec sleep 1000", VT_STATUS_TIMEOUT,
		  -1, SIGKILL, "a\n", "" },
		{ "{\"limits\": {\"wall_ms\": 100}}",
		  "trap '' TERM HUP; while :; do sleep 1000; done", VT_STATUS_TIMEOUT, -1, SIGKILL,
		  "", "" },
	};
	struct call call;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
	plan(&call, rows[0].policy, rows[0].script);
	run(&call);
	assert_true(call.result.wall_ms >= 100);
	end(&call);
}

/* With grace: SIGTERM, some time to obey, and only then the end. */
static void test_grace(void **state)
{
	static const struct row obeys = {
		"{\"limits\": {\"wall_ms\": 500, \"grace_ms\": 5000}}",
		"trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done",
		VT_STATUS_TIMEOUT,
		3,
		0,
		"up\nbye\n",
		""
	};
	static const struct row defies = {
		"{\"limits\": {\"wall_ms\": 500, \"grace_ms\": 150}}",
		"trap 'echo no' TERM; echo up; while :; do sleep 0.01; done",
		VT_STATUS_TIMEOUT,
		-1,
		SIGKILL,
		"up\nno\n",
		""
	};
	struct call call;

	(void)state;
	check_row(&obeys);
	check_row(&defies);
	plan(&call, defies.policy, defies.script);
	run(&call);
	assert_true(call.result.wall_ms >= 650);
	end(&call);
}

/* Output without end: what is kept is bounded, what was dropped is counted, the deadline holds. */
static void test_flood(void **state)
{
	struct call call;

	(void)state;
	plan(&call, "{\"limits\": {\"wall_ms\": 200, \"stdout_kb\": 4}}", "exec yes");
	run(&call);
	assert_int_equal(call.result.verdict.status, VT_STATUS_TIMEOUT);
	assert_true(call.result.out.head.len + call.result.out.tail.len <= 4096);
	assert_true(call.result.out.total > 1 << 20);
	assert_true(vt_capture_dropped(&call.result.out) > 1 << 20);
	assert_true(call.took < 10 * VT_NS_PER_S);
	end(&call);
}

/* All that was written before the end is there, though it was more than the loop had read. */
static void test_last_words(void **state)
{
	struct call call;

	(void)state;
	plan(&call, "{}", "yes | head -c 60000; yes | head -c 50000 >&2");
	run(&call);
	assert_int_equal(call.result.out.total, 60000);
	assert_int_equal(call.result.err.total, 50000);
	end(&call);
}

static void test_cpu(void **state)
{
	static const struct row row = { "{\"limits\": {\"cpu_ms\": 200, \"wall_ms\": 9000}}",
					"while :; do :; done",
					VT_STATUS_CPU_LIMIT,
					-1,
					SIGKILL,
					"",
					"" };

	(void)state;
	check_row(&row);
}

static void test_memory(void **state)
{
	struct call call;

	(void)state;
	plan(&call, "{\"limits\": {\"memory_mb\": 32, \"tmp_mb\": 8, \"wall_ms\": 9000}}",
	     "x=x; while :; do x=$x$x; done");
	run(&call);
	assert_int_equal(call.result.verdict.status, VT_STATUS_MEMORY_LIMIT);
	assert_true(call.result.peak_memory_kb > 16 << 10);
	/* Files that it mapped and others have read before are not its own. */
	if (call.plan->watched_memory_bytes < 0)
		assert_true(call.result.peak_memory_kb <= 32 << 10);
	end(&call);
}

static void test_usage(void **state)
{
	struct call call;

	(void)state;
	plan(&call, "{}", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 0.12");
	run(&call);
	assert_int_equal(call.result.verdict.status, VT_STATUS_OK);
	assert_true(call.result.cpu_ms >= 10 && call.result.cpu_ms <= call.result.wall_ms);
	assert_true(call.result.wall_ms >= 120);
	assert_true(call.result.peak_memory_kb > 0);
	assert_true(call.result.processes >= 1);
	end(&call);
}

/* ---- passing output and input on ----------------------------------------------------------- */

static void test_pass(void **state)
{
	struct call call;
	char text[64] = "";
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	plan(&call, "{}", "echo shown; echo kept >&2");
	call.io.out = (struct vt_sink){ VT_SINK_PASS, ends[1] };
	run(&call);
	assert_int_equal(read(ends[0], text, sizeof(text) - 1), 6);
	assert_string_equal(text, "shown\n");
	check_output(&call.result.out, "");
	check_output(&call.result.err, "kept\n");
	end(&call);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

/* Its reader has left: the command is told by SIGPIPE, as it would have been without us. */
static void test_reader_leaves(void **state)
{
	struct call call;
	int ends[2];

	(void)state;
	plan(&call, "{\"limits\": {\"wall_ms\": 9000}}", "exec yes");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	call.io.out = (struct vt_sink){ VT_SINK_PASS, ends[1] };
	(void)close(ends[0]);
	run(&call);
	assert_int_equal(call.result.verdict.status, VT_STATUS_CRASHED);
	assert_int_equal(call.result.verdict.signal, SIGPIPE);
	(void)close(ends[1]);
	end(&call);
}

/* A reader that sleeps does not move the deadline; only the writing of the rest waits. */
static void test_reader_sleeps(void **state)
{
	struct call call;
	char buffer[4096];
	int ends[2], status;

	(void)state;
	plan(&call, "{\"limits\": {\"wall_ms\": 200}}", "exec yes");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	call.io.out = (struct vt_sink){ VT_SINK_PASS, ends[1] };
	pid_t reader = fork();

	assert_true(reader >= 0);
	if (reader == 0) {
		(void)close(ends[1]);
		(void)sleep(3);
		while (read(ends[0], buffer, sizeof(buffer)) > 0)
			;
		_exit(0);
	}
	run(&call);
	assert_int_equal(call.result.verdict.status, VT_STATUS_TIMEOUT);
	assert_true(call.result.wall_ms < 2900);
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_int_equal(waitpid(reader, &status, 0), reader);
	end(&call);
}

/* Through the relay the occupant reads text, and has neither the file nor its place. */
static void test_relayed_file(void **state)
{
	struct call call;
	char name[] = "/tmp/vitro-run-XXXXXX";
	AUTO_CLOSE int file = mkstemp(name);

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(write(file, "one\ntwo\n", 8), 8);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	plan(&call, "{}", "read line; echo got $line; test -p /dev/stdin && echo pipe");
	int null = call.io.in_fd;

	call.io.in_fd = file;
	call.io.in_relay = true;
	run(&call);
	check_output(&call.result.out, "got one\npipe\n");
	assert_int_equal(lseek(file, 0, SEEK_CUR), 4); /* the next reader gets the second line */
	call.io.in_fd = null;
	end(&call);
}

/* ---- cancelling ---------------------------------------------------------------------------- */

/* A signalfd for SIGUSR1, which is blocked from then on. */
static int open_signals(void)
{
	sigset_t set;

	MUST(sigemptyset(&set) == 0 && sigaddset(&set, SIGUSR1) == 0);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

	MUST(fd >= 0);
	return fd;
}

struct cancelling {
	const char *policy;
	int signals;
};

/* In a child: waits for a sign of life from the occupant, then sends signals, 100 ms apart. */
static void signal_later(int count, int life_fd)
{
	pid_t target = getpid();
	char byte;

	if (fork() != 0)
		return;
	if (read(life_fd, &byte, 1) != 1)
		_exit(1);
	for (int i = 0; i < count; i++) {
		(void)kill(target, SIGUSR1); /* it waits for us, or is gone */
		(void)usleep(100000);
	}
	_exit(0);
}

static void cancels(void *arg)
{
	const struct cancelling *how = arg;
	struct call call;
	int life[2];

	(void)alarm(30); /* returns the old one: none */
	MUST(pipe2(life, O_CLOEXEC) == 0);
	plan(&call, how->policy, "trap '' TERM; echo up; while :; do sleep 0.01; done");
	call.io.signal_fd = open_signals();
	call.io.out = (struct vt_sink){ VT_SINK_PASS, life[1] };
	signal_later(how->signals, life[0]);
	MUST(vt_run(call.plan, &call.io, &call.result, &call.err) == 0);
	MUST(call.result.verdict.status == VT_STATUS_CANCELLED);
	MUST(call.result.verdict.cancel_signal == SIGUSR1);
	MUST(call.result.verdict.signal == SIGKILL);
	MUST(call.result.wall_ms < 8000);
}

static void test_cancel(void **state)
{
	/* at once; and with a grace that is not waited for when asked twice */
	static const struct cancelling once = { "{}", 1 };
	static const struct cancelling twice = { "{\"limits\": {\"grace_ms\": 9000}}", 2 };

	(void)state;
	run_child(cancels, (void *)&once);
	run_child(cancels, (void *)&twice);
}

/*
 * In a child: stops this process while the occupant is told to end and does, so that a signal finds
 * it with that news not heard yet.
 */
static pid_t signal_at_the_end(int life_fd, int go_fd)
{
	pid_t target = getpid();
	pid_t pid = fork();
	char byte;

	if (pid != 0)
		return pid;
	if (read(life_fd, &byte, 1) != 1 || kill(target, SIGSTOP) < 0 || write(go_fd, "\n", 1) != 1)
		_exit(1);
	(void)usleep(600000);
	(void)kill(target, SIGUSR1); /* it waits for us */
	(void)kill(target, SIGCONT);
	_exit(0);
}

static void is_told_or_left(void *arg)
{
	struct signalfd_siginfo info;
	struct call call;
	int life[2], go[2], status;

	(void)arg;
	(void)alarm(30); /* returns the old one: none */
	MUST(pipe2(life, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
	/* Who stays behind makes the end take its time. */
	plan(&call, "{}", "sleep 1000 & echo up; read go");
	call.io.in_fd = go[0];
	call.io.signal_fd = open_signals();
	call.io.out = (struct vt_sink){ VT_SINK_PASS, life[1] };
	pid_t sender = signal_at_the_end(life[0], go[1]);

	MUST(sender > 0);
	MUST(vt_run(call.plan, &call.io, &call.result, &call.err) == 0);
	MUST(waitpid(sender, &status, 0) == sender && status == 0);
	bool told = call.result.verdict.cancel_signal == SIGUSR1;
	bool left = read(call.io.signal_fd, &info, sizeof(info)) == sizeof(info);

	MUST(told != left);
}

/* One who makes several calls would go on with the next as if nobody had asked to end. */
static void test_no_signal_is_lost(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) /* a busy machine misses the moment */
		run_child(is_told_or_left, NULL);
}

/* ---- callers of all kinds ------------------------------------------------------------------ */

static void ignores_children(void *arg)
{
	struct call call;

	(void)arg;
	MUST(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	plan(&call, "{}", "exit 5");
	MUST(vt_run(call.plan, &call.io, &call.result, &call.err) == 0);
	MUST(call.result.verdict.status == VT_STATUS_ERROR && call.result.verdict.exit_code == 5);
}

static void test_caller_ignores_children(void **state)
{
	(void)state;
	run_child(ignores_children, NULL);
}

/* A folder that was replaced between plan and launch: the call is refused, and did not run. */
static void test_refused_by_the_cell(void **state)
{
	char folder[] = "/tmp/vitro-run-XXXXXX", old[64], policy[128];
	struct call call;

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(policy, sizeof(policy), "{\"files\": {\"read\": [\"%s\"]}}",
		       folder);                             /* fits */
	(void)snprintf(old, sizeof(old), "%s-old", folder); /* fits */
	plan(&call, policy, "echo ran");
	assert_int_equal(rename(folder, old), 0);
	assert_int_equal(mkdir(folder, 0755), 0);
	run(&call);
	assert_int_equal(call.result.verdict.status, VT_STATUS_REFUSED);
	if (!strstr(call.result.verdict.message, "mounts: "))
		fail_msg("%s", call.result.verdict.message);
	assert_non_null(strstr(call.result.verdict.message, folder));
	check_output(&call.result.out, "");
	end(&call);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(rmdir(old), 0);
}

/* What fails before there is a cell is a result as well. */
static void test_spawn_fails(void **state)
{
	struct call call;

	(void)state;
	plan(&call, "{}", "echo ran");
	call.plan->namespaces |= 0x200; /* CLONE_FS, which the kernel refuses with CLONE_NEWUSER */
	run(&call);
	assert_int_not_equal(call.result.verdict.status, VT_STATUS_OK);
	assert_non_null(strstr(call.result.verdict.message, "namespaces"));
	assert_true(call.result.unbuilt);
	assert_int_equal(call.result.failure.step, VT_STEP_CLONE);
	check_output(&call.result.out, "");
	end(&call);
}

/* An input that cannot be relayed: the call is lost, and the cell that was made for it is gone. */
static void test_watch_fails(void **state)
{
	struct call call;

	(void)state;
	plan(&call, "{}", "exec sleep 1000");
	vt_fd_close(&call.io.in_fd);
	call.io.in_relay = true;
	run(&call);
	assert_int_equal(call.result.verdict.status, VT_STATUS_LOST);
	assert_false(call.result.unbuilt);
	end(&call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends_by_itself),
		cmocka_unit_test(test_cannot_execute),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_grace),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_last_words),
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_pass),
		cmocka_unit_test(test_reader_leaves),
		cmocka_unit_test(test_reader_sleeps),
		cmocka_unit_test(test_relayed_file),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_no_signal_is_lost),
		cmocka_unit_test(test_caller_ignores_children),
		cmocka_unit_test(test_refused_by_the_cell),
		cmocka_unit_test(test_spawn_fails),
		cmocka_unit_test(test_watch_fails),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as whoever passes output on does; it cannot fail */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
