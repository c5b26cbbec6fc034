/* SPDX-License-Identifier: Apache-2.0 */
/* vitro serve: a supervisor of many clients, on a Unix socket. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <syslog.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/log.h"
#include "cli/offering.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "serve/server.h"

enum { FIRST_FD = 3 }; /* of those that systemd gives */

struct serving {
	struct vt_options options;
	struct vt_host host;
	struct vt_loop loop;
	struct vt_server *server;
	struct vt_watch signals;
	struct vt_offering offering;
	struct vt_cli_log log;
};

static void log_line(void *user, int level, const char *text)
{
	if (level <= LOG_NOTICE)
		vt_cli_log_line(user, text);
}

static void take_signal(struct vt_watch *source, uint32_t events)
{
	struct serving *serving = source->owner;
	struct signalfd_siginfo info;

	(void)events;
	if (read(source->fd, &info, sizeof(info)) != sizeof(info))
		return;
	vt_server_end(serving->server);
}

/* A client that is gone, or a limit of a file's size, is an error, and not our end. */
static int take_signals(struct serving *serving, struct vt_err *err)
{
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR ||
	    signal(SIGCHLD, SIG_DFL) == SIG_ERR) /* ignored, no child could be waited for */
		return vt_fail(err, VT_STEP_WATCH, errno, "prepare for signals");
	int fd = vt_cli_signals(true, err);

	if (fd < 0)
		return fd;
	serving->signals = (struct vt_watch){ .fd = fd, .ready = take_signal, .owner = serving };
	return vt_loop_add(&serving->loop, &serving->signals, EPOLLIN, err);
}

/* Whoever started it need not try until it can be reached. */
static void tell_ready(struct serving *serving, const char *path)
{
	char text[PATH_MAX + 32];

	if (path)
		(void)snprintf(text, sizeof(text), "serving at %s", path); /* fits */
	vt_cli_log_line(&serving->log, path ? text : "serving where it was told to");
}

static int listen_at(struct serving *serving, const char *path, struct vt_err *err)
{
	int r = vt_server_listen(serving->server, path, err);

	if (r == 0)
		tell_ready(serving, path);
	return r;
}

/* Where it is reached: by what it was given, or else at a path. */
static int open_doors(struct serving *serving, int activated, struct vt_err *err)
{
	const struct vt_options *options = &serving->options;
	char path[PATH_MAX];
	int r = 0;

	for (int i = 0; r == 0 && i < activated; i++)
		r = vt_server_inherit(serving->server, FIRST_FD + i, err);
	if (r == 0 && options->serve.fd >= 0)
		r = vt_server_inherit(serving->server, options->serve.fd, err);
	if (r == 0 && options->serve.socket)
		return listen_at(serving, options->serve.socket, err);
	if (r < 0)
		return r;
	if (activated || options->serve.fd >= 0) {
		tell_ready(serving, NULL); /* who gave it these knows where */
		return 0;
	}
	r = vt_listen_usual(path, sizeof(path), true, err);
	return r < 0 ? r : listen_at(serving, path, err);
}

static int serve(struct serving *serving, int activated, struct vt_err *err)
{
	const struct vt_options *options = &serving->options;
	const struct vt_server_options server = {
		.clients_max = (unsigned)options->serve.clients,
		.live_max = (unsigned)options->serve.cells,
		.drain_ms = options->serve.drain_ms,
		.log = log_line,
		.user = &serving->log,
	};
	int r = vt_loop_init(&serving->loop, err);

	if (r < 0)
		return r;
	vt_cli_log_init(&serving->log);
	serving->signals.fd = -1;
	r = take_signals(serving, err);
	if (r == 0)
		r = vt_server_new(&serving->loop, &serving->host, &server, &serving->server, err);
	if (r == 0 && options->audit_file)
		r = vt_server_record(serving->server, options->audit_file, err);
	if (r == 0 && options->serve.metrics)
		r = vt_server_show(serving->server, options->serve.metrics, err);
	if (r == 0 && options->serve.tools)
		r = vt_offering_begin(&serving->offering, &serving->loop, serving->server,
				      &serving->log, options->serve.tools, err);
	if (r == 0)
		r = open_doors(serving, activated, err);
	if (r == 0)
		r = vt_loop_run(&serving->loop, err);
	vt_offering_end(&serving->offering);
	vt_server_free(serving->server);
	vt_loop_remove(&serving->loop, &serving->signals);
	vt_fd_close(&serving->signals.fd);
	vt_loop_done(&serving->loop);
	vt_cli_log_done(&serving->log);
	return r;
}

static void show_help(void)
{
	vt_options_show("serve",
			"usage: vitro serve [FLAGS]\n\n"
			"Runs calls for programs that connect to a Unix socket, and keeps cells "
			"ready\nfor them. Only the same user, and root, are let in. SIGTERM ends "
			"it, when the\ncalls that run are over. Flags:\n\n",
			"\nvitro-serve(1) says more.\n");
}

static int run(struct serving *serving, struct vt_err *err)
{
	int activated = vt_listen_activated(); /* before anything else is opened */

	const char *more = serving->options.command[0];

	if (more && access(more, F_OK) == 0 && !serving->options.serve.tools)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "vitro serve takes only flags, not '%.100s'; did you mean --tools "
			       "%.100s?",
			       more, more);
	if (more)
		return vt_fail(err, VT_STEP_POLICY, EINVAL,
			       "vitro serve takes only flags, not '%.100s'", more);
	int r = vt_host_probe(&serving->host, err);

	if (r < 0)
		return r;
	r = serve(serving, activated, err);
	vt_host_done(&serving->host);
	return r;
}

int vt_cli_serve(int argc, char **argv)
{
	struct serving serving = { 0 };
	struct vt_err err;
	int r = vt_options_parse(&serving.options, argc, argv, &err);

	if (r == 0 && serving.options.help)
		show_help();
	else if (r == 0)
		r = run(&serving, &err);
	if (r < 0)
		vt_cli_complain_err(&err);
	vt_options_done(&serving.options);
	return r < 0 ? VT_EXIT_OWN : 0;
}
