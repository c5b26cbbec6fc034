/* SPDX-License-Identifier: Apache-2.0 */
/* A server, whose cells a tool host of this program uses. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "pools.h"
#include "rig.h"

enum { PATIENCE_S = 20 };

void served_open(struct served *served, unsigned ready)
{
	struct words argv = { 0 };
	int64_t until = vt_clock_now() + PATIENCE_S * VT_NS_PER_S;

	(void)snprintf(served->folder, sizeof(served->folder), "/tmp/bench-served-XXXXXX");
	if (!mkdtemp(served->folder))
		die("make a folder for a socket: %s", strerror(errno));
	(void)snprintf(served->path, sizeof(served->path), "%s/socket", served->folder);
	words_add(&argv, getenv("VITRO_BINARY"));
	words_add(&argv, "serve");
	words_add(&argv, "--socket");
	words_add(&argv, served->path);
	served->pid = spawn(argv.items, 1, 2);
	while (access(served->path, F_OK) < 0) {
		if (vt_clock_now() > until || waitpid(served->pid, NULL, WNOHANG) != 0)
			die("a server does not start");
		pause_ms(10);
	}
	served->host = host_open_at(ready, 0, served->path);
}

void served_close(struct served *served)
{
	vitro_toolhost_free(served->host);
	if (kill(served->pid, SIGTERM) < 0 || await(served->pid) != 0)
		die("a server does not end well");
	(void)rmdir(served->folder); /* it is empty, and in /tmp */
}
