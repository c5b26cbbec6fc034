/* SPDX-License-Identifier: Apache-2.0 */
/* vitro doctor: what this machine can enforce, and what to do about the rest. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/selftest.h"
#include "cli/settle.h"
#include "host/interpreter.h"
#include "host/report.h"
#include "plan/lookup.h"
#include "plan/plan.h"
#include "policy/policy.h"

enum {
	EXIT_NOT = 1, /* the default policy cannot be enforced here, or a claim does not hold */
	EXIT_SIGNAL = 128,
	NAME_WIDTH = 19, /* of the longest name of a finding, and a blank */
	STATE_WIDTH = 8,
};

/* What was found, and what it comes to: the plan of the default policy. */
struct diagnosis {
	struct vt_report report;
	struct vt_policy *policy;
	struct vt_plan *plan; /* where it is refused, that of best effort; NULL: not even that */
	struct vt_err refused;
	bool ok; /* it is not refused */
};

/* Whether functions could be held ready, by the interpreter that is used where none is named. */
static int look_for(const struct vt_interpreter *interpreter, const struct vt_policy *policy,
		    struct vt_report *report, struct vt_err *err)
{
	struct vt_arena *arena = vt_arena_new();
	struct vt_finding *finding = &report->findings[report->count];
	struct vt_command command = { 0 };
	char script[PATH_MAX], why_not[VT_INTERPRETER_WHY] = "";
	struct vt_err why;

	if (!arena)
		return vt_fail(err, VT_STEP_OUTPUT, ENOMEM, "look for %s", interpreter->title);
	if (report->count == VT_REPORT_MAX) {
		vt_arena_free(arena);
		return 0;
	}
	int r = vt_interpreter_find(interpreter, script, &why);

	if (r == 0)
		r = vt_lookup_interpreter_for(NULL, arena, interpreter->program, policy, &command,
					      &why);
	if (r == 0)
		r = vt_interpreter_forks(interpreter, command.path, script, why_not, &why);
	*finding = (struct vt_finding){ .name = interpreter->pools,
					.state = r < 0 ? VT_STATE_NOT : VT_STATE_WORKS };
	/* Cut is fine. */
	if (r < 0 || !interpreter->preloads)
		(void)snprintf(finding->why, sizeof(finding->why), "%.300s",
			       r < 0 ? why.what : command.path);
	else
		(void)snprintf(finding->why, sizeof(finding->why),
			       "%.120s, %s for each call%s%.150s", command.path,
			       why_not[0] ? "started anew" : "forked", why_not[0] ? ": " : "",
			       why_not);
	report->count++;
	vt_arena_free(arena);
	return 0;
}

static int diagnose(struct vt_host *host, struct diagnosis *diagnosis, struct vt_err *err)
{
	char *const argv[] = { NULL };
	const struct vt_request request = { .argv = argv, .environ = argv };
	int r = vt_policy_new(&diagnosis->policy, err);

	if (r < 0)
		return r;
	vt_report_make(host, &diagnosis->report);
	for (size_t i = 0; r == 0 && i < VT_LANGUAGES; i++)
		r = look_for(&vt_interpreters[i], diagnosis->policy, &diagnosis->report, err);
	if (r < 0)
		return r;
	r = vt_cli_settle(diagnosis->policy, host, &request, &diagnosis->refused);
	if (r < 0)
		return 0; /* there is no plan that works, and that is the diagnosis */
	r = vt_plan_foresee(diagnosis->policy, host, &request, &diagnosis->plan,
			    &diagnosis->refused);
	if (r == -ENOMEM)
		*err = diagnosis->refused;
	diagnosis->ok = r == 0;
	return r == -ENOMEM ? r : 0;
}

/* One cause can stop several: what was said once is only referred to. */
static void add_advice(struct vt_str *out, const struct vt_report *report, size_t index)
{
	const char *advice = report->findings[index].advice;

	if (advice[0] == '\0')
		return;
	vt_str_addf(out, "%*s→ ", NAME_WIDTH, "");
	for (size_t i = 0; i < index; i++) {
		if (strcmp(report->findings[i].advice, advice) == 0) {
			vt_str_addf(out, "As for %s.\n", report->findings[i].name);
			return;
		}
	}
	vt_str_wrap(out, advice, NAME_WIDTH + 2, NAME_WIDTH + 2);
}

static void add_finding(struct vt_str *out, const struct vt_report *report, size_t index)
{
	const struct vt_finding *finding = &report->findings[index];
	size_t indent = NAME_WIDTH + STATE_WIDTH;

	vt_str_addf(out, "%-*s%-*s", NAME_WIDTH, finding->name,
		    finding->why[0] != '\0' ? STATE_WIDTH : 0, vt_state_name(finding->state));
	vt_str_wrap(out, finding->why, indent, indent);
	add_advice(out, report, index);
}

/* Why cells have no namespaces here, or no filter. */
static void add_wants(struct vt_str *line, const struct diagnosis *diagnosis)
{
	const struct vt_report *report = &diagnosis->report;
	const char *sep = "";

	if (vt_report_ok(report))
		return;
	vt_str_add(line, diagnosis->plan && !diagnosis->plan->bare
				 ? "Not all of a cell's walls can be had here, for want of: "
				 : "Cells have no namespaces of their own here, for want of: ");
	for (size_t i = 0; i < report->count; i++) {
		const struct vt_finding *finding = &report->findings[i];

		if (!finding->needed || finding->state != VT_STATE_NOT || finding->follows)
			continue;
		vt_str_addf(line, "%s%s", sep, finding->name);
		sep = ", ";
	}
	vt_str_add(line, ". ");
}

static void add_holdings(struct vt_str *line, const struct vt_plan *plan)
{
	const char *sep = "";

	for (int i = 0; i < VT_PROPERTIES; i++) {
		const struct vt_holding *holding = &plan->holdings[i];

		if (holding->mechanism == NULL)
			continue;
		vt_str_addf(line, "%s%s (%s, %s)", sep, holding->name, holding->mechanism,
			    vt_grade_name(holding->grade));
		sep = ", ";
	}
	vt_str_addf(line, ". Isolation: %s.", plan->level);
}

/* The last lines: what a call of the default policy gets here. */
static void add_sum(struct vt_str *out, const struct diagnosis *diagnosis)
{
	struct vt_str line;

	vt_str_init(&line);
	add_wants(&line, diagnosis);
	if (!diagnosis->ok)
		vt_str_addf(&line, "vitro run with the default policy is %s. ",
			    diagnosis->refused.what);
	if (diagnosis->plan)
		vt_str_add(&line, diagnosis->ok ? "vitro run enforces here, with the default "
						  "policy: "
						: "With require=best-effort it enforces: ");
	if (diagnosis->plan)
		add_holdings(&line, diagnosis->plan);
	out->failed = out->failed || !vt_str_ok(&line);
	vt_str_wrap(out, line.text, 0, 0);
	vt_str_done(&line);
}

static void add_text(struct vt_str *out, const struct vt_host *host,
		     const struct diagnosis *diagnosis)
{
	const char *container = diagnosis->report.container;
	struct utsname system;

	if (uname(&system) < 0)
		strcpy(system.release, "?");
	vt_str_addf(out, "vitro %s on Linux %s, as %s%s%s\n\n", VITRO_VERSION, system.release,
		    vt_cli_caller(host), container ? ", inside " : "", container ? container : "");
	for (size_t i = 0; i < diagnosis->report.count; i++)
		add_finding(out, &diagnosis->report, i);
	vt_str_add(out, "\n");
	add_sum(out, diagnosis);
}

static json_t *text_or_null(const char *text)
{
	return text[0] == '\0' ? json_null() : vt_json_text(text, strlen(text));
}

static json_t *findings_json(const struct vt_report *report)
{
	json_t *list = json_array();

	for (size_t i = 0; i < report->count; i++) {
		const struct vt_finding *finding = &report->findings[i];
		json_t *item = json_pack("{s:s, s:s, s:b, s:o, s:o}", "name", finding->name,
					 "state", vt_state_name(finding->state), "needed",
					 finding->needed, "why", text_or_null(finding->why),
					 "advice", text_or_null(finding->advice));

		if (json_array_append_new(list, item) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *isolation_json(const struct vt_plan *plan)
{
	json_t *isolation = plan ? json_pack("{s:s}", "level", plan->level) : json_null();

	for (int i = 0; plan != NULL && i < VT_PROPERTIES; i++) {
		const struct vt_holding *holding = &plan->holdings[i];

		if (holding->mechanism != NULL &&
		    json_object_set_new(isolation, holding->name,
					json_pack("{s:s, s:s}", "mechanism", holding->mechanism,
						  "grade", vt_grade_name(holding->grade))) < 0) {
			json_decref(isolation);
			return NULL;
		}
	}
	return isolation;
}

static int add_dump(struct vt_str *out, const json_t *root, struct vt_err *err)
{
	char *text = root == NULL ? NULL : json_dumps(root, JSON_INDENT(2));

	if (text == NULL)
		return vt_fail(err, VT_STEP_OUTPUT, ENOMEM, "print the report");
	vt_str_addf(out, "%s\n", text);
	free(text);
	return 0;
}

static int add_json(struct vt_str *out, const struct diagnosis *diagnosis, struct vt_err *err)
{
	const char *refused = diagnosis->ok ? "" : diagnosis->refused.what;
	AUTO_JSON json_t *root = json_pack(
		"{s:s, s:b, s:s?, s:o, s:o, s:o}", "version", VITRO_VERSION, "ok", diagnosis->ok,
		"container", diagnosis->report.container, "findings",
		findings_json(&diagnosis->report), "isolation", isolation_json(diagnosis->plan),
		"refused", text_or_null(refused));

	return add_dump(out, root, err);
}

static int show_help(void)
{
	static const char help[] =
		"usage: vitro doctor [--json]\n"
		"       vitro doctor --self-test [-p POLICY] [--set KEY=VALUE] [--json]\n\n"
		"Tries everything that vitro uses on this machine, and says what works, what\n"
		"does not and why, and what an administrator can do about it. Leaves nothing\n"
		"behind.\n\n"
		"Exits with 0 if vitro run can enforce its default policy here, with 1 if not.\n\n"
		"With --self-test it tries forbidden acts instead, each outside and inside a\n"
		"real cell of the policy, and compares what happened with what vitro claims.\n"
		"It takes the flags of vitro run that make a policy. Exits with 0 if all is as\n"
		"claimed, with 1 if not.\n\n"
		"Both exit with 125 for an error of vitro's own. vitro-doctor(1) says more.\n";

	return vt_cli_write(STDOUT_FILENO, help, sizeof(help) - 1) < 0 ? VT_EXIT_OWN : 0;
}

/* Prints and returns the exit code, or a negative errno. */
static int print(const struct vt_host *host, const struct diagnosis *diagnosis, bool json,
		 struct vt_err *err)
{
	struct vt_str text;
	int r = 0;

	vt_str_init(&text);
	if (json)
		r = add_json(&text, diagnosis, err);
	else
		add_text(&text, host, diagnosis);
	if (r == 0)
		r = vt_cli_report(&text, err);
	vt_str_done(&text);
	return r < 0 ? r : diagnosis->ok ? 0 : EXIT_NOT;
}

static int examine(bool json, struct vt_err *err)
{
	static struct vt_host host; /* tens of kilobytes */
	static struct diagnosis diagnosis;
	int r = vt_host_probe(&host, err);

	if (r < 0)
		return r;
	r = diagnose(&host, &diagnosis, err);
	if (r == 0)
		r = print(&host, &diagnosis, json, err);
	vt_plan_free(diagnosis.plan);
	vt_policy_free(diagnosis.policy);
	vt_host_done(&host);
	return r;
}

static int print_selftest(const struct vt_selftest *test, bool json, struct vt_err *err)
{
	struct vt_str text;
	int r = 0;

	vt_str_init(&text);
	if (json) {
		AUTO_JSON json_t *root = vt_selftest_json(test);

		r = add_dump(&text, root, err);
	} else {
		vt_selftest_text(test, &text);
	}
	if (r == 0)
		r = vt_cli_report(&text, err);
	vt_str_done(&text);
	return r < 0 ? r : vt_selftest_ok(test) ? 0 : EXIT_NOT;
}

static int tell_cancelled(const struct vt_selftest *test)
{
	vt_cli_complain("the self-test was cancelled; what it made is gone");
	return EXIT_SIGNAL + test->cancelled;
}

static int test_self(const struct vt_options *options, struct vt_err *err)
{
	struct vt_selftest test = { 0 };
	int r = vt_selftest_run(options->policy, isatty(STDERR_FILENO) ? STDERR_FILENO : -1, &test,
				err);

	if (r == 0)
		r = test.cancelled ? tell_cancelled(&test)
				   : print_selftest(&test, options->json, err);
	vt_selftest_done(&test);
	return r;
}

static int serve(const struct vt_options *options, struct vt_err *err)
{
	if (options->help)
		return show_help();
	if (options->command[0])
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "doctor takes flags only, no '%s'; see vitro doctor --help",
			       options->command[0]);
	if (options->self_test)
		return test_self(options, err);
	if (options->policy->given)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "doctor takes a policy only with --self-test; vitro explain tells "
			       "what one comes to here");
	return examine(options->json, err);
}

int vt_cli_doctor(int argc, char **argv)
{
	struct vt_options options;
	struct vt_err err;
	int r = vt_options_parse(&options, argc, argv, &err);

	if (r == 0)
		r = serve(&options, &err);
	vt_options_done(&options);
	if (r < 0) {
		vt_cli_complain_err(&err);
		return VT_EXIT_OWN;
	}
	return r;
}
