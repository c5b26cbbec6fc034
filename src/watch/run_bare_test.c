/* SPDX-License-Identifier: Apache-2.0 */
/* Whole calls on a machine without user namespaces. */
#include "kernel/seccomp.h"
#include "watch/call_test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "launch/spawn.h"

#define BEST "\"require\": \"best-effort\""

static const struct call bare = { .bare = true, .abi = -1 };
/* As if Landlock did not scope signals: root gives the cell an id, others look for its children. */
static const struct call unscoped = { .bare = true, .abi = 5 };

static void plan_like(struct call *call, const struct call *like, const char *json,
		      const char *script)
{
	*call = *like;
	plan_as_said(call, json, script);
	assert_true(call->plan->bare);
}

static void check_gone(const struct call *call)
{
	struct stat st;

	assert_int_equal(lstat(call->plan->scratch, &st), -1);
	assert_int_equal(errno, ENOENT);
}

static void end_bare(struct call *call)
{
	check_gone(call);
	end(call);
}

static void check_bare_row(const struct call *like, const struct row *row)
{
	struct call call;

	plan_like(&call, like, row->policy, row->script);
	run(&call);
	if (call.result.verdict.status != row->status)
		fail_msg("'%s': %s: %s", row->script, vt_status_name(call.result.verdict.status),
			 call.result.verdict.message);
	assert_int_equal(call.result.verdict.exit_code, row->exit_code);
	assert_int_equal(call.result.verdict.signal, row->signal);
	check_output(&call.result.out, row->out);
	check_output(&call.result.err, row->err);
	assert_true(call.took < 10 * VT_NS_PER_S);
	end_bare(&call);
}

static void test_ends(void **state)
{
	static const struct row rows[] = {
		{ "{" BEST "}", "/bin/true", VT_STATUS_OK, 0, 0, "", "" },
		{ "{" BEST "}", "exit 42", VT_STATUS_ERROR, 42, 0, "", "" },
		{ "{" BEST "}", "echo out; echo err >&2", VT_STATUS_OK, 0, 0, "out\n", "err\n" },
		{ "{" BEST "}", "echo a; (setsid sleep 1000 &) ; exit 0", VT_STATUS_OK, 0, 0, "a\n",
		  "" },
		{ "{" BEST "}", "cat; mkdir -p a/b; echo text >a/b/c; cat a/b/c", VT_STATUS_OK, 0,
		  0, "text\n", "" },
		{ "{" BEST "}",
		  "test $PWD = $HOME && test $PWD = $TMPDIR && test -w $PWD && echo own",
		  VT_STATUS_OK, 0, 0, "own\n", "" },
		{ "{" BEST "}", "/usr/bin/no-such-program", VT_STATUS_ERROR, 127, 0, "", "" },
		{ "{" BEST ", \"limits\": {\"wall_ms\": 200}}",
		  "trap '' TERM HUP; echo up; (setsid sleep 1000 &) ; while :; do sleep 1000; done",
		  VT_STATUS_TIMEOUT, -1, SIGKILL, "up\n", "" },
		{ "{" BEST ", \"limits\": {\"cpu_ms\": 200, \"wall_ms\": 9000}}",
		  "while :; do :; done", VT_STATUS_CPU_LIMIT, -1, SIGKILL, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_bare_row(&bare, &rows[i]);
		check_bare_row(&unscoped, &rows[i]);
	}
}

/* Where no cgroup counts, somebody looks: at the whole family, whoever its parents are. */
static void test_memory(void **state)
{
	static const char *const scripts[] = {
		"x=x; while :; do x=$x$x; done",
		"(setsid sh -c 'x=x; while :; do x=$x$x; done' &) ; sleep 1000",
	};
	struct call call;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		call = bare;
		call.no_cgroups = true;
		plan_as_said(&call,
			     "{" BEST ", \"limits\": {\"memory_mb\": 32, \"wall_ms\": 9000}}",
			     scripts[i]);
		assert_true(call.plan->watched_memory_bytes == 32 << 20);
		run(&call);
		assert_int_equal(call.result.verdict.status, VT_STATUS_MEMORY_LIMIT);
		assert_string_equal(call.result.verdict.type, "MemoryLimit");
		assert_true(call.result.peak_memory_kb > 16 << 10);
		end_bare(&call);
	}
}

/* The private folder is not the machine's disk. There is no grace: it would go on growing. */
static void test_tmp(void **state)
{
	static const struct {
		const char *script, *why;
	} rows[] = {
		{ "yes | head -c 30000000 >file; sleep 1000", "grew past" },
		{ "mkdir -p a/b; trap '' TERM; (setsid yes | head -c 30000000 >a/b/c &); sleep "
		  "1000",
		  "grew past" },
		{ "exec 3>file; rm file; yes | head -c 30000000 >&3; sleep 1000", "grew past" },
		{ "p=.; for i in $(seq 100); do p=$p/d; mkdir $p; done; sleep 1000", "64 deep" },
		{ "umask 777; mkdir d; sleep 1000", "closed a folder" },
		{ "umask 777; mkdir d; exec 3>file; rm -f file; yes | head -c 30000000 >&3; sleep "
		  "1000",
		  "private folder" },
	};
	struct call call;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		plan_like(&call, &bare,
			  "{" BEST ", \"limits\": {\"tmp_mb\": 8, \"wall_ms\": 30000, "
			  "\"grace_ms\": 20000}}",
			  rows[i].script);
		run(&call);
		if (call.result.verdict.status != VT_STATUS_MEMORY_LIMIT)
			fail_msg("'%s': %s: %s", rows[i].script,
				 vt_status_name(call.result.verdict.status),
				 call.result.verdict.message);
		assert_string_equal(call.result.verdict.type, "TmpLimit");
		assert_non_null(strstr(call.result.verdict.message, "limits.tmp_mb (8 MB)"));
		assert_non_null(strstr(call.result.verdict.message, rows[i].why));
		assert_true(call.took < 10 * VT_NS_PER_S);
		end_bare(&call);
	}
	/* the control: below it nothing happens */
	plan_like(&call, &bare, "{" BEST ", \"limits\": {\"tmp_mb\": 8}}",
		  "yes | head -c 5000000 >file; (umask 777; mkdir d); rmdir d; sleep 0.3; echo "
		  "done");
	run(&call);
	check_output(&call.result.out, "done\n");
	end_bare(&call);
}

/* ---- what is not built --------------------------------------------------------------------- */

static void check_input(bool taken, const char *output)
{
	char name[] = "/tmp/vitro-run-XXXXXX";
	AUTO_CLOSE int file = mkstemp(name);
	struct call call;

	assert_true(file >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(write(file, "one\ntwo\n", 8), 8);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	plan_like(&call, &bare, "{" BEST "}", "read line; echo got $line");
	int null = call.io.in_fd;

	if (taken)
		assert_int_equal(mkdir(call.plan->scratch, 0755), 0);
	call.io.in_fd = file;
	call.io.in_relay = true;
	run(&call);
	check_output(&call.result.out, output);
	assert_int_equal(call.result.unbuilt, taken);
	/* Of a cell that was not built nothing is lost: another one can be tried. */
	assert_int_equal(lseek(file, 0, SEEK_CUR), taken ? 0 : 4);
	if (taken) {
		assert_int_equal(call.result.failure.step, VT_STEP_MOUNTS);
		assert_int_equal(call.result.failure.num, EEXIST);
		assert_int_equal(rmdir(call.plan->scratch), 0);
	}
	call.io.in_fd = null;
	end_bare(&call);
}

static void test_input_waits(void **state)
{
	(void)state;
	check_input(true, "");
	check_input(false, "got one\n");
}

static void test_rehearsal(void **state)
{
	struct call call = bare;

	(void)state;
	call.rehearsal = true;
	plan_as_said(&call, "{" BEST "}", "echo ran; exit 9");
	run(&call);
	assert_int_equal(call.result.verdict.status, VT_STATUS_OK);
	assert_false(call.result.unbuilt);
	check_output(&call.result.out, "");
	end_bare(&call);
	/* a program that is not there is not looked for */
	call = bare;
	call.rehearsal = true;
	plan_as_said(&call, "{" BEST "}", "/usr/bin/no-such-program");
	run(&call);
	assert_int_equal(call.result.verdict.status, VT_STATUS_OK);
	end_bare(&call);
}

/* ---- against init -------------------------------------------------------------------------- */

static unsigned count_of(uid_t uid)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	unsigned count = 0;
	struct stat st;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' &&
		    fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && st.st_uid == uid)
			count++;
	(void)closedir(dir); /* only read from */
	return count;
}

/* Takes the filter against signals out of a plan. */
static void unmute(struct vt_plan *plan)
{
	const struct sock_fprog *mute = vt_seccomp_addon(VT_SECCOMP_MUTE, 0);
	size_t kept = 0;

	for (size_t i = 0; i < plan->filter_count; i++)
		if (plan->filters[i] != mute)
			plan->filters[kept++] = plan->filters[i];
	assert_int_equal(kept, plan->filter_count - 1);
	plan->filter_count = kept;
}

/* Without a domain init has the occupant's user. Were it killed by it, it would be to no avail. */
static void test_kills_init(void **state)
{
	struct call call;

	(void)state;
	NEEDS_ROOT();
	plan_like(&call, &unscoped, "{" BEST ", \"limits\": {\"wall_ms\": 9000}}",
		  "echo text >file; (setsid sleep 1000 &) ; kill -KILL $PPID; sleep 1000");
	assert_int_equal(call.plan->sweep, VT_SWEEP_USER);
	unmute(call.plan);
	uid_t uid = vt_spawn_ids(call.plan).uid;

	assert_int_equal(count_of(uid), 0);
	run(&call);
	assert_int_equal(call.result.verdict.status, VT_STATUS_LOST);
	/* whoever takes orphans in here may need a moment to bury them */
	for (int i = 0; i < 2000 && count_of(uid); i++)
		(void)usleep(1000);
	assert_int_equal(count_of(uid), 0);
	end_bare(&call);
}

/* An init that does nothing any more is not waited for: others can end what it should have. */
static void test_stops_init(void **state)
{
	struct call call;

	(void)state;
	NEEDS_ROOT();
	plan_like(&call, &unscoped, "{" BEST ", \"limits\": {\"wall_ms\": 300}}",
		  "echo text >file; (setsid sleep 1000 &) ; kill -STOP $PPID; sleep 1000");
	assert_int_equal(call.plan->sweep, VT_SWEEP_USER);
	unmute(call.plan);
	uid_t uid = vt_spawn_ids(call.plan).uid;

	run(&call);
	assert_int_equal(call.result.verdict.status, VT_STATUS_TIMEOUT);
	assert_int_equal(count_of(uid), 0);
	end_bare(&call);
}

/* With one it cannot, and without one it has no signals at all. */
static void test_cannot_kill_init(void **state)
{
	static const struct row row = { "{" BEST "}",
					"kill -KILL $PPID 2>/dev/null || echo refused",
					VT_STATUS_OK,
					0,
					0,
					"refused\n",
					"" };

	(void)state;
	check_bare_row(&bare, &row);
	check_bare_row(&unscoped, &row);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),       cmocka_unit_test(test_memory),
		cmocka_unit_test(test_tmp),        cmocka_unit_test(test_input_waits),
		cmocka_unit_test(test_rehearsal),  cmocka_unit_test(test_kills_init),
		cmocka_unit_test(test_stops_init), cmocka_unit_test(test_cannot_kill_init),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as whoever passes output on does; it cannot fail */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
