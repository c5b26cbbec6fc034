/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of whole calls: one that is planned for this machine, run, and cleared away. */
#pragma once

#include "kernel/child_test.h"

#include <stdbool.h>

#include "base/clock.h"
#include "base/fd.h"
#include "watch/run.h"

struct call {
	struct vt_policy *policy;
	struct vt_host host;
	struct vt_plan *plan;
	struct vt_run_io io;
	struct vt_result result;
	struct vt_err err;
	int fds_before;
	int64_t took;
	/* to be said before it is planned */
	bool bare;       /* as if there were no user namespaces */
	bool no_cgroups; /* as if there were none */
	int abi;         /* as if Landlock were this old; -1: as it is */
	bool rehearsal;
};

static inline void probe(struct call *call)
{
	const struct vt_err denied = { .step = VT_STEP_CLONE, .num = EPERM, .what = "clone" };

	assert_int_equal(vt_host_probe(&call->host, &call->err), 0);
	if (call->abi >= 0 && call->abi < call->host.landlock_abi)
		call->host.landlock_abi = call->abi;
	if (call->no_cgroups)
		call->host.cgroup = (struct vt_cgroup_site){ .version = VT_CGROUP_NONE };
	if (call->bare && call->host.userns.err == 0)
		assert_true(vt_host_learn(&call->host, &denied));
}

/*
 * Plans a command line: a shell that runs `script`, or the program at that path if it is one. What
 * the call says about the machine holds; all else of it is made anew.
 */
static inline void plan_as_said(struct call *call, const char *json, const char *script)
{
	static char shell[] = "/bin/sh", flag[] = "-c", text[4096], name[32];
	static unsigned count;
	char *argv[] = { shell, flag, text, NULL };
	const struct vt_command command = { .path = *script == '/' ? script : shell };
	const struct vt_request request = { .command = &command,
					    .argv = argv,
					    .environ = environ,
					    .rehearsal = call->rehearsal,
					    .name = name };

	(void)snprintf(name, sizeof(name), "test-%d-%u", getpid(), count++); /* fits */
	call->fds_before = count_fds();
	(void)snprintf(text, sizeof(text), "%s", script); /* they are short */
	assert_int_equal(vt_policy_new(&call->policy, &call->err), 0);
	if (vt_policy_load_text(call->policy, json, strlen(json), "/", "test", &call->err) < 0)
		fail_msg("%s", call->err.what);
	probe(call);
	if (vt_plan_make(call->policy, &call->host, &request, &call->plan, &call->err) < 0)
		fail_msg("%s", call->err.what);
	call->io = (struct vt_run_io){
		.in_fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
		.out = { VT_SINK_CAPTURE, -1 },
		.err = { VT_SINK_CAPTURE, -1 },
		.signal_fd = -1,
	};
	assert_true(call->io.in_fd >= 0);
	vt_result_init(&call->result);
}

static inline void plan(struct call *call, const char *json, const char *script)
{
	*call = (struct call){ .abi = -1 };
	plan_as_said(call, json, script);
}

static inline void run(struct call *call)
{
	int64_t start = vt_clock_now();

	if (vt_run(call->plan, &call->io, &call->result, &call->err) < 0)
		fail_msg("%s: %s", vt_step_name(call->err.step), call->err.what);
	call->took = vt_clock_now() - start;
	assert_false(call->result.unreaped);
}

static inline void check_output(const struct vt_capture *capture, const char *wanted)
{
	struct vt_str text;

	vt_str_init(&text);
	vt_capture_text(capture, &text);
	assert_string_equal(text.text, wanted);
	vt_str_done(&text);
}

/* Neither a descriptor nor a child is left, whatever happened. */
static inline void end(struct call *call)
{
	vt_fd_close(&call->io.in_fd);
	vt_result_done(&call->result);
	vt_plan_free(call->plan);
	vt_host_done(&call->host);
	vt_policy_free(call->policy);
	assert_int_equal(count_fds(), call->fds_before);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

struct row {
	const char *policy, *script;
	enum vt_status status;
	int exit_code, signal;
	const char *out, *err;
};

static inline void check_row(const struct row *row)
{
	struct call call;

	plan(&call, row->policy, row->script);
	run(&call);
	if (call.result.verdict.status != row->status)
		fail_msg("'%s': %s: %s", row->script, vt_status_name(call.result.verdict.status),
			 call.result.verdict.message);
	assert_int_equal(call.result.verdict.exit_code, row->exit_code);
	assert_int_equal(call.result.verdict.signal, row->signal);
	check_output(&call.result.out, row->out);
	check_output(&call.result.err, row->err);
	assert_true(call.result.wall_ms > 0 && call.result.wall_ms < 20000);
	assert_true(call.took < 10 * VT_NS_PER_S);
	end(&call);
}
