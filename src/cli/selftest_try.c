/* SPDX-License-Identifier: Apache-2.0 */
/* One act of the self-test: what it is given, outside and inside a cell, and what came of it. */
#include "cli/selftest_private.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	ARGS_SIZE = 4 * PATH_MAX,
	LATE_MB = 2, /* less is not worth a word */
	LATE_MS = 50,
	WATCHED_TRIES = 3,
	AFTER_TRIES = 100, /* times AFTER_MS that what outlives a control has to go */
	AFTER_MS = 10,
};

/*
 * The words of a row, filled in one by one, as arguments for the program. They lie in text. Returns
 * NULL, or what the world lacks.
 */
static const char *make_words(struct vt_selftest_session *s, const char *act, const char *args,
			      char text[ARGS_SIZE], char *ret_argv[VT_ATTEMPT_WORDS])
{
	size_t at = 0;
	int count = 2;

	ret_argv[0] = s->program;
	ret_argv[1] = (char *)act;
	while (*args && count < VT_ATTEMPT_WORDS - 1) {
		size_t len = strcspn(args, " ");
		char word[64];

		(void)snprintf(word, sizeof(word), "%.*s", (int)len, args); /* fits: see acts.c */
		const char *lacks = vt_world_fill(&s->world, word, text + at, ARGS_SIZE - at);

		if (lacks)
			return lacks;
		ret_argv[count++] = text + at;
		at += strlen(text + at) + 1;
		args += len + strspn(args + len, " ");
	}
	ret_argv[count] = NULL;
	return NULL;
}

static enum vt_control_kind control_of(const struct vt_try *row)
{
	return row->flags & VT_TRY_NAMESPACES ? VT_CONTROL_NAMESPACES
	       : row->flags & VT_TRY_CHILD    ? VT_CONTROL_CHILD
					      : VT_CONTROL_PLAIN;
}

/* Whether the one who stays behind is there. Waits until it is gone, which it is made to. */
static bool was_left(const struct vt_world *world)
{
	bool left = vt_world_is_locked(world);

	for (int i = 0; left && i < AFTER_TRIES && vt_world_is_locked(world); i++)
		(void)usleep(AFTER_MS * 1000);
	return left;
}

/* The control, under a filter if one is given. False where it was not reached: tried->why says why.
 */
static bool reach_outside(struct vt_selftest_session *s, const struct sock_fprog *filter,
			  struct vt_tried *tried)
{
	const struct vt_try *row = tried->row;
	struct vt_control control;
	struct vt_err err;
	char text[ARGS_SIZE], *argv[VT_ATTEMPT_WORDS];
	const char *lacks = make_words(s, row->act, row->outside ? row->outside : row->args, text,
				       argv);

	if (lacks || vt_control_start(argv, control_of(row), filter, &control, &err) < 0) {
		(void)snprintf(tried->why, sizeof(tried->why), "%s", lacks ? lacks : err.what);
		return false;
	}
	vt_said_parse(control.out.text, &tried->outside);
	bool left = row->flags & VT_TRY_AFTER ? was_left(&s->world) : true;

	vt_control_end(&control);
	if (tried->outside.word == VT_SAID_REACHED && left)
		return true;
	(void)snprintf(tried->why, sizeof(tried->why), "outside: %s",
		       *tried->outside.line ? tried->outside.line : "it said nothing");
	return false;
}

/* The policy for a row: the caller's, with limits that are soon reached and what the row needs. */
static int make_policy(struct vt_selftest_session *s, const struct vt_try *row,
		       struct vt_policy *ret_policy, struct vt_err *err)
{
	static const struct {
		unsigned flag;
		const char *key, *folder;
	} grants[] = { { VT_TRY_READ, "files.read", "{read}" },
		       { VT_TRY_WRITE, "files.write", "{write}" } };
	struct vt_policy policy = *s->policy;
	char text[ARGS_SIZE];
	int r = 0;

	policy.limits.wall_ms = 10000;
	policy.limits.grace_ms = 0;
	policy.limits.cpu_ms = -1;
	policy.limits.cpus = -1;
	policy.limits.memory_mb = 256;
	policy.limits.pids = 64;
	policy.limits.open_files = 256;
	policy.limits.file_mb = 64;
	policy.limits.tmp_mb = 64;
	policy.limits.stdout_kb = policy.limits.stderr_kb = 64;
	for (size_t i = 0; r == 0 && i < sizeof(grants) / sizeof(grants[0]); i++) {
		if (!(row->flags & grants[i].flag))
			continue;
		/* Cannot fail: the row's own words name the same folder, and were filled in. */
		(void)vt_world_fill(&s->world, grants[i].folder, text, sizeof(text));
		r = vt_policy_set(&policy, grants[i].key, text, "/", "--self-test", err);
	}
	(void)snprintf(text, sizeof(text), "%s", row->set ? row->set : ""); /* fits */
	for (char *key = strtok(text, " "); r == 0 && key; key = strtok(NULL, " ")) {
		char *equals = strchr(key, '=');

		*equals = '\0';
		r = vt_policy_set(&policy, key, equals + 1, "/", "--self-test", err);
	}
	*ret_policy = policy;
	return r;
}

/*
 * The highest claim of all calls counts: each of them made it. Its note may be one that only some
 * of them need.
 */
static void take_claim(struct vt_selftest *test, struct vt_tried *tried, const struct vt_plan *plan)
{
	const enum vt_tested property = tried->row->property;
	struct vt_claim *claim = &test->claims[property];
	const char **note = &test->notes[property];

	for (int i = 0; i < VT_PROPERTIES; i++) {
		const struct vt_holding *holding = &plan->holdings[i];

		if (strcmp(holding->name, vt_tested_name(property)) != 0)
			continue;
		tried->noted = *holding->note;
		if (holding->mechanism && (!claim->mechanism || claim->grade < holding->grade)) {
			claim->mechanism = vt_arena_dup(test->arena, holding->mechanism);
			claim->grade = holding->grade;
			*note = NULL;
		}
		if (holding->mechanism && claim->grade == holding->grade && (!*note || !**note))
			*note = vt_arena_dup(test->arena, holding->note);
		return;
	}
	if (vt_tested_mechanism(property)) {
		claim->mechanism = vt_tested_mechanism(property);
		claim->grade = VT_GRADE_KERNEL;
	}
}

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (; words; words = strchr(words, ' ') ? strchr(words, ' ') + 1 : NULL)
		if (strncmp(words, word, len) == 0 && (words[len] == ' ' || words[len] == '\0'))
			return true;
	return false;
}

/* Whether a cell was above a watched limit when it was ended, as far as its result tells. */
static bool was_late(const struct vt_try *row, const struct vt_result *result,
		     const struct vt_plan *plan, char *why, size_t size)
{
	const long long memory_mb = plan->memory_bytes >> 20;
	const struct vt_excess memory = { "memory",  "MB",
					  memory_mb, (result->peak_memory_kb >> 10) - memory_mb,
					  LATE_MB,   plan->memory_slack_mb };
	const struct vt_excess cpu = { "CPU time",   "ms",
				       plan->cpu_ms, (long long)result->cpu_ms - plan->cpu_ms,
				       LATE_MS,      0 };

	return (row->property == VT_TESTED_MEMORY && vt_excess_tell(&memory, why, size)) ||
	       (row->property == VT_TESTED_CPU_TIME && vt_excess_tell(&cpu, why, size));
}

static enum vt_trial_outcome outcome_inside(struct vt_selftest_session *s, struct vt_tried *tried,
					    const struct vt_result *result,
					    const struct vt_plan *plan)
{
	const struct vt_try *row = tried->row;
	bool ended = tried->inside.word == VT_SAID_NOTHING && has_word(row->ends, tried->status);

	/* Nobody in a pid namespace can kill its init: there, a call that is lost has lost it. */
	if (row->flags & VT_TRY_CHILD && !plan->bare)
		ended = false;
	if (row->flags & VT_TRY_AFTER && (tried->inside.word == VT_SAID_REACHED || ended)) {
		if (was_left(&s->world))
			return VT_TRIAL_REACHED;
		(void)snprintf(tried->inside.line, sizeof(tried->inside.line),
			       "it was gone with its call"); /* fits */
		return VT_TRIAL_DENIED;
	}
	if (tried->inside.word == VT_SAID_DENIED || ended)
		return was_late(row, result, plan, tried->why, sizeof(tried->why))
			       ? VT_TRIAL_LATE
			       : VT_TRIAL_DENIED;
	if (tried->inside.word == VT_SAID_REACHED) {
		(void)snprintf(tried->why, sizeof(tried->why), "%s",
			       row->weaker ? row->weaker : "");
		return VT_TRIAL_REACHED;
	}
	(void)snprintf(tried->why, sizeof(tried->why), "the call ended as %s%s%s", tried->status,
		       *result->verdict.message ? ": " : "", result->verdict.message);
	return VT_TRIAL_UNCLEAR;
}

static void try_inside(struct vt_selftest_session *s, struct vt_tried *tried)
{
	const struct vt_try *row = tried->row;
	struct vt_plan *plan;
	struct vt_result result;
	struct vt_policy policy;
	struct vt_err err;
	struct vt_str out;
	char text[ARGS_SIZE], *argv[VT_ATTEMPT_WORDS];
	const char *lacks = make_words(s, row->act, row->args, text, argv);
	int r = lacks ? 0 : make_policy(s, row, &policy, &err);

	if (!lacks && r == 0)
		r = vt_attempt_inside(&s->host, &policy, argv, s->signal_fd, &plan, &result, &err);
	if (lacks || r != 0) {
		(void)snprintf(tried->why, sizeof(tried->why), "%s", lacks ? lacks : err.what);
		tried->outcome = lacks || err.step == VT_STEP_PLAN ? VT_TRIAL_UNJUDGED
								   : VT_TRIAL_UNCLEAR;
		return;
	}
	vt_str_init(&out);
	vt_capture_text(&result.out, &out);
	vt_said_parse(out.text, &tried->inside);
	tried->status = vt_status_name(result.verdict.status);
	s->test->cancelled = result.verdict.cancel_signal;
	take_claim(s->test, tried, plan);
	tried->outcome = outcome_inside(s, tried, &result, plan);
	vt_str_done(&out);
	vt_result_done(&result);
	vt_plan_free(plan);
}

/* Whether the policy allows the act. What a profile lets through is found by trying it under that
 * alone. */
static bool is_allowed(struct vt_selftest_session *s, const struct vt_try *row)
{
	struct vt_tried tried = { .row = row };

	if (row->flags & VT_TRY_PROFILE && s->profile.len)
		return reach_outside(s, &s->profile, &tried);
	return row->allowed & s->allowed;
}

/*
 * Where a limit is watched, a busy machine may look too late to stop an act. One that is never
 * stopped is not watched.
 */
static void try_watched(struct vt_selftest_session *s, struct vt_tried *tried)
{
	const struct vt_claim *claim = &s->test->claims[tried->row->property];
	int tries = 1;

	if (tried->row->weaker || !claim->mechanism || claim->grade != VT_GRADE_WATCHED)
		return;
	while (tried->outcome == VT_TRIAL_REACHED && tries < WATCHED_TRIES && !s->test->cancelled) {
		vt_world_refresh(&s->world);
		try_inside(s, tried);
		tries++;
	}
	if (tries == 1 || tried->outcome != VT_TRIAL_DENIED)
		return;
	tried->outcome = VT_TRIAL_LATE;
	(void)snprintf(tried->why, sizeof(tried->why),
		       "it was stopped only when it was tried %d times", tries);
}

/* Why an act cannot be tried here, or NULL. */
static const char *obstacle(const struct vt_selftest_session *s, const struct vt_try *row)
{
	if (row->flags & VT_TRY_TMPFS && s->bare)
		return "the private /tmp is a folder of the host here";
	if (row->flags & VT_TRY_SHOWN && s->bare && s->host.proc_hides)
		return "/proc hides such processes here, as the plan says";
	if (row->flags & VT_TRY_WRITE && !s->writes)
		return *s->world.base ? "cells cannot write a folder that is granted to them here"
				      : s->world.why;
	return NULL;
}

void vt_selftest_try(struct vt_selftest_session *s, struct vt_tried *tried)
{
	const struct vt_try *row = tried->row;
	const char *why = obstacle(s, row);

	tried->outcome = is_allowed(s, row) ? VT_TRIAL_ALLOWED : VT_TRIAL_UNJUDGED;
	if (tried->outcome == VT_TRIAL_ALLOWED)
		return;
	if (why) {
		(void)snprintf(tried->why, sizeof(tried->why), "%s", why);
		return;
	}
	vt_world_refresh(&s->world);
	if (!reach_outside(s, NULL, tried))
		return;
	vt_world_refresh(&s->world);
	try_inside(s, tried);
	try_watched(s, tried);
	if (row->flags & VT_TRY_AGAIN && tried->outcome == VT_TRIAL_DENIED &&
	    !reach_outside(s, NULL, tried))
		tried->outcome = VT_TRIAL_UNJUDGED;
}

bool vt_selftest_can_write(struct vt_selftest_session *s)
{
	static const struct vt_try row = { VT_TESTED_FILES, "write_new", "{write}", VT_TRY_WRITE };
	struct vt_tried tried = { .row = &row };

	try_inside(s, &tried);
	return tried.outcome == VT_TRIAL_REACHED;
}
