/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/private.h"

#include <unistd.h>

#include "serve/session.h"

/* The one client that there is. */
struct supervised {
	struct vt_commons commons;
	struct vt_session *session;
};

static void ended(void *user, struct vt_session *session)
{
	struct supervised *supervised = user;

	(void)session; /* it is freed behind the loop */
	supervised->commons.loop->over = true;
}

static void log_line(void *user, const struct vt_cells *cells, int level, const char *text)
{
	const struct supervised *supervised = user;

	if (supervised->session)
		vt_session_log(supervised->session, cells, level, text);
}

int vt_serve_private(struct vt_loop *loop, struct vt_host *host, int fd, int program_fd,
		     struct vt_err *err)
{
	/* Its client could only make itself wait. */
	const struct vt_session_peer peer = { .fd = fd, .program_fd = program_fd, .uid = getuid() };
	struct supervised supervised = { 0 };
	struct vt_commons *commons = &supervised.commons;

	vt_commons_init(commons, loop, host);
	commons->user = commons->cells.user = &supervised;
	commons->ended = ended;
	commons->cells.log = log_line;
	int r = vt_session_new(commons, &peer, &supervised.session, err);

	if (r == 0) {
		r = vt_loop_run(loop, err);
		vt_session_free(supervised.session);
		supervised.session = NULL;
	}
	vt_commons_done(commons);
	return r;
}
