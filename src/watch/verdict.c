/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "plan/plan.h"

enum { EXIT_TIMEOUT = 124, EXIT_OWN = 125, EXIT_CANNOT = 126, EXIT_NOT_FOUND = 127 };

/* A message that does not fit is cut: it is for a person. */
__attribute__((format(printf, 4, 5))) static void
decide(struct vt_verdict *verdict, enum vt_status status, const char *type, const char *fmt, ...)
{
	va_list args;

	verdict->status = status;
	(void)snprintf(verdict->type, sizeof(verdict->type), "%s", type);
	va_start(args, fmt);
	if (vsnprintf(verdict->message, sizeof(verdict->message), fmt, args) < 0)
		verdict->message[0] = '\0';
	va_end(args);
}

static const char *errno_text(int num)
{
	const char *text = strerrordesc_np(num);

	return text ? text : "unknown error";
}

/* Steps whose errors are whole sentences already. */
static bool speaks_for_itself(enum vt_step step)
{
	return step == VT_STEP_POLICY || step == VT_STEP_COMMAND || step == VT_STEP_PLAN;
}

/* Steps whose errors name what was tried, in words that mean something outside of vitro too. */
static bool speaks_of_an_act(enum vt_step step)
{
	return step == VT_STEP_EXEC || step == VT_STEP_SESSION || step == VT_STEP_OUTPUT;
}

static void decide_failure(struct vt_verdict *verdict, enum vt_status status, const char *type,
			   const struct vt_err *failure)
{
	if (speaks_for_itself(failure->step))
		decide(verdict, status, type, "%s", failure->what);
	else if (failure->step == VT_STEP_EXEC && failure->num == ENOEXEC)
		decide(verdict, status, type,
		       "cannot %s: neither a program for this machine, nor a script whose first "
		       "line names its interpreter, such as #!/bin/sh",
		       failure->what);
	else if (speaks_of_an_act(failure->step))
		decide(verdict, status, type, "cannot %s: %s", failure->what,
		       errno_text(failure->num));
	else
		decide(verdict, status, type, "%s: %s: %s", vt_step_name(failure->step),
		       failure->what, errno_text(failure->num));
}

static void judge_failure(const struct vt_err *failure, struct vt_verdict *verdict)
{
	enum vt_step step = failure->step;
	/* Which is the machine's, and not the policy's or the request's. */
	bool shortage = vt_err_passes(failure->num);
	bool of_program = step == VT_STEP_EXEC || (step == VT_STEP_COMMAND && !shortage);
	bool of_vitro = step == VT_STEP_NONE || step == VT_STEP_WATCH || step == VT_STEP_OUTPUT ||
			step == VT_STEP_WIRE || shortage;

	if (of_program && failure->num == ENOENT) {
		decide_failure(verdict, VT_STATUS_ERROR, "NotFound", failure);
		verdict->exit_code = EXIT_NOT_FOUND;
	} else if (of_program) {
		decide_failure(verdict, VT_STATUS_ERROR, "CannotExecute", failure);
		verdict->exit_code = EXIT_CANNOT;
	} else if (of_vitro) {
		decide_failure(verdict, VT_STATUS_LOST, "Lost", failure);
	} else {
		decide_failure(verdict, VT_STATUS_REFUSED, "Refused", failure);
	}
}

/* "SIGSEGV" into name. */
static void name_signal(int number, char name[24])
{
	const char *abbreviation = sigabbrev_np(number);

	if (abbreviation)
		(void)snprintf(name, 24, "SIG%s", abbreviation);
	else
		(void)snprintf(name, 24, "signal %d", number);
}

static void judge_memory(const struct vt_findings *found, struct vt_verdict *verdict)
{
	if (found->unmeasured && found->oom_kills <= 0)
		decide(verdict, VT_STATUS_MEMORY_LIMIT, "MemoryLimit",
		       "how much memory the cell uses could not be measured in time");
	else if (found->memory_bytes > 0)
		decide(verdict, VT_STATUS_MEMORY_LIMIT, "MemoryLimit",
		       "the cell used more than its %.10g MB of memory (limits.memory_mb)",
		       (double)found->memory_bytes / (1 << 20));
	else
		decide(verdict, VT_STATUS_MEMORY_LIMIT, "MemoryLimit",
		       "the cell used more memory than it may (limits.memory_mb)");
}

static void judge_cpu(const struct vt_findings *found, struct vt_verdict *verdict)
{
	if (found->unmeasured)
		decide(verdict, VT_STATUS_CPU_LIMIT, "CpuLimit",
		       "how much CPU time the cell uses could not be measured in time");
	else
		decide(verdict, VT_STATUS_CPU_LIMIT, "CpuLimit",
		       "the call used more than its %.10g s of CPU time (limits.cpu_ms)",
		       (double)found->cpu_ms / 1000);
}

/* RLIMIT_CPU, the backstop, may kill before the supervisor looks again. */
static bool spent_its_cpu(const struct vt_findings *found, const struct vt_verdict *verdict)
{
	return (verdict->signal == SIGKILL || verdict->signal == SIGXCPU) && found->cpu_ms > 0 &&
	       found->cpu_ns / 1000000 >= found->cpu_ms;
}

/* What cannot be measured cannot be held to its limit either. */
static void judge_tmp(const struct vt_findings *found, struct vt_verdict *verdict)
{
	static const char type[] = "TmpLimit";
	const enum vt_status status = VT_STATUS_MEMORY_LIMIT;
	const int64_t mb = found->tmp_bytes >> 20;

	if (found->unmeasured) {
		decide(verdict, status, type,
		       "how much the cell's private folder holds could not be measured in time");
		return;
	}
	switch (found->tmp_odd) {
	case VT_FOLDER_PLAIN:
		decide(verdict, status, type,
		       "the cell's private folder grew past limits.tmp_mb (%" PRId64 " MB)", mb);
		break;
	case VT_FOLDER_DEEP:
		decide(verdict, status, type,
		       "the cell's private folder has folders more than %d deep, too deep to be "
		       "held to limits.tmp_mb (%" PRId64 " MB)",
		       VT_FOLDER_MAX_DEPTH, mb);
		break;
	case VT_FOLDER_MANY:
		decide(verdict, status, type,
		       "the cell's private folder has more than %d files and folders, too many to "
		       "be held to limits.tmp_mb (%" PRId64 " MB)",
		       VT_FOLDER_MAX_ENTRIES, mb);
		break;
	case VT_FOLDER_SLOW:
		decide(verdict, status, type,
		       "the cell's private folder takes too long to be looked through, and thus "
		       "cannot be held to limits.tmp_mb (%" PRId64 " MB)",
		       mb);
		break;
	case VT_FOLDER_CLOSED:
		decide(verdict, status, type,
		       "the call closed a folder in its private folder to itself, which thus "
		       "cannot be held to limits.tmp_mb (%" PRId64 " MB)",
		       mb);
		break;
	}
}

static void judge_stop(const struct vt_findings *found, struct vt_verdict *verdict)
{
	char name[24];

	switch (found->stop) {
	case VT_STOP_NONE:
		break;
	case VT_STOP_DEADLINE:
		decide(verdict, VT_STATUS_TIMEOUT, "Timeout",
		       "the call ran past its %.10g s deadline%s", (double)found->wall_ms / 1000,
		       found->own_deadline ? "" : " (limits.wall_ms)");
		break;
	case VT_STOP_CPU:
		judge_cpu(found, verdict);
		break;
	case VT_STOP_MEMORY:
		judge_memory(found, verdict);
		break;
	case VT_STOP_TMP:
		judge_tmp(found, verdict);
		break;
	case VT_STOP_CANCEL:
		verdict->cancel_signal = found->stop_signal;
		name_signal(found->stop_signal, name);
		decide(verdict, VT_STATUS_CANCELLED, "Cancelled", "the call was cancelled%s%s",
		       found->stop_signal ? " by " : "", found->stop_signal ? name : "");
		break;
	}
}

static void judge_signal(const struct vt_findings *found, struct vt_verdict *verdict)
{
	char name[24];

	name_signal(verdict->signal, name);
	switch (verdict->signal) {
	case SIGXFSZ:
		if (found->lower_file_kb > 0)
			decide(verdict, VT_STATUS_CRASHED, "Crashed",
			       "killed by %s: a file grew past the caller's own limit, %" PRId64
			       " KB (ulimit -f), which is below limits.file_mb",
			       name, found->lower_file_kb);
		else if (found->file_mb > 0)
			decide(verdict, VT_STATUS_CRASHED, "Crashed",
			       "killed by %s: a file grew past limits.file_mb (%" PRId64 " MB)",
			       name, found->file_mb);
		else
			decide(verdict, VT_STATUS_CRASHED, "Crashed",
			       "killed by %s: a file grew past limits.file_mb", name);
		break;
	case SIGSYS:
		decide(verdict, VT_STATUS_CRASHED, "Crashed",
		       "killed by %s: it made a system call that is not allowed", name);
		break;
	case SIGKILL:
		decide(verdict, VT_STATUS_CRASHED, "Crashed",
		       "killed by %s, not by vitro: from inside the cell, or by the host", name);
		break;
	default:
		decide(verdict, VT_STATUS_CRASHED, "Crashed", "killed by %s", name);
		break;
	}
}

/* On the way of every call, and so without formatting. */
void vt_verdict_lose(struct vt_verdict *ret_verdict)
{
	static const char type[] = "Lost",
			  message[] = "the cell's init ended without saying how the call ended";

	ret_verdict->status = VT_STATUS_LOST;
	ret_verdict->exit_code = -1;
	ret_verdict->signal = ret_verdict->cancel_signal = 0;
	memcpy(ret_verdict->type, type, sizeof(type));
	memcpy(ret_verdict->message, message, sizeof(message));
}

static void judge_end(const struct vt_findings *found, struct vt_verdict *verdict)
{
	if (verdict->signal)
		judge_signal(found, verdict);
	else if (verdict->exit_code > 0)
		decide(verdict, VT_STATUS_ERROR, "ExitCode", "exited with code %d",
		       verdict->exit_code);
	else if (verdict->exit_code == 0)
		decide(verdict, VT_STATUS_OK, "", "%s", "");
	else
		vt_verdict_lose(verdict);
}

/* How the occupant ended, whatever the reason. */
static void note_end(const struct vt_findings *found, struct vt_verdict *verdict)
{
	bool killed = found->stop != VT_STOP_NONE || found->oom_kills > 0;

	if (found->ended && WIFEXITED(found->wait_status))
		verdict->exit_code = WEXITSTATUS(found->wait_status);
	else if (found->ended && WIFSIGNALED(found->wait_status))
		verdict->signal = WTERMSIG(found->wait_status);
	else if (killed)
		verdict->signal = SIGKILL;
}

void vt_findings_take_limits(struct vt_findings *findings, const struct vt_plan *plan)
{
	findings->wall_ms = plan->wall_ms;
	findings->cpu_ms = plan->cpu_ms;
	findings->memory_bytes = plan->memory_bytes;
	findings->file_mb = plan->file_mb;
	findings->lower_file_kb = plan->lower_file_kb;
	findings->tmp_bytes = plan->watched_tmp_bytes;
}

/*
 * A cgroup of v2 is killed as a whole. Then the end of init, or of the occupant beside an init that
 * dies, is heard as a cell that cannot be watched any more: it is the same kill. The kernel counts
 * it before it sends the first signal, and so does the looker.
 */
static bool failed_of_memory(const struct vt_findings *findings)
{
	return findings->failure.step == VT_STEP_WATCH &&
	       (findings->oom_kills > 0 || findings->stop == VT_STOP_MEMORY);
}

void vt_verdict_reach(const struct vt_findings *findings, struct vt_verdict *ret_verdict)
{
	struct vt_verdict verdict = { .exit_code = -1 };

	if (findings->failed && !failed_of_memory(findings)) {
		judge_failure(&findings->failure, &verdict);
	} else {
		note_end(findings, &verdict);
		if (findings->stop != VT_STOP_NONE)
			judge_stop(findings, &verdict);
		else if (findings->oom_kills > 0)
			judge_memory(findings, &verdict);
		else if (spent_its_cpu(findings, &verdict))
			judge_cpu(findings, &verdict);
		else
			judge_end(findings, &verdict);
	}
	*ret_verdict = verdict;
}

void vt_verdict_fail(struct vt_verdict *ret_verdict, const struct vt_err *why)
{
	struct vt_verdict verdict = { .exit_code = -1 };

	judge_failure(why, &verdict);
	*ret_verdict = verdict;
}

void vt_verdict_set(struct vt_verdict *verdict, enum vt_status status, const char *message)
{
	decide(verdict, status, vt_status_type(status), "%s", message);
}

void vt_verdict_no_cell(struct vt_verdict *verdict)
{
	vt_verdict_set(verdict, VT_STATUS_TIMEOUT, "no cell was free within limits.queue_ms");
}

void vt_verdict_tool_failed(struct vt_verdict *ret_verdict, const char *type, const char *message)
{
	struct vt_verdict verdict = { .exit_code = -1 };

	decide(&verdict, VT_STATUS_ERROR, *type ? type : "Error", "%s", message);
	*ret_verdict = verdict;
}

void vt_verdict_no_result(struct vt_verdict *ret_verdict)
{
	struct vt_verdict verdict = { .exit_code = 0 };

	decide(&verdict, VT_STATUS_NO_RESULT, "NoResult", "the tool ended without a result");
	*ret_verdict = verdict;
}

static void judge_size(struct vt_verdict *verdict, const char *what, int64_t limit_bytes)
{
	decide(verdict, VT_STATUS_RESULT_LIMIT, "ResultLimit",
	       "%s is larger than limits.result_mb (%" PRId64 " MB)", what, limit_bytes >> 20);
}

void vt_verdict_report_cut(struct vt_verdict *verdict, int64_t limit_bytes)
{
	if (verdict->status == VT_STATUS_OK)
		judge_size(verdict, "the value of the code", limit_bytes);
}

void vt_verdict_bad_talk(struct vt_verdict *ret_verdict, int num, int64_t limit_bytes)
{
	struct vt_verdict verdict = { .exit_code = -1, .signal = SIGKILL };

	if (num == EMSGSIZE)
		judge_size(&verdict, "what the call gave", limit_bytes);
	else if (num == ENOBUFS)
		decide(&verdict, VT_STATUS_CRASHED, "Crashed",
		       "the tool calls others and does not take their answers");
	else
		decide(&verdict, VT_STATUS_CRASHED, "Crashed",
		       "the tool sent a malformed message on its call socket");
	*ret_verdict = verdict;
}

int vt_verdict_exit_code(const struct vt_verdict *verdict)
{
	switch (verdict->status) {
	case VT_STATUS_OK:
		return 0;
	case VT_STATUS_ERROR:
		return verdict->exit_code;
	case VT_STATUS_TIMEOUT:
	case VT_STATUS_CPU_LIMIT:
		return EXIT_TIMEOUT;
	case VT_STATUS_MEMORY_LIMIT:
		return 128 + SIGKILL;
	case VT_STATUS_CRASHED:
		return 128 + verdict->signal;
	case VT_STATUS_CANCELLED:
		return 128 + (verdict->cancel_signal ? verdict->cancel_signal : SIGKILL);
	case VT_STATUS_NO_RESULT:
	case VT_STATUS_RESULT_LIMIT:
	case VT_STATUS_REFUSED:
	case VT_STATUS_LOST:
	case VT_STATUS_COUNT:
		break;
	}
	return EXIT_OWN;
}
