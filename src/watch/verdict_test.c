/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "watch/verdict.h"

#define EXITED(code) .ended = true, .wait_status = W_EXITCODE(code, 0)
#define KILLED(sig)  .ended = true, .wait_status = W_EXITCODE(0, sig)
#define FAILED(s, n) .failed = true, .failure = { .step = (s), .num = (n), .what = "do this" }
#define LIMITS       .wall_ms = 500, .cpu_ms = 2000, .memory_bytes = 512 << 20, .file_mb = 64

struct row {
	const char *name;
	struct vt_findings found;
	enum vt_status status;
	int exit_code, signal, exits_with;
	const char *type, *message;
};

/* clang-format off */
static const struct row rows[] = {
	/* how the program ended by itself */
	{ "exit 0", { EXITED(0) }, VT_STATUS_OK, 0, 0, 0, "", "" },
	{ "exit 1", { EXITED(1) }, VT_STATUS_ERROR, 1, 0, 1, "ExitCode", "exited with code 1" },
	{ "exit 255", { EXITED(255) }, VT_STATUS_ERROR, 255, 0, 255, "ExitCode",
	  "exited with code 255" },
	{ "exit 124 is its own", { EXITED(124) }, VT_STATUS_ERROR, 124, 0, 124, "ExitCode",
	  "exited with code 124" },
	{ "exit 127 is its own", { EXITED(127) }, VT_STATUS_ERROR, 127, 0, 127, "ExitCode",
	  "exited with code 127" },
	{ "exit 137 is its own", { EXITED(137) }, VT_STATUS_ERROR, 137, 0, 137, "ExitCode",
	  "exited with code 137" },
	{ "segfault", { KILLED(SIGSEGV) }, VT_STATUS_CRASHED, -1, SIGSEGV, 139, "Crashed",
	  "killed by SIGSEGV" },
	{ "segfault with a core", { .ended = true, .wait_status = SIGSEGV | WCOREFLAG },
	  VT_STATUS_CRASHED, -1, SIGSEGV, 139, "Crashed", "killed by SIGSEGV" },
	{ "abort", { KILLED(SIGABRT) }, VT_STATUS_CRASHED, -1, SIGABRT, 134, "Crashed",
	  "killed by SIGABRT" },
	{ "file size", { KILLED(SIGXFSZ), LIMITS }, VT_STATUS_CRASHED, -1, SIGXFSZ, 128 + SIGXFSZ,
	  "Crashed", "killed by SIGXFSZ: a file grew past limits.file_mb (64 MB)" },
	{ "file size, of the caller", { KILLED(SIGXFSZ), LIMITS, .lower_file_kb = 16 },
	  VT_STATUS_CRASHED, -1, SIGXFSZ, 128 + SIGXFSZ, "Crashed",
	  "killed by SIGXFSZ: a file grew past the caller's own limit, 16 KB (ulimit -f), which is "
	  "below limits.file_mb" },
	{ "file size, limit not known", { KILLED(SIGXFSZ) }, VT_STATUS_CRASHED, -1, SIGXFSZ,
	  128 + SIGXFSZ, "Crashed", "killed by SIGXFSZ: a file grew past limits.file_mb" },
	{ "filter", { KILLED(SIGSYS) }, VT_STATUS_CRASHED, -1, SIGSYS, 159, "Crashed",
	  "killed by SIGSYS: it made a system call that is not allowed" },
	{ "kill -9", { KILLED(SIGKILL), LIMITS }, VT_STATUS_CRASHED, -1, SIGKILL, 137, "Crashed",
	  "killed by SIGKILL, not by vitro: from inside the cell, or by the host" },
	{ "SIGXCPU of its own", { KILLED(SIGXCPU), LIMITS }, VT_STATUS_CRASHED, -1, SIGXCPU, 152,
	  "Crashed", "killed by SIGXCPU" },
	{ "SIGTERM", { KILLED(SIGTERM) }, VT_STATUS_CRASHED, -1, SIGTERM, 143, "Crashed",
	  "killed by SIGTERM" },
	{ "a real-time signal", { KILLED(40) }, VT_STATUS_CRASHED, -1, 40, 168, "Crashed",
	  "killed by signal 40" },

	/* what the supervisor stopped */
	{ "deadline", { .stop = VT_STOP_DEADLINE, LIMITS }, VT_STATUS_TIMEOUT, -1, SIGKILL, 124,
	  "Timeout", "the call ran past its 0.5 s deadline (limits.wall_ms)" },
	{ "deadline of the call", { .stop = VT_STOP_DEADLINE, .own_deadline = true, LIMITS },
	  VT_STATUS_TIMEOUT, -1, SIGKILL, 124, "Timeout", "the call ran past its 0.5 s deadline" },
	{ "cpu", { .stop = VT_STOP_CPU, LIMITS }, VT_STATUS_CPU_LIMIT, -1, SIGKILL, 124, "CpuLimit",
	  "the call used more than its 2 s of CPU time (limits.cpu_ms)" },
	{ "tmp: size", { .stop = VT_STOP_TMP, .tmp_odd = VT_FOLDER_PLAIN, .tmp_bytes = 8 << 20 },
	  VT_STATUS_MEMORY_LIMIT, -1, SIGKILL, 137, "TmpLimit",
	  "the cell's private folder grew past limits.tmp_mb (8 MB)" },
	{ "tmp: depth", { .stop = VT_STOP_TMP, .tmp_odd = VT_FOLDER_DEEP, .tmp_bytes = 8 << 20 },
	  VT_STATUS_MEMORY_LIMIT, -1, SIGKILL, 137, "TmpLimit",
	  "the cell's private folder has folders more than 64 deep, too deep to be held to limits.tmp_mb (8 MB)" },
	{ "tmp: entries", { .stop = VT_STOP_TMP, .tmp_odd = VT_FOLDER_MANY, .tmp_bytes = 8 << 20 },
	  VT_STATUS_MEMORY_LIMIT, -1, SIGKILL, 137, "TmpLimit",
	  "the cell's private folder has more than 200000 files and folders, too many to be held to limits.tmp_mb (8 MB)" },
	{ "tmp: closed", { .stop = VT_STOP_TMP, .tmp_odd = VT_FOLDER_CLOSED, .tmp_bytes = 8 << 20 },
	  VT_STATUS_MEMORY_LIMIT, -1, SIGKILL, 137, "TmpLimit",
	  "the call closed a folder in its private folder to itself, which thus cannot be held to limits.tmp_mb (8 MB)" },
	{ "tmp: slow", { .stop = VT_STOP_TMP, .tmp_odd = VT_FOLDER_SLOW, .tmp_bytes = 8 << 20 },
	  VT_STATUS_MEMORY_LIMIT, -1, SIGKILL, 137, "TmpLimit",
	  "the cell's private folder takes too long to be looked through, and thus cannot be held to limits.tmp_mb (8 MB)" },
	{ "memory", { .stop = VT_STOP_MEMORY, LIMITS }, VT_STATUS_MEMORY_LIMIT, -1, SIGKILL, 137,
	  "MemoryLimit", "the cell used more than its 512 MB of memory (limits.memory_mb)" },
	{ "memory, not measured", { .stop = VT_STOP_MEMORY, .unmeasured = true, LIMITS },
	  VT_STATUS_MEMORY_LIMIT, -1, SIGKILL, 137, "MemoryLimit",
	  "how much memory the cell uses could not be measured in time" },
	{ "memory, not measured, oom", { .stop = VT_STOP_MEMORY, .unmeasured = true, .oom_kills = 1,
	  LIMITS }, VT_STATUS_MEMORY_LIMIT, -1, SIGKILL, 137, "MemoryLimit",
	  "the cell used more than its 512 MB of memory (limits.memory_mb)" },
	{ "cpu, not measured", { .stop = VT_STOP_CPU, .unmeasured = true, LIMITS },
	  VT_STATUS_CPU_LIMIT, -1, SIGKILL, 124, "CpuLimit",
	  "how much CPU time the cell uses could not be measured in time" },
	{ "tmp, not measured", { .stop = VT_STOP_TMP, .unmeasured = true, LIMITS },
	  VT_STATUS_MEMORY_LIMIT, -1, SIGKILL, 137, "TmpLimit",
	  "how much the cell's private folder holds could not be measured in time" },
	{ "cancel", { .stop = VT_STOP_CANCEL }, VT_STATUS_CANCELLED, -1, SIGKILL, 137, "Cancelled",
	  "the call was cancelled" },
	{ "cancel by ^C", { .stop = VT_STOP_CANCEL, .stop_signal = SIGINT }, VT_STATUS_CANCELLED,
	  -1, SIGKILL, 130, "Cancelled", "the call was cancelled by SIGINT" },
	{ "cancel by SIGTERM, which the program took", { .stop = VT_STOP_CANCEL, .stop_signal =
	  SIGTERM, KILLED(SIGTERM) }, VT_STATUS_CANCELLED, -1, SIGTERM, 143, "Cancelled",
	  "the call was cancelled by SIGTERM" },

	/* the cgroup's own kill */
	{ "oom", { .oom_kills = 1, KILLED(SIGKILL), LIMITS }, VT_STATUS_MEMORY_LIMIT, -1, SIGKILL,
	  137, "MemoryLimit", "the cell used more than its 512 MB of memory (limits.memory_mb)" },
	{ "oom of init", { .oom_kills = 2, LIMITS }, VT_STATUS_MEMORY_LIMIT, -1, SIGKILL, 137,
	  "MemoryLimit", "the cell used more than its 512 MB of memory (limits.memory_mb)" },
	{ "oom of a child, seen by its parent", { .oom_kills = 1, EXITED(3) },
	  VT_STATUS_MEMORY_LIMIT, 3, 0, 137, "MemoryLimit", "the cell used more memory than it may (limits.memory_mb)"
	  },

	/* before the program ran */
	{ "not found", { FAILED(VT_STEP_EXEC, ENOENT) }, VT_STATUS_ERROR, 127, 0, 127, "NotFound",
	  "cannot do this: No such file or directory" },
	{ "not executable", { FAILED(VT_STEP_EXEC, EACCES) }, VT_STATUS_ERROR, 126, 0, 126,
	  "CannotExecute", "cannot do this: Permission denied" },
	{ "no format", { FAILED(VT_STEP_EXEC, ENOEXEC) }, VT_STATUS_ERROR, 126, 0, 126,
	  "CannotExecute",
	  "cannot do this: neither a program for this machine, nor a script whose first line names its "
	  "interpreter, such as #!/bin/sh" },
	{ "exec without memory", { FAILED(VT_STEP_EXEC, ENOMEM) }, VT_STATUS_ERROR, 126, 0, 126,
	  "CannotExecute", "cannot do this: Cannot allocate memory" },
	{ "not on PATH", { FAILED(VT_STEP_COMMAND, ENOENT) }, VT_STATUS_ERROR, 127, 0, 127,
	  "NotFound", "do this" },
	{ "not executable on PATH", { FAILED(VT_STEP_COMMAND, EACCES) }, VT_STATUS_ERROR, 126, 0,
	  126, "CannotExecute", "do this" },
	{ "search without memory", { FAILED(VT_STEP_COMMAND, ENOMEM) }, VT_STATUS_LOST, -1, 0, 125,
	  "Lost", "do this" },
	{ "bad policy", { FAILED(VT_STEP_POLICY, EINVAL) }, VT_STATUS_REFUSED, -1, 0, 125,
	  "Refused", "do this" },
	{ "plan refuses", { FAILED(VT_STEP_PLAN, EPERM) }, VT_STATUS_REFUSED, -1, 0, 125, "Refused",
	  "do this" },
	{ "kernel refuses", { FAILED(VT_STEP_LANDLOCK, EOPNOTSUPP) }, VT_STATUS_REFUSED, -1, 0, 125,
	  "Refused", "landlock: do this: Operation not supported" },
	{ "no more processes", { FAILED(VT_STEP_CLONE, EAGAIN) }, VT_STATUS_LOST, -1, 0, 125,
	  "Lost", "namespaces: do this: Resource temporarily unavailable" },
	{ "no room in the kernel", { FAILED(VT_STEP_CLONE, ENOBUFS) }, VT_STATUS_LOST, -1, 0, 125,
	  "Lost", "namespaces: do this: No buffer space available" },
	{ "no way to the working directory", { FAILED(VT_STEP_SESSION, EACCES) }, VT_STATUS_REFUSED,
	  -1, 0, 125, "Refused", "cannot do this: Permission denied" },
	{ "no reader of the result", { FAILED(VT_STEP_OUTPUT, EPIPE) }, VT_STATUS_LOST, -1, 0, 125,
	  "Lost", "cannot do this: Broken pipe" },
	{ "no errno known", { FAILED(VT_STEP_MOUNTS, 4000) }, VT_STATUS_REFUSED, -1, 0, 125,
	  "Refused", "mounts: do this: unknown error" },
	{ "supervisor", { FAILED(VT_STEP_WATCH, EIO) }, VT_STATUS_LOST, -1, 0, 125, "Lost",
	  "watch: do this: Input/output error" },
	{ "client gone", { FAILED(VT_STEP_WIRE, EPIPE) }, VT_STATUS_LOST, -1, 0, 125, "Lost",
	  "wire: do this: Broken pipe" },

	/* nothing known */
	{ "init vanished", { LIMITS }, VT_STATUS_LOST, -1, 0, 125, "Lost",
	  "the cell's init ended without saying how the call ended" },
	{ "a status that is no end", { .ended = true, .wait_status = 0x137f }, VT_STATUS_LOST, -1,
	  0, 125, "Lost", "the cell's init ended without saying how the call ended" },

	/* two causes: the one that came first in the life of a call decides */
	{ "failure, deadline", { FAILED(VT_STEP_MOUNTS, ENOENT), .stop = VT_STOP_DEADLINE },
	  VT_STATUS_REFUSED, -1, 0, 125, "Refused", "mounts: do this: No such file or directory"
	  },
	{ "failure, oom", { FAILED(VT_STEP_EXEC, ENOENT), .oom_kills = 1 }, VT_STATUS_ERROR, 127, 0,
	  127, "NotFound", "cannot do this: No such file or directory" },
	{ "cell not watched any more, oom", { FAILED(VT_STEP_WATCH, ECHILD), .oom_kills = 2, LIMITS },
	  VT_STATUS_MEMORY_LIMIT, -1, SIGKILL, 137, "MemoryLimit",
	  "the cell used more than its 512 MB of memory (limits.memory_mb)" },
	{ "cell not watched any more, deadline, oom", { FAILED(VT_STEP_WATCH, ECHILD), .oom_kills = 2,
	  .stop = VT_STOP_DEADLINE, LIMITS }, VT_STATUS_TIMEOUT, -1, SIGKILL, 124, "Timeout",
	  "the call ran past its 0.5 s deadline (limits.wall_ms)" },
	{ "failure, exit", { FAILED(VT_STEP_SECCOMP, EINVAL), EXITED(0) }, VT_STATUS_REFUSED, -1, 0,
	  125, "Refused", "seccomp: do this: Invalid argument" },
	{ "failure, signal", { FAILED(VT_STEP_EXEC, EACCES), KILLED(SIGKILL) }, VT_STATUS_ERROR,
	  126, 0, 126, "CannotExecute", "cannot do this: Permission denied" },
	{ "deadline, oom", { .stop = VT_STOP_DEADLINE, .oom_kills = 1, KILLED(SIGKILL), LIMITS },
	  VT_STATUS_TIMEOUT, -1, SIGKILL, 124, "Timeout", "the call ran past its 0.5 s deadline (limits.wall_ms)" },
	{ "deadline, exit 0 in the grace period", { .stop = VT_STOP_DEADLINE, EXITED(0), LIMITS },
	  VT_STATUS_TIMEOUT, 0, 0, 124, "Timeout", "the call ran past its 0.5 s deadline (limits.wall_ms)" },
	{ "deadline, SIGTERM", { .stop = VT_STOP_DEADLINE, KILLED(SIGTERM), LIMITS },
	  VT_STATUS_TIMEOUT, -1, SIGTERM, 124, "Timeout", "the call ran past its 0.5 s deadline (limits.wall_ms)" },
	{ "cpu, SIGXCPU", { .stop = VT_STOP_CPU, KILLED(SIGXCPU), LIMITS }, VT_STATUS_CPU_LIMIT, -1,
	  SIGXCPU, 124, "CpuLimit", "the call used more than its 2 s of CPU time (limits.cpu_ms)" },
	{ "cpu, oom", { .stop = VT_STOP_CPU, .oom_kills = 1, LIMITS }, VT_STATUS_CPU_LIMIT, -1,
	  SIGKILL, 124, "CpuLimit", "the call used more than its 2 s of CPU time (limits.cpu_ms)" },
	{ "memory, exit 0", { .stop = VT_STOP_MEMORY, EXITED(0), LIMITS }, VT_STATUS_MEMORY_LIMIT,
	  0, 0, 137, "MemoryLimit", "the cell used more than its 512 MB of memory (limits.memory_mb)" },
	{ "cancel, oom", { .stop = VT_STOP_CANCEL, .stop_signal = SIGHUP, .oom_kills = 1 },
	  VT_STATUS_CANCELLED, -1, SIGKILL, 129, "Cancelled", "the call was cancelled by SIGHUP" },
	{ "cancel, segfault", { .stop = VT_STOP_CANCEL, KILLED(SIGSEGV) }, VT_STATUS_CANCELLED, -1,
	  SIGSEGV, 137, "Cancelled", "the call was cancelled" },
	{ "oom, segfault", { .oom_kills = 1, KILLED(SIGSEGV), LIMITS }, VT_STATUS_MEMORY_LIMIT, -1,
	  SIGSEGV, 137, "MemoryLimit", "the cell used more than its 512 MB of memory (limits.memory_mb)" },
};
/* clang-format on */

static void each_finding_has_its_verdict(void **state)
{
	unsigned seen = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct vt_verdict verdict;

		memset(&verdict, 0xa5, sizeof(verdict));
		vt_verdict_reach(&row->found, &verdict);
		if (verdict.status != row->status || strcmp(verdict.message, row->message) != 0)
			print_error("%s: %s, \"%s\"\n", row->name, vt_status_name(verdict.status),
				    verdict.message);
		assert_int_equal(verdict.status, row->status);
		assert_string_equal(verdict.message, row->message);
		assert_string_equal(verdict.type, row->type);
		assert_int_equal(verdict.exit_code, row->exit_code);
		assert_int_equal(verdict.signal, row->signal);
		assert_int_equal(vt_verdict_exit_code(&verdict), row->exits_with);
		seen |= 1u << verdict.status;
	}
	/* What a tool gives is not among the findings. */
	seen |= 1u << VT_STATUS_NO_RESULT | 1u << VT_STATUS_RESULT_LIMIT;
	assert_int_equal(seen, (1u << VT_STATUS_COUNT) - 1);
}

/* Whatever step fails for whatever reason, a call that did not run is never ok. */
static void no_failure_is_ok(void **state)
{
	(void)state;
	for (int step = -1; step <= VT_STEP_COUNT; step++) {
		for (int num = 1; num < 134; num++) {
			struct vt_findings found = { FAILED((enum vt_step)step, num), EXITED(0) };
			struct vt_verdict verdict;

			vt_verdict_reach(&found, &verdict);
			int code = vt_verdict_exit_code(&verdict);

			assert_int_not_equal(verdict.status, VT_STATUS_OK);
			assert_true(code >= 125 && code <= 127);
			assert_string_not_equal(verdict.type, "");
			assert_string_not_equal(verdict.message, "");
		}
	}
}

static void long_errors_are_cut_not_overrun(void **state)
{
	struct vt_findings found = { FAILED(VT_STEP_MOUNTS, EAFNOSUPPORT) };
	struct vt_verdict verdict;

	(void)state;
	memset(found.failure.what, 'x', sizeof(found.failure.what) - 1);
	found.failure.what[sizeof(found.failure.what) - 1] = '\0';
	vt_verdict_reach(&found, &verdict);
	assert_true(strlen(verdict.message) < sizeof(verdict.message));
	assert_non_null(strstr(verdict.message, "x: Address family not supported by protocol"));
}

static void odd_limits_read_well(void **state)
{
	static const struct {
		int64_t wall_ms;
		const char *message;
	} times[] = {
		{ 1, "the call ran past its 0.001 s deadline (limits.wall_ms)" },
		{ 1250, "the call ran past its 1.25 s deadline (limits.wall_ms)" },
		{ 30000, "the call ran past its 30 s deadline (limits.wall_ms)" },
		{ 86399999, "the call ran past its 86399.999 s deadline (limits.wall_ms)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct vt_findings found = { .stop = VT_STOP_DEADLINE,
					     .wall_ms = times[i].wall_ms };
		struct vt_verdict verdict;

		vt_verdict_reach(&found, &verdict);
		assert_string_equal(verdict.message, times[i].message);
	}
}

static void what_a_tool_says(void **state)
{
	struct vt_verdict verdict;

	(void)state;
	vt_verdict_tool_failed(&verdict, "ValueError", "no such thing");
	assert_int_equal(verdict.status, VT_STATUS_ERROR);
	assert_string_equal(verdict.type, "ValueError");
	assert_string_equal(verdict.message, "no such thing");
	vt_verdict_tool_failed(&verdict, "", "");
	assert_string_equal(verdict.type, "Error");
	vt_verdict_no_result(&verdict);
	assert_int_equal(verdict.status, VT_STATUS_NO_RESULT);
	vt_verdict_bad_talk(&verdict, EMSGSIZE, 64 << 20);
	assert_int_equal(verdict.status, VT_STATUS_RESULT_LIMIT);
	assert_non_null(strstr(verdict.message, "64 MB"));
	vt_verdict_bad_talk(&verdict, EBADMSG, 64 << 20);
	assert_int_equal(verdict.status, VT_STATUS_CRASHED);
	assert_non_null(strstr(verdict.message, "malformed message"));
	vt_verdict_bad_talk(&verdict, ENOBUFS, 64 << 20);
	assert_int_equal(verdict.status, VT_STATUS_CRASHED);
	assert_non_null(strstr(verdict.message, "does not take their answers"));
}

static void every_status_has_a_name(void **state)
{
	static const char *const names[] = { "ok",           "error",   "timeout",   "cpu_limit",
					     "memory_limit", "crashed", "no_result", "result_limit",
					     "cancelled",    "refused", "lost" };

	(void)state;
	assert_int_equal(sizeof(names) / sizeof(names[0]), VT_STATUS_COUNT);
	for (int i = 0; i < VT_STATUS_COUNT; i++)
		assert_string_equal(vt_status_name((enum vt_status)i), names[i]);
	assert_string_equal(vt_status_name(VT_STATUS_COUNT), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_finding_has_its_verdict),
		cmocka_unit_test(no_failure_is_ok),
		cmocka_unit_test(long_errors_are_cut_not_overrun),
		cmocka_unit_test(odd_limits_read_well),
		cmocka_unit_test(what_a_tool_says),
		cmocka_unit_test(every_status_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
