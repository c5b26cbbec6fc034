/* SPDX-License-Identifier: Apache-2.0 */
/* vitro supervise: the private supervisor of one client, which started it and speaks on
 * descriptor 3. Descriptor 4 is the client's program. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "serve/private.h"

enum { CLIENT_FD = 3, PROGRAM_FD = 4 };

/* The client's own program, if it came along; else -1. */
static int take_program(void)
{
	struct stat st;

	if (fstat(PROGRAM_FD, &st) < 0 || !S_ISREG(st.st_mode) ||
	    fcntl(PROGRAM_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return PROGRAM_FD;
}

static int supervise(int program_fd, struct vt_err *err)
{
	struct vt_host host;
	struct vt_loop loop;
	int r = vt_host_probe(&host, err);

	if (r < 0)
		return r;
	r = vt_loop_init(&loop, err);
	if (r == 0) {
		r = vt_serve_private(&loop, &host, CLIENT_FD, program_fd, err);
		vt_loop_done(&loop);
	}
	vt_host_done(&host);
	return r;
}

int vt_cli_supervise(int argc, char **argv)
{
	int program_fd = take_program(); /* before anything else is opened */
	struct vt_err err;

	(void)argv;
	if (argc > 1 || fcntl(CLIENT_FD, F_SETFD, FD_CLOEXEC) < 0) {
		vt_cli_complain("this is for programs that embed vitro: they start it themselves");
		return VT_EXIT_OWN;
	}
	/*
	 * A Ctrl-C at the client's terminal is the client's to deal with: we end when it does. What
	 * is larger than the caller's own limit of a file's size is an error, and not our end.
	 */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR ||
	    signal(SIGINT, SIG_IGN) == SIG_ERR || signal(SIGHUP, SIG_IGN) == SIG_ERR ||
	    signal(SIGCHLD, SIG_DFL) == SIG_ERR) /* ignored, no child could be waited for */
		return VT_EXIT_OWN;
	if (supervise(program_fd, &err) < 0) {
		vt_cli_complain(err.what);
		return VT_EXIT_OWN;
	}
	return 0;
}
