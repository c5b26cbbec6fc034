/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/selftest_private.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/settle.h"
#include "cli/signals.h"
#include "cli/world.h"
#include "host/helper.h"
#include "host/host.h"
#include "kernel/seccomp_oci.h"

static bool covers(const struct vt_grants *grants, const char *base)
{
	char real[PATH_MAX];

	for (size_t i = 0; *base && i < grants->count; i++)
		if (realpath(grants->items[i].from, real) && vt_path_lies_in(base, real))
			return true;
	return false;
}

static unsigned find_allowed(const struct vt_policy *policy, const char *base)
{
	unsigned allowed = 0;

	if (covers(&policy->files.write, base))
		allowed |= VT_BY_READ | VT_BY_WRITE;
	if (covers(&policy->files.read, base))
		allowed |= VT_BY_READ;
	if (policy->files.write.count)
		allowed |= VT_BY_WRITES;
	if (policy->network == VT_NETWORK_HOST)
		allowed |= VT_BY_HOST;
	if (policy->network != VT_NETWORK_NONE)
		allowed |= VT_BY_NETWORK;
	return allowed;
}

/* vitro-escape's own words for each act, from its list. One that it lacks is another version's. */
static int describe(struct vt_selftest_session *s, struct vt_err *err)
{
	char *argv[] = { s->program, (char *)"--list", NULL };
	struct vt_control control;
	int r = vt_control_start(argv, VT_CONTROL_PLAIN, NULL, &control, err);

	if (r < 0)
		return r;
	char *list = vt_arena_dup(s->test->arena, control.out.text);

	vt_control_end(&control);
	if (!list)
		return vt_fail(err, VT_STEP_WATCH, ENOMEM, "read the acts");
	for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n")) {
		char *door = strchr(line, '\t'), *sentence = door ? strchr(door + 1, '\t') : NULL;

		if (!sentence)
			continue;
		*door++ = *sentence++ = '\0';
		for (size_t i = 0; i < vt_try_count; i++) {
			if (strcmp(vt_tries[i].act, line) != 0)
				continue;
			s->test->tried[i].door = door;
			s->test->tried[i].sentence = sentence;
		}
	}
	for (size_t i = 0; i < vt_try_count; i++)
		if (!s->test->tried[i].door)
			return vt_fail(err, VT_STEP_COMMAND, EINVAL,
				       "'%s' is not this vitro's: it has no act '%s'", s->program,
				       vt_tries[i].act);
	return 0;
}

static void show_progress(const struct vt_selftest_session *s, size_t index)
{
	char line[160];

	if (s->progress < 0)
		return;
	int len = index == vt_try_count
			  ? snprintf(line, sizeof(line), "\r\033[K")
			  : snprintf(line, sizeof(line), "\r\033[Kself-test: %zu of %zu: %s",
				     index + 1, vt_try_count, vt_tries[index].act);

	(void)vt_cli_write(s->progress, line, (size_t)len); /* only for the eye */
}

/* The signals that end a call end the whole. */
static int take_signals(struct vt_selftest_session *s, struct vt_err *err)
{
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGCHLD, SIG_DFL) == SIG_ERR)
		return vt_fail(err, VT_STEP_WATCH, errno, "prepare for signals");
	s->signal_fd = vt_cli_signals(true, err);
	return s->signal_fd < 0 ? s->signal_fd : 0;
}

static int plan_once(struct vt_selftest_session *s, struct vt_err *err)
{
	char *const none[] = { NULL };
	const struct vt_request request = { .argv = none, .environ = none };
	struct vt_plan *plan = NULL;
	int r = vt_plan_make(s->policy, &s->host, &request, &plan, err);

	if (r < 0)
		return r;
	s->bare = plan->bare;
	s->others = plan->bare && plan->own_ids;
	vt_plan_free(plan);
	return 0;
}

/*
 * Whether the policy would be refused as it is. All acts are tried with what this machine can do;
 * where that is nothing, there is nothing to try.
 */
static int plan_as_is(struct vt_selftest_session *s, struct vt_err *err)
{
	char *const none[] = { NULL };
	const struct vt_request nothing = { .argv = none, .environ = none };
	int r = vt_cli_settle(s->policy, &s->host, &nothing, err);

	if (r < 0)
		return r;
	if (plan_once(s, &s->test->refusal) == 0)
		s->test->refusal.num = 0;
	s->policy->require = VT_REQUIRE_BEST_EFFORT;
	return plan_once(s, err);
}

/*
 * Whether cells can execute the program at all, found with its list in a cell. One of another user
 * than the caller needs permission for every folder on the way.
 */
static int check_reach(struct vt_selftest_session *s, struct vt_err *err)
{
	char *argv[] = { s->program, (char *)"--list", NULL };
	struct vt_plan *plan;
	struct vt_result result;
	struct vt_err later;

	/* What else keeps a cell from running is told by every act. */
	if (vt_attempt_inside(&s->host, s->policy, argv, s->signal_fd, &plan, &result, &later) < 0)
		return 0;
	bool closed = result.failure.step == VT_STEP_EXEC && result.failure.num == EACCES;

	s->test->cancelled = result.verdict.cancel_signal;
	vt_result_done(&result);
	vt_plan_free(plan);
	if (!closed)
		return 0;
	return vt_fail(err, VT_STEP_COMMAND, EACCES,
		       "the cell's user cannot reach '%s'; install vitro where others can read it",
		       s->program);
}

/* What the policy's own profile comes to, where it has one and this machine has filters. */
static int compile_profile(struct vt_selftest_session *s, struct vt_err *err)
{
	if (s->policy->syscalls != VT_SYSCALLS_PROFILE || s->host.seccomp.err)
		return 0;
	return vt_oci_compile(s->policy->profile, s->host.kernel_major, s->host.kernel_minor,
			      s->test->arena, &s->profile, err);
}

static void try_all(struct vt_selftest_session *s)
{
	struct vt_selftest *test = s->test;

	s->allowed = find_allowed(s->policy, s->world.base);
	s->writes = *s->world.base && vt_selftest_can_write(s);
	for (size_t i = 0; i < vt_try_count && !test->cancelled; i++) {
		show_progress(s, i);
		vt_selftest_try(s, &test->tried[i]);
	}
	show_progress(s, vt_try_count);
}

static int rule(struct vt_selftest *test, struct vt_err *err)
{
	struct vt_trial *trials = vt_arena_array(test->arena, vt_try_count, sizeof(*trials));

	if (!trials)
		return vt_fail(err, VT_STEP_WATCH, ENOMEM, "judge");
	for (size_t i = 0; i < vt_try_count; i++)
		trials[i] = (struct vt_trial){
			.property = vt_tries[i].property,
			.means = vt_tries[i].weaker ? VT_MEANS_WEAKER : VT_MEANS_ABSENT,
			.outcome = test->tried[i].outcome,
			.noted = test->tried[i].noted,
		};
	for (unsigned i = 0; i < VT_TESTED_COUNT; i++) {
		struct vt_ruling *ruling = &test->rulings[i];

		vt_judge(trials, vt_try_count, i, &test->claims[i], ruling);
		test->judged += ruling->judged;
		test->unclear += ruling->unclear;
		test->mismatches += ruling->mismatch;
	}
	return 0;
}

static int run_session(struct vt_selftest_session *s, struct vt_err *err)
{
	struct vt_err later;
	int r = describe(s, err);

	if (r == 0)
		r = take_signals(s, err);
	if (r == 0)
		r = plan_as_is(s, err);
	if (r == 0)
		r = compile_profile(s, err);
	if (r == 0)
		r = check_reach(s, err);
	if (r == 0 && !s->test->cancelled)
		r = vt_world_make(&s->world, s->program, s->others, err);
	if (r < 0 || s->test->cancelled)
		return r;
	try_all(s);
	r = vt_world_done(&s->world, &later);
	if (r < 0)
		*err = later;
	return r < 0 ? r : rule(s->test, err);
}

int vt_selftest_run(struct vt_policy *policy, int progress, struct vt_selftest *ret_test,
		    struct vt_err *err)
{
	static struct vt_selftest_session session; /* tens of kilobytes */
	struct vt_selftest_session *s = &session;

	*ret_test = (struct vt_selftest){ .arena = vt_arena_new() };
	*s = (struct vt_selftest_session){
		.test = ret_test, .policy = policy, .signal_fd = -1, .progress = progress
	};
	ret_test->tried = ret_test->arena ? vt_arena_array(ret_test->arena, vt_try_count,
							   sizeof(*ret_test->tried))
					  : NULL;
	if (!ret_test->tried)
		return vt_fail(err, VT_STEP_WATCH, ENOMEM, "begin");
	for (size_t i = 0; i < vt_try_count; i++)
		ret_test->tried[i] = (struct vt_tried){ .row = &vt_tries[i],
							.outcome = VT_TRIAL_UNJUDGED };
	int r = vt_helper_find("vitro-escape", s->program, err);

	if (r == 0)
		r = vt_host_probe(&s->host, err);
	if (r < 0)
		return r;
	ret_test->caller = vt_cli_caller(&s->host);
	r = run_session(s, err);
	vt_host_done(&s->host);
	vt_fd_close(&s->signal_fd);
	return r;
}

void vt_selftest_done(struct vt_selftest *test)
{
	vt_arena_free(test->arena);
	test->arena = NULL;
}
