/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "watch/verdict.h"

/*
 * O_NONBLOCK belongs to the open file, which whoever started us has too, and may be a terminal. So
 * a pipe or a terminal is opened anew. That may be denied, where another user made it: then it is
 * asked for room, which another writer may take in between. A file has room, and its place in it is
 * shared.
 */
void vt_cli_log_init(struct vt_cli_log *log)
{
	struct stat st;

	*log = (struct vt_cli_log){ .fd = STDERR_FILENO, .own_fd = -1 };
	if (fstat(STDERR_FILENO, &st) < 0 || S_ISREG(st.st_mode))
		return;
	log->is_socket = S_ISSOCK(st.st_mode);
	if (log->is_socket)
		return;
	log->own_fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	log->waits = log->own_fd < 0;
	log->fd = log->waits ? STDERR_FILENO : log->own_fd;
}

/* A pipe takes so little as one, or nothing of it. */
static bool put(const struct vt_cli_log *log, const char *bytes, size_t len)
{
	struct pollfd room = { .fd = log->fd, .events = POLLOUT };

	if (log->waits && (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT)))
		return false;
	ssize_t put = log->is_socket ? send(log->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL)
				     : write(log->fd, bytes, len);

	return put == (ssize_t)len;
}

static bool put_line(const struct vt_cli_log *log, const char *message)
{
	static const char end[] = "...\n";
	struct vt_str line;

	vt_str_init(&line);
	vt_str_add(&line, "vitro: ");
	vt_str_show(&line, message, strlen(message));
	vt_str_add(&line, "\n");
	if (line.len > PIPE_BUF) {
		line.len = vt_utf8_cut(line.text, line.len, PIPE_BUF - strlen(end));
		vt_str_add(&line, end);
	}
	bool done = vt_str_ok(&line) && put(log, line.text, line.len);

	vt_str_done(&line);
	return done;
}

static bool tell_dropped(struct vt_cli_log *log)
{
	char text[96];

	if (!log->dropped)
		return true;
	(void)snprintf(text, sizeof(text),
		       "%" PRIu64 " lines before this one had no room here, and were dropped",
		       log->dropped); /* fits */
	if (!put_line(log, text))
		return false;
	log->dropped = 0;
	return true;
}

void vt_cli_log_line(struct vt_cli_log *log, const char *message)
{
	if (!tell_dropped(log) || !put_line(log, message))
		log->dropped++;
}

void vt_cli_log_err(struct vt_cli_log *log, const struct vt_err *err)
{
	struct vt_verdict verdict;

	vt_verdict_fail(&verdict, err);
	vt_cli_log_line(log, verdict.message);
}

static void log_line(void *log, const char *line)
{
	vt_cli_log_line(log, line);
}

void vt_cli_log_lines(struct vt_cli_log *log, const char *text)
{
	vt_cli_each_line(text, log_line, log);
}

void vt_cli_log_done(struct vt_cli_log *log)
{
	(void)tell_dropped(log); /* or nobody is told */
	vt_fd_close(&log->own_fd);
}
