/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/signalfd.h>

int vt_cli_signals(bool take, struct vt_err *err)
{
	sigset_t ending;

	(void)sigemptyset(&ending);
	(void)sigaddset(&ending, SIGINT);
	(void)sigaddset(&ending, SIGTERM);
	(void)sigaddset(&ending, SIGHUP);
	int fd = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);

	/* The set is a good one: what fails is for want of the call. */
	if (fd < 0)
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: no call can be made here: prepare for signals: %s",
			       strerror(errno));
	if (take)
		(void)sigprocmask(SIG_BLOCK, &ending, NULL); /* fails for wrong arguments alone */
	return fd;
}

int vt_cli_signals_of_call(struct vt_err *err)
{
	if (signal(SIGTSTP, SIG_IGN) == SIG_ERR || signal(SIGTTIN, SIG_IGN) == SIG_ERR ||
	    signal(SIGTTOU, SIG_IGN) == SIG_ERR || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return vt_fail(err, VT_STEP_WATCH, errno, "prepare for signals");
	return vt_cli_signals(true, err);
}
