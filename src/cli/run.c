/* SPDX-License-Identifier: Apache-2.0 */
/* vitro run, and vitro eval: seals a command and says what happened to it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/eval.h"
#include "cli/hint.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/unique.h"
#include "host/command.h"
#include "host/host.h"
#include "plan/plan.h"
#include "watch/audit.h"
#include "watch/audit_line.h"
#include "watch/result.h"
#include "watch/run.h"

/* One call of `vitro run`, and what must be released at its end. */
struct call {
	struct vt_options options;
	struct vt_host host;
	bool probed;
	struct vt_arena *arena;
	struct vt_command command;
	struct vt_plan *plan;
	struct vt_result result;
	struct vt_output json, audit;
	struct vt_audit_log log; /* audit, from when it is open */
	int signal_fd;
};

static int open_output(struct call *call, struct vt_output *output, int flags, struct vt_err *err)
{
	if (!output->name)
		return 0;
	int r = vt_output_open(output, flags, call->options.policy, &call->host, call->arena, err);

	/* Whatever becomes of the call, there will be something written. */
	if (r == 0 && output->note)
		vt_cli_complain(output->note);
	return r;
}

/* A log that somebody keeps locked is found out now: what cannot be recorded is not run. */
static int open_audit(struct call *call, struct vt_err *err)
{
	int r = open_output(call, &call->audit, O_RDWR | O_APPEND, err);

	if (r < 0 || call->audit.fd < 0)
		return r;
	int fd = fcntl(call->audit.fd, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return vt_fail(err, VT_STEP_OUTPUT, errno, "open '%s'", call->audit.name);
	r = vt_audit_take(&call->log, fd, call->audit.name, err);
	if (r == 0)
		r = vt_audit_try(&call->log, err);
	if (r < 0)
		vt_audit_done(&call->log);
	return r;
}

/*
 * Before anything runs: a call that cannot be reported on is not made. One of them that cannot be
 * opened is told by the other.
 */
static int open_outputs(struct call *call, struct vt_err *err)
{
	struct vt_err later;
	int r = open_output(call, &call->json, 0, err);
	int audit = open_audit(call, r < 0 ? &later : err);

	return r < 0 ? r : audit;
}

static int check_outputs(struct call *call, struct vt_err *err)
{
	struct vt_err later;
	int r = vt_output_check(&call->json, call->plan, &call->host, call->arena, err);
	int audit = vt_output_check(&call->audit, call->plan, &call->host, call->arena,
				    r < 0 ? &later : err);

	if (audit < 0)
		vt_audit_done(&call->log);
	return r < 0 ? r : audit;
}

static int take_signals(struct call *call, struct vt_err *err)
{
	call->signal_fd = vt_cli_signals_of_call(err);
	return call->signal_fd < 0 ? call->signal_fd : 0;
}

static int make_plan(struct call *call, struct vt_err *err)
{
	const struct vt_request request = {
		.command = &call->command,
		.argv = call->options.command,
		.environ = environ,
		.name = call->result.call_id,
	};

	vt_plan_free(call->plan);
	call->plan = NULL;
	return vt_plan_make(call->options.policy, &call->host, &request, &call->plan, err);
}

static int prepare(struct call *call, int argc, char **argv, struct vt_err *err)
{
	int r = vt_options_parse(&call->options, argc, argv, err);

	call->json.name = call->options.json_file;
	call->audit.name = call->options.audit_file;
	if (r < 0 || call->options.help)
		return r;
	call->arena = vt_arena_new();
	if (!call->arena)
		return vt_fail(err, VT_STEP_WATCH, ENOMEM, "begin");
	r = vt_host_probe(&call->host, err);
	if (r < 0)
		return r;
	call->probed = true;
	r = open_outputs(call, err);
	if (r == 0 && strcmp(argv[0], "eval") == 0)
		r = vt_eval_command(&call->options, call->arena, err);
	if (r == 0 && (!call->options.command[0] || !*call->options.command[0]))
		r = vt_fail(err, VT_STEP_POLICY, EINVAL,
			    "no command given: vitro run [FLAGS] -- CMD ARG...");
	if (r == 0)
		r = vt_options_find_command(&call->options, call->arena, &call->command, err);
	return r < 0 ? r : make_plan(call, err);
}

/* Before the command can say anything: what it does may come of it. */
static void warn(const struct vt_plan *plan)
{
	struct vt_str message;

	vt_str_init(&message);
	for (size_t i = 0; i < plan->warning_count; i++) {
		message.len = 0;
		vt_str_addf(&message, "note: %s", plan->warnings[i]);
		vt_cli_complain(vt_str_ok(&message) ? message.text : plan->warnings[i]);
	}
	vt_str_done(&message);
}

static struct vt_sink sink_for(const struct call *call, int fd)
{
	if (call->options.json && !call->options.json_file)
		return (struct vt_sink){ .kind = VT_SINK_CAPTURE, .fd = -1 };
	return (struct vt_sink){ .kind = isatty(fd) && !call->options.raw ? VT_SINK_SCREEN
									  : VT_SINK_PASS,
				 .fd = fd };
}

/*
 * Standard input is never handed on itself. A terminal can be typed into; a file's owner can change
 * its mode through any descriptor of it; a pipe can be opened anew and written to, and its flags
 * are the next reader's too. Its text comes through a pipe of the cell's own.
 */
static int judge_stdin(bool *ret_relay, struct vt_err *err)
{
	struct stat st;

	if (fstat(STDIN_FILENO, &st) < 0)
		return vt_fail(err, VT_STEP_POLICY, errno, "standard input: %s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return vt_fail(err, VT_STEP_POLICY, EISDIR, "standard input is a folder");
	/* In place of /dev/null the cell's own is as good: of this one its flags, locks and times
	 * are the caller's. */
	*ret_relay = !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
	return 0;
}

static int run_again(struct call *call, const struct vt_run_io *io, struct vt_err *err)
{
	char call_id[sizeof(call->result.call_id)];

	memcpy(call_id, call->result.call_id, sizeof(call_id));
	vt_result_done(&call->result);
	vt_result_init(&call->result);
	memcpy(call->result.call_id, call_id, sizeof(call_id));
	return vt_run(call->plan, io, &call->result, err);
}

static int execute(struct call *call, struct vt_err *err)
{
	struct vt_run_io io = {
		.in_fd = STDIN_FILENO,
		.out = sink_for(call, STDOUT_FILENO),
		.err = sink_for(call, STDERR_FILENO),
		.reports = call->options.code && call->options.json,
		.signal_fd = call->signal_fd,
	};
	int r = judge_stdin(&io.in_relay, err);

	if (!io.in_relay)
		io.in_fd = -1;
	if (r == 0)
		r = check_outputs(call, err);
	if (r == 0)
		r = vt_run(call->plan, &io, &call->result, err);
	/*
	 * A cell that could not be built, of which nothing ran, is the best probe there is: with
	 * what it taught there may be another plan that this machine can carry out and the policy
	 * accepts.
	 */
	while (r == 0 && call->result.unbuilt &&
	       vt_host_learn(&call->host, &call->result.failure)) {
		r = make_plan(call, err);
		if (r == 0)
			r = run_again(call, &io, err);
	}
	return r;
}

static int append_audit(struct call *call, struct vt_err *err)
{
	const struct vt_options *options = &call->options;
	const struct vt_audit audit = { .policy = options->policy_name,
					.argv = options->told ? options->told : options->command };
	struct vt_str line;

	vt_str_init(&line);
	int r = vt_audit_line(&call->result, call->plan, &audit, &line, err);

	if (r == 0)
		r = vt_audit_append(&call->log, line.text, line.len, err);
	vt_str_done(&line);
	return r;
}

static int write_json(const struct call *call, struct vt_err *err)
{
	struct vt_str json;

	vt_str_init(&json);
	int r = vt_result_json(&call->result, call->plan, &json, err);

	if (r == 0)
		r = vt_output_write(&call->json, json.text, json.len, call->options.raw, err);
	vt_str_done(&json);
	return r;
}

/* The audit log first: it must not hang on whether somebody still reads the result. */
static int write_reports(struct call *call, struct vt_err *err)
{
	struct vt_err later;
	int audited = call->log.fd >= 0 ? append_audit(call, err) : 0;
	int written = call->options.json ? write_json(call, audited < 0 ? &later : err) : 0;

	return audited < 0 ? audited : written;
}

/* Messages are lines of their own, whatever the command left unended where they go. */
static void end_line(struct call *call)
{
	struct vt_result *result = &call->result;
	bool unended = result->err_unended ||
		       (result->out_unended && vt_file_is_same(STDOUT_FILENO, STDERR_FILENO));

	if (result->passed_on && unended)
		(void)vt_cli_write(STDERR_FILENO, "\n", 1); /* there is nobody else to tell */
	result->out_unended = result->err_unended = false;
}

/* Who starts a shell at a terminal waits for its prompt. */
static void warn_of_silence(const struct vt_options *options)
{
	static const char *const prompters[] = { "sh",      "bash", "dash", "zsh",
						 "python3", "node", NULL };
	const char *const *at = prompters;

	if (options->code || options->command[1] || !isatty(STDIN_FILENO))
		return;
	const char *slash = strrchr(options->command[0], '/');
	const char *name = slash ? slash + 1 : options->command[0];

	while (*at && strcmp(*at, name) != 0)
		at++;
	if (*at)
		vt_cli_complain("note: there is no terminal inside, and so no prompt: type the "
				"input, and end it with Ctrl-D");
}

static void complain(struct call *call, const char *message)
{
	end_line(call);
	vt_cli_complain(message);
}

static void hint(struct call *call)
{
	const struct vt_result *result = &call->result;
	const char *code = call->options.code;
	char *const program[] = { call->options.command ? call->options.command[0] : NULL,
				  (char *)code, NULL };
	struct vt_str text;

	if (result->verdict.status != VT_STATUS_ERROR || !call->plan)
		return;
	vt_str_init(&text);
	if (code && vt_hint_is_file(code)) {
		vt_str_addf(
			&text,
			"'%s' was run as code; to run what is in that file: vitro eval %s%s%s- < ",
			code, call->options.lang ? "--lang " : "",
			call->options.lang ? call->options.lang : "",
			call->options.lang ? " " : "");
		vt_hint_add_path(&text, code, strlen(code));
	} else
		vt_hint_make(call->plan, call->options.policy->network,
			     code ? program : call->options.command, code != NULL, result->err_tail,
			     result->err_tail_len, &text);
	if (text.len)
		complain(call, text.text);
	vt_str_done(&text);
}

/*
 * Who knows notebooks leaves the `return` out in JavaScript, too. What printed nothing either, and
 * could change nothing, was run for nothing.
 */
static void hint_value(struct call *call)
{
	const struct vt_policy *policy = call->options.policy;
	bool changes = policy->files.write.count || policy->files.sockets.count ||
		       policy->network != VT_NETWORK_NONE;

	if (call->result.verdict.status == VT_STATUS_OK && call->result.silent && !changes &&
	    vt_eval_lacks_value(&call->options))
		complain(call, "note: the code has no `return`, and so no value; in JavaScript, "
			       "write: return 6 * 7");
}

/* A path may be anybody's words. */
static void complain_of(struct call *call, const char *before, const json_t *path,
			const char *between, const json_t *to, const char *after)
{
	const char *first = json_string_value(path), *second = json_string_value(to);
	struct vt_str text;

	vt_str_init(&text);
	vt_str_add(&text, before);
	vt_str_show(&text, first ? first : "", first ? strlen(first) : 0);
	vt_str_add(&text, between);
	vt_str_show(&text, second ? second : "", second ? strlen(second) : 0);
	vt_str_add(&text, after);
	if (vt_str_ok(&text))
		complain(call, text.text);
	vt_str_done(&text);
}

static void tell_guarded(struct call *call)
{
	const json_t *guarded = call->result.guarded, *item;
	size_t i;

	json_array_foreach((json_t *)json_object_get(guarded, "set_apart"), i, item)
	{
		const json_t *path = json_object_get(item, "path"),
			     *to = json_object_get(item, "to");

		if (json_is_string(to))
			complain_of(call, "'", path,
				    "' appeared during the call, where programs of the host run or "
				    "trust it (files.protect); it is '",
				    to, "' now");
		else
			complain_of(call, "'", path,
				    "' appeared during the call, where programs of the host run or "
				    "trust it (files.protect), and could not be renamed: ",
				    json_object_get(item, "error"), "; look at it");
	}
	json_array_foreach((json_t *)json_object_get(guarded, "unseen"), i, item)
		complain_of(call, "'", json_object_get(item, "path"),
			    "' could not be looked at, so that the call may have put something "
			    "there that programs of the host run or trust (files.protect): ",
			    json_object_get(item, "error"), "; look at it");
	json_array_foreach((json_t *)json_object_get(guarded, "replaced"), i, item)
		complain_of(call, "'", item,
			    "' is another file than before the call, which may have written to it; "
			    "look at it before you use it",
			    NULL, "");
	if (json_object_get(guarded, "more"))
		complain(call,
			 "more of such names were set apart, or replaced, than are told: look "
			 "for *.vitro-*");
}

/* Says on standard error what the exit code alone does not. */
static void tell(struct call *call)
{
	const struct vt_verdict *verdict = &call->result.verdict;
	/* A command that wrote to a pipe which nobody reads any more ends quietly everywhere. */
	bool own_words = verdict->status == VT_STATUS_OK || verdict->signal == SIGPIPE ||
			 (verdict->status == VT_STATUS_ERROR &&
			  strcmp(verdict->type, "ExitCode") == 0);

	/* Whoever takes the result from standard output has the message in it. */
	if (!own_words && !(call->options.json && !call->options.json_file))
		complain(call, verdict->message);
	if (call->result.unreaped)
		complain(call, "the cell did not end within five seconds of being killed; it is "
			       "left behind");
	if (call->result.uncleared)
		complain(call, "the cell has ended; what it left in its private folder is so much "
			       "that it is still being removed");
	tell_guarded(call);
	hint(call);
	hint_value(call);
}

static void show_help(const char *verb)
{
	bool eval = strcmp(verb, "eval") == 0;
	struct vt_str text;

	vt_str_init(&text);
	vt_str_addf(&text,
		    "usage: vitro %s\n\n"
		    "Runs %s in a sealed, single-use cell. Of the host, the cell has only the\n"
		    "system's runtime, read-only, and what the flags or a policy grant.\n\n%s",
		    eval ? "eval [FLAGS] CODE | -" : "run [FLAGS] -- CMD ARG...",
		    eval ? "CODE" : "CMD",
		    eval ? "Python: the last expression is the value, as in a notebook. "
			   "JavaScript: the body\n"
			   "of an async function, so `return` gives the value. - reads standard "
			   "input.\n\n"
			 : "");
	vt_options_help(verb, &text);
	vt_str_add(&text,
		   eval ? "\nvitro eval 'sum(range(10))'\n"
			  "vitro eval --lang node --timeout 5s - < code.js\n"
			: "\nvitro run --read . --cwd . -- python3 sum.py\n"
			  "vitro run --read . --write out --timeout 1m --memory 2G -- make\n");
	vt_str_addf(&text,
		    "\nExits with %s; 124: timeout or CPU limit; 125: vitro's own\n"
		    "error or a refusal; 126, 127: cannot be executed, not found; 128+n: died of\n"
		    "signal n; 137: memory limit.\n\n",
		    eval ? "1 if the code raised" : "the command's own code");
	vt_str_addf(&text, "vitro-%s(1) and vitro-policy(5) say more.\n", verb);
	(void)vt_cli_write(STDOUT_FILENO, text.text, text.len); /* nobody to tell */
	vt_str_done(&text);
}

static void release(struct call *call)
{
	vt_result_done(&call->result);
	vt_plan_free(call->plan);
	if (call->probed)
		vt_host_done(&call->host);
	vt_arena_free(call->arena);
	vt_options_done(&call->options);
	vt_output_done(&call->json);
	vt_output_done(&call->audit);
	vt_audit_done(&call->log);
	vt_fd_close(&call->signal_fd);
}

int vt_cli_run(int argc, char **argv)
{
	struct call call = {
		.json = { .flag = "--json", .fd = -1, .folder_fd = -1 },
		.audit = { .flag = "--audit", .fd = -1, .folder_fd = -1 },
		.log = { .fd = -1 },
		.signal_fd = -1,
	};
	struct vt_err failure;
	int code;

	vt_result_init(&call.result);
	vt_unique_call_id(call.result.call_id, sizeof(call.result.call_id));
	int r = prepare(&call, argc, argv, &failure);

	if (r == 0 && call.options.help) {
		show_help(argv[0]);
		release(&call);
		return 0;
	}
	if (r == 0) {
		warn(call.plan);
		warn_of_silence(&call.options);
	}
	if (r == 0)
		r = take_signals(&call, &failure);
	if (r == 0)
		r = execute(&call, &failure);
	if (r < 0)
		vt_verdict_fail(&call.result.verdict, &failure);
	code = vt_verdict_exit_code(&call.result.verdict);
	r = write_reports(&call, &failure);
	tell(&call);
	if (r < 0) {
		end_line(&call);
		vt_cli_complain_err(&failure);
		code = VT_EXIT_OWN;
	}
	release(&call);
	return code;
}
