/* SPDX-License-Identifier: Apache-2.0 */
/* vitro explain: the plan for a policy on this host, without running anything. */
#include <errno.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/settle.h"
#include "host/command.h"
#include "host/host.h"
#include "plan/plan.h"
#include "watch/verdict.h"

static int print_json(const struct vt_plan *plan, enum vt_require asked,
		      const struct vt_err *refusal, struct vt_err *err)
{
	struct vt_verdict verdict;
	struct vt_str text;

	if (refusal)
		vt_verdict_fail(&verdict, refusal);
	vt_str_init(&text);
	int r = vt_plan_explain_json(plan, asked, refusal ? verdict.message : NULL, &text, err);

	if (r == 0)
		r = vt_cli_report(&text, err);
	vt_str_done(&text);
	return r;
}

static int print_text(const struct vt_plan *plan, const struct vt_err *refusal, struct vt_err *err)
{
	struct vt_str text;

	vt_str_init(&text);
	if (refusal) {
		vt_str_wrap(&text, refusal->what, 0, 0);
		vt_str_add(&text, "\nWith require=best-effort:\n");
	}
	vt_plan_explain(plan, &text);
	int r = vt_cli_report(&text, err);

	vt_str_done(&text);
	return r;
}

/*
 * Prints the plan. A refused one is printed as it would be with require=best-effort, with the
 * reason for the refusal on top.
 */
static int explain(const struct vt_options *options, const struct vt_host *host,
		   const struct vt_request *request, struct vt_err *err)
{
	enum vt_require asked = options->policy->require;
	struct vt_plan *plan = NULL;
	struct vt_err refusal;
	int refused = vt_plan_foresee(options->policy, host, request, &plan, &refusal);

	if (!plan) {
		*err = refusal;
		return refused;
	}
	const struct vt_err *why = refused < 0 ? &refusal : NULL;
	int r = options->json ? print_json(plan, asked, why, err) : print_text(plan, why, err);

	vt_plan_free(plan);
	if (r < 0)
		return r;
	return refused < 0 ? VT_EXIT_OWN : 0;
}

static int prepare_and_explain(struct vt_options *options, struct vt_arena *arena,
			       struct vt_err *err)
{
	struct vt_command command = { 0 };
	struct vt_host host;
	int r = arena ? 0 : vt_fail(err, VT_STEP_WATCH, ENOMEM, "begin");

	if (r == 0 && options->command[0])
		r = vt_options_find_command(options, arena, &command, err);
	if (r == 0)
		r = vt_host_probe(&host, err);
	if (r < 0)
		return r;
	const struct vt_request request = {
		.command = options->command[0] ? &command : NULL,
		.argv = options->command,
		.environ = environ,
	};

	r = vt_cli_settle(options->policy, &host, &request, err);
	if (r == 0)
		r = explain(options, &host, &request, err);
	vt_host_done(&host);
	return r;
}

static void show_help(void)
{
	vt_options_show(
		"explain",
		"usage: vitro explain [FLAGS] [-- CMD ARG...]\n\n"
		"Prints the plan for a policy on this host: each property, what holds it and how\n"
		"well, or why it is refused. Nothing is run. Flags:\n\n",
		"\nvitro-explain(1) and vitro-policy(5) say more.\n");
}

int vt_cli_explain(int argc, char **argv)
{
	struct vt_arena *arena = vt_arena_new();
	struct vt_options options;
	struct vt_err err;
	int r = vt_options_parse(&options, argc, argv, &err);

	if (r == 0 && options.help)
		show_help();
	else if (r == 0)
		r = prepare_and_explain(&options, arena, &err);
	if (r < 0) {
		struct vt_err later;

		/* Where there is no plan, whoever asked for JSON gets the reason as such; one that
		 * cannot be written is told below. */
		if (options.json && err.step != VT_STEP_OUTPUT)
			(void)print_json(NULL, VT_REQUIRE_FULL, &err, &later);
		vt_cli_complain_err(&err);
		r = VT_EXIT_OWN;
	}
	vt_options_done(&options);
	vt_arena_free(arena);
	return r;
}
