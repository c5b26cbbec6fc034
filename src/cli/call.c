/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitro call: one tool of a manifest. It is a client as any other: this same program is started
 * once more as its supervisor, which makes the cell and ends with it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/manifest.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/unique.h"
#include "client/error.h"
#include "client/result.h"
#include "manifest/table.h"
#include "plan/lookup.h"
#include "watch/screen.h"
#include "watch/verdict.h"

enum { EXIT_RAISED = 1, EXIT_LATE = 124, EXIT_SIGNAL = 128 };

/* One of the streams that a command prints to, as it goes on to ours. */
struct stream {
	int fd;
	bool safe; /* it is a terminal, which gets no escape sequences */
	bool unended;
	int num; /* the errno of what could not be written; 0: all was */
	struct vt_screen screen;
};

/* One call of `vitro call`, and what must be released at its end. */
struct call {
	struct vt_options options;
	struct vt_manifest *manifest;
	const struct vt_manifest_tool *tool; /* NULL: it is a server's */
	const char *name;
	struct vt_arena *arena;
	struct vt_host host; /* only where a file is to be written to */
	bool probed;
	struct vt_str arguments;
	struct vt_output json;
	vitro_toolhost *toolhost;
	vitro_result *result;
	struct stream out, err;
	bool traced; /* what went wrong was shown, where it did */
	int signal_fd;
	int signal; /* that ended it; 0: none */
	char id[32];
};

/* ---- what is asked for ---------------------------------------------------------------------- */

static int read_stdin(struct vt_str *text, struct vt_err *err)
{
	char chunk[16 << 10];
	ssize_t got;

	while ((got = read(STDIN_FILENO, chunk, sizeof(chunk))) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return vt_fail(err, VT_STEP_POLICY, errno, "standard input: %s",
				       strerror(errno));
		vt_str_addn(text, chunk, (size_t)got);
		if (!vt_str_ok(text))
			return vt_fail(err, VT_STEP_POLICY, ENOMEM, "read standard input");
		if (text->len > VT_JSON_MAX_BYTES)
			return vt_fail(err, VT_STEP_POLICY, E2BIG,
				       "standard input: the arguments are more than 4 MB");
	}
	/* What has a NUL in it would end there for whoever takes it as text. */
	if (strlen(text->text) != text->len)
		return vt_fail(err, VT_STEP_POLICY, EINVAL, "standard input: there is a NUL byte");
	return 0;
}

static int read_arguments(struct call *call, const char *given, struct vt_err *err)
{
	if (given && strcmp(given, "-") == 0)
		return read_stdin(&call->arguments, err);
	vt_str_add(&call->arguments, given ? given : "{}");
	return vt_str_ok(&call->arguments)
		       ? 0
		       : vt_fail(err, VT_STEP_POLICY, ENOMEM, "read the arguments");
}

/* Where it is says what its tools must not write to, and the supervisor sees to that by its name.
 */
static int check_place(const struct vt_manifest *manifest, struct vt_err *err)
{
	struct stat info;

	if (stat(manifest->path, &info) == 0 && S_ISREG(info.st_mode))
		return 0;
	return vt_fail(err, VT_STEP_POLICY, EINVAL,
		       "%s: is no file: a manifest whose tools are called is one", manifest->path);
}

static int find_tool(struct call *call, const char *name, struct vt_err *err)
{
	const char *closest = vt_manifest_closest(call->manifest, name);
	char shown[80];

	call->name = name;
	call->tool = vt_manifest_find(call->manifest, name);
	if (call->tool)
		return 0;
	vt_utf8_show_text(shown, sizeof(shown), name, strlen(name));
	if (closest)
		return vt_fail(err, VT_STEP_POLICY, ENOENT,
			       "there is no tool '%s'; did you mean '%s'?", shown, closest);
	return vt_fail(err, VT_STEP_POLICY, ENOENT, "there is no tool '%s'; see vitro tools %s",
		       shown, call->options.command[0]);
}

/* ---- where it goes -------------------------------------------------------------------------- */

/* What the tool may write to is no place for its result. */
static int open_json(struct call *call, const struct vt_policy *policy, struct vt_err *err)
{
	if (!call->json.name)
		return 0;
	int r = vt_host_probe(&call->host, err);

	if (r < 0)
		return r;
	call->probed = true;
	r = vt_output_open(&call->json, 0, policy, &call->host, call->arena, err);
	if (r == 0 && call->json.note)
		vt_cli_complain(call->json.note);
	return r;
}

/* The policy is the supervisor's to hold; what is seen here is what it is about. */
static int look_at_policy(struct call *call, struct vt_err *err)
{
	const struct vt_manifest_policy *from = &call->tool->policy;
	struct vt_command command;
	struct vt_policy *policy;
	int r = vt_policy_new(&policy, err);

	if (r < 0)
		return r;
	r = vt_policy_load_part(policy, from->json, strlen(from->json), call->manifest->path,
				call->manifest->path, err);
	if (r == 0 && from->load)
		r = vt_policy_load(policy, from->load, "", err);
	if (r < 0)
		(void)vt_manifest_blame(call->tool, err);
	else
		r = open_json(call, policy, err);
	if (r == 0) {
		r = call->tool->function
			    ? vt_lookup_interpreter_for(NULL, call->arena, call->tool->program,
							policy, &command, err)
			    : vt_lookup_command(call->arena, call->tool->program, policy, &command,
						err);
		if (r < 0)
			(void)vt_manifest_blame(call->tool, err);
	}
	vt_policy_free(policy);
	return r;
}

static void pass_on(struct stream *stream, const char *bytes, size_t len, bool is_last)
{
	struct vt_str safe;
	int r;

	if (stream->num)
		return;
	if (!stream->safe) {
		r = vt_cli_write(stream->fd, bytes, len);
	} else {
		vt_str_init(&safe);
		vt_screen_add(&stream->screen, bytes, len, &safe);
		if (is_last)
			vt_screen_end(&stream->screen, &safe);
		r = vt_cli_write(stream->fd, safe.text, safe.len);
		vt_str_done(&safe);
	}
	if (len)
		stream->unended = bytes[len - 1] != '\n';
	stream->num = r < 0 ? -r : 0;
}

static void on_output(void *user, int stream, const char *bytes, size_t len)
{
	struct call *call = user;
	struct stream *to = stream == VITRO_STDERR ? &call->err : &call->out;

	pass_on(to, bytes, len, false);
	/* Nobody is there to hear the rest. */
	if (call->out.num)
		(void)vitro_cancel(call->toolhost, call->id); /* it may be over */
}

/* Of a function that fails. What it logs is printed by its own handlers. */
static void on_traceback(void *user, const char *level, const char *text)
{
	struct call *call = user;

	if (strcmp(level, "vitro.traceback") != 0)
		return;
	if (call->err.unended)
		pass_on(&call->err, "\n", 1, false);
	pass_on(&call->err, text, strlen(text), false);
	call->traced = true;
}

static void on_log(void *user, int level, const char *text)
{
	(void)user;
	if (level <= LOG_WARNING)
		vt_cli_complain(text);
}

/* ---- the call ------------------------------------------------------------------------------- */

/* The supervisor is this program, and no other that is installed. */
static void name_ourselves(void)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (len <= 0)
		return; /* then it is looked for as by any client */
	path[len] = '\0';
	if (access(path, X_OK) == 0)
		(void)setenv("VITRO_BINARY", path, 1); /* the same */
}

static int join_server(struct call *call, struct vt_err *err)
{
	const struct vitro_options options = { .log = on_log,
					       .socket = call->options.serve.socket,
					       .server_tools = 1 };
	struct vitro_error error;
	int r = vitro_toolhost_new(&call->toolhost, NULL, &options, &error);

	return r < 0 ? vt_fail(err, VT_STEP_POLICY, error.num, "%s", error.text) : 0;
}

static int start(struct call *call, struct vt_err *err)
{
	const struct vitro_options options = { .ready_min = 1, .ready_max = 1, .log = on_log };
	struct vitro_error error;
	struct vitro_tool *tools;

	if (call->options.serve.socket)
		return join_server(call, err);
	name_ourselves();
	int r = vt_manifest_table(call->manifest, call->tool, &tools, &error);

	if (r == 0) {
		r = vitro_toolhost_new(&call->toolhost, tools, &options, &error);
		vt_manifest_table_free(tools);
	}
	if (r == 0)
		return 0;
	(void)vt_fail(err, VT_STEP_POLICY, error.num, "%s", error.text);
	/* What it asks for cannot be had; else no supervisor can. */
	bool asked = strncmp(error.text, "refused: ", 9) == 0 ||
		     strstr(error.text, call->manifest->path);

	return asked ? vt_manifest_blame(call->tool, err) : r;
}

static void take_result(void *user, vitro_result *result)
{
	((struct call *)user)->result = result;
}

static void take_signal(struct call *call)
{
	struct signalfd_siginfo info;

	if (read(call->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	call->signal = (int)info.ssi_signo;
	(void)vitro_cancel(call->toolhost, call->id); /* it may be over */
}

static int await(struct call *call, struct vt_err *err)
{
	struct pollfd pollers[] = { { .fd = vitro_toolhost_fd(call->toolhost), .events = POLLIN },
				    { .fd = call->signal_fd, .events = POLLIN } };

	while (!call->result) {
		if (poll(pollers, 2, -1) < 0 && errno != EINTR)
			return vt_fail(err, VT_STEP_WATCH, errno, "wait for the result");
		if (pollers[1].revents)
			take_signal(call);
		(void)vitro_dispatch(call->toolhost); /* take_result() is told */
	}
	return 0;
}

/* What a function returned; a command's is what it printed. */
static void show_value(struct call *call)
{
	const char *value = vitro_result_value(call->result, NULL);

	if (!value || call->result->is_printed)
		return;
	if (call->out.unended)
		pass_on(&call->out, "\n", 1, false);
	pass_on(&call->out, value, call->result->value.len, false);
	pass_on(&call->out, "\n", 1, false);
}

static int execute(struct call *call, struct vt_err *err)
{
	const struct vt_options *options = &call->options;
	bool captured = options->json && !options->json_file;
	const struct vitro_request request = {
		.tool = call->name,
		.arguments = call->arguments.text,
		.call_id = call->id,
		.wall_ms = vt_policy_gave(options->policy, VT_FIELD_LIMITS_WALL_MS)
				   ? options->policy->limits.wall_ms
				   : 0,
		.user = call,
		.on_output = captured ? NULL : on_output,
		.on_log = captured ? NULL : on_traceback,
	};

	if (vitro_submit(call->toolhost, &request, take_result) < 0)
		return vt_fail(err, VT_STEP_WATCH, ENOMEM, "begin the call");
	int r = await(call, err);

	if (r == 0 && !captured)
		show_value(call);
	pass_on(&call->out, "", 0, true);
	pass_on(&call->err, "", 0, true);
	return r;
}

static int take_signals(struct call *call, struct vt_err *err)
{
	call->signal_fd = vt_cli_signals_of_call(err);
	return call->signal_fd < 0 ? call->signal_fd : 0;
}

/* ---- what came of it ------------------------------------------------------------------------ */

/* By a signal, or since nobody reads what it says. Else its server did it. */
static bool was_cancelled_here(const struct call *call)
{
	return call->signal || call->out.num == EPIPE || call->err.num == EPIPE;
}

/* As those of `vitro run`. */
static int exit_code(const struct call *call)
{
	const vitro_result *result = call->result;
	int code = vitro_result_exit_code(result), number = vitro_result_signal(result);

	switch (vitro_result_status(result)) {
	case VITRO_OK:
		return 0;
	case VITRO_ERROR:
		return code > 0 ? code : result->came_to_cell ? EXIT_RAISED : VT_EXIT_OWN;
	case VITRO_TIMEOUT:
	case VITRO_CPU_LIMIT:
		return EXIT_LATE;
	case VITRO_MEMORY_LIMIT:
		return EXIT_SIGNAL + SIGKILL;
	case VITRO_CRASHED:
		return number > 0 ? EXIT_SIGNAL + number : VT_EXIT_OWN;
	case VITRO_CANCELLED:
		return was_cancelled_here(call)
			       ? EXIT_SIGNAL + (call->signal ? call->signal : SIGPIPE)
			       : VT_EXIT_OWN;
	default:
		return VT_EXIT_OWN;
	}
}

/* Says on standard error what went wrong, but for what the tool has said there itself. */
static void tell(struct call *call)
{
	const vitro_result *result = call->result;
	const char *type = vitro_result_error_type(result);
	char text[200];

	if (!type || (call->options.json && !call->options.json_file) ||
	    (call->out.num == EPIPE && !call->signal))
		return;
	if (call->err.unended)
		(void)vt_cli_write(STDERR_FILENO, "\n", 1); /* there is nobody else to tell */
	if (call->traced) {
		(void)snprintf(text, sizeof(text), "%s: failed with %.60s", call->name,
			       type); /* cut is fine */
		vt_cli_complain(text);
	} else if (strcmp(type, "ExitCode") == 0) {
		(void)snprintf(text, sizeof(text), "%s: exited with code %d", call->name,
			       vitro_result_exit_code(result)); /* fits */
		vt_cli_complain(text);
	} else if (vitro_result_status(result) == VITRO_CANCELLED && !was_cancelled_here(call)) {
		vt_cli_complain("the server ended, and did not wait for the call");
	} else {
		vt_cli_complain(vitro_result_error(result));
	}
}

static int write_json(struct call *call, struct vt_err *err)
{
	if (!call->options.json)
		return 0;
	const char *text = vitro_result_json(call->result);

	if (!text)
		return vt_fail(err, VT_STEP_OUTPUT, ENOMEM, "write the result");
	return vt_output_write(&call->json, text, strlen(text), call->options.raw, err);
}

/* What kept it from being made is a result too. */
static void refuse(struct call *call, const struct vt_err *err)
{
	struct vt_verdict verdict;

	vt_verdict_fail(&verdict, err);
	struct vitro_result parts = vt_result_failed(verdict.status == VT_STATUS_ERROR ? VITRO_ERROR
						     : verdict.status == VT_STATUS_LOST
							     ? VITRO_LOST
							     : VITRO_REFUSED,
						     verdict.message);

	parts.type = verdict.type;
	parts.exit_code = verdict.exit_code;
	parts.call_id = call->id;
	call->result = vt_result_new(&parts);
}

static void show_help(void)
{
	vt_options_show("call",
			"usage: vitro call TOOLS.json NAME [ARGS | -] [FLAGS]\n"
			"       vitro call --socket PATH NAME [ARGS | -] [FLAGS]\n\n"
			"Calls the tool NAME of a manifest, or of a server, in a sealed, "
			"single-use\ncell. ARGS is a JSON object; - takes it from standard "
			"input. Flags:\n\n",
			"\nExits as vitro run does: with the command's own code; 124: timeout; "
			"125: vitro's\nown error or a refusal.\n\n"
			"vitro-call(1) and vitro-tools(5) say more.\n");
}

static void release(struct call *call)
{
	vitro_result_free(call->result);
	vitro_toolhost_free(call->toolhost);
	vt_manifest_free(call->manifest);
	vt_str_done(&call->arguments);
	vt_output_done(&call->json);
	if (call->probed)
		vt_host_done(&call->host);
	vt_arena_free(call->arena);
	vt_options_done(&call->options);
	vt_fd_close(&call->signal_fd);
}

/* Of a tool that is a server's own, all else is the server's to know. */
static int prepare_served(struct call *call, struct vt_err *err)
{
	char **words = call->options.command;

	if (!words[0] || (words[1] && words[2]))
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "want a tool: vitro call --socket PATH NAME [ARGS | -]");
	if (call->options.json_file)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "--json=%s does not go with --socket, since what the tool may "
			       "write to is the server's to know: use --json, and > %s",
			       call->options.json_file, call->options.json_file);
	call->name = words[0];
	return read_arguments(call, words[1], err);
}

static int fail_order(const char *word, struct vt_err *err)
{
	char shown[80];

	vt_utf8_show_text(shown, sizeof(shown), word, strlen(word));
	return vt_fail(err, VT_STEP_POLICY, EINVAL,
		       "'%s' is no tool; a manifest comes first, and then the tool: vitro call "
		       "TOOLS.json NAME [ARGS | -]",
		       shown);
}

/* 1: what is wrong was told already, line by line. */
static int prepare(struct call *call, struct vt_err *err)
{
	char **words = call->options.command;

	if (call->options.serve.socket)
		return prepare_served(call, err);
	if (!words[0] || !words[1] || (words[2] && words[3]))
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "want a manifest and a tool: vitro call TOOLS.json NAME [ARGS | -]");
	if (strpbrk(words[1], "{=")) /* the arguments, where the tool should be */
		return fail_order(words[1], err);
	call->arena = vt_arena_new();
	if (!call->arena)
		return vt_fail(err, VT_STEP_WATCH, ENOMEM, "begin");
	if (vt_cli_load_manifest(words[0], &call->manifest, err) < 0)
		return 1;
	int r = check_place(call->manifest, err);

	if (r == 0)
		r = find_tool(call, words[1], err);
	if (r == 0)
		r = look_at_policy(call, err);
	return r < 0 ? r : read_arguments(call, words[2], err);
}

static int run(struct call *call, struct vt_err *err)
{
	int r = prepare(call, err);

	if (r == 0)
		r = start(call, err);
	/* Until there is a call that they could end, signals end this: a server may be silent. */
	if (r == 0)
		r = take_signals(call, err);
	return r == 0 ? execute(call, err) : r;
}

/* Reports, and says what to exit with. */
static int finish(struct call *call, int status, struct vt_err *err)
{
	if (!call->result)
		refuse(call, err);
	if (status <= 0)
		tell(call);
	int code = exit_code(call);

	if (call->out.num && call->out.num != EPIPE) {
		vt_fail(err, VT_STEP_OUTPUT, call->out.num, "write the output");
		vt_cli_complain_err(err);
		code = VT_EXIT_OWN;
	}
	if (write_json(call, err) < 0) {
		vt_cli_complain_err(err);
		code = VT_EXIT_OWN;
	}
	return code;
}

int vt_cli_call(int argc, char **argv)
{
	struct call call = {
		.json = { .flag = "--json", .fd = -1, .folder_fd = -1 },
		.signal_fd = -1,
		.out.fd = STDOUT_FILENO,
		.err.fd = STDERR_FILENO,
	};
	struct vt_err err = { 0 };
	int code = 0;

	vt_str_init(&call.arguments);
	vt_unique_call_id(call.id, sizeof(call.id));
	int r = vt_options_parse(&call.options, argc, argv, &err);

	call.json.name = call.options.json_file;
	call.out.safe = isatty(STDOUT_FILENO) && !call.options.raw;
	call.err.safe = isatty(STDERR_FILENO) && !call.options.raw;
	if (r == 0 && call.options.help) {
		show_help();
	} else {
		r = r < 0 ? r : run(&call, &err);
		code = finish(&call, r, &err);
	}
	release(&call);
	return code;
}
