/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "watch/screen.h"
#include "watch/verdict.h"

int vt_cli_write(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int vt_cli_write_safe(int fd, const char *bytes, size_t len, bool raw)
{
	struct vt_screen screen = { 0 };
	struct vt_str safe;

	if (raw || !isatty(fd))
		return vt_cli_write(fd, bytes, len);
	vt_str_init(&safe);
	vt_screen_add(&screen, bytes, len, &safe);
	vt_screen_end(&screen, &safe);
	int r = vt_str_ok(&safe) ? vt_cli_write(fd, safe.text, safe.len) : -ENOMEM;

	vt_str_done(&safe);
	return r;
}

const char *vt_cli_caller(const struct vt_host *host)
{
	return host->privileged ? "root"
	       : host->uid == 0 ? "root without some of its capabilities"
				: "an ordinary user";
}

int vt_cli_report(const struct vt_str *text, struct vt_err *err)
{
	struct vt_str safe;
	int r = 0;

	vt_str_init(&safe);
	for (size_t at = 0; at < text->len;) {
		const char *end = memchr(text->text + at, '\n', text->len - at);
		size_t len = end ? (size_t)(end - text->text) - at : text->len - at;

		vt_str_show(&safe, text->text + at, len);
		vt_str_add(&safe, end ? "\n" : "");
		at += len + (end ? 1 : 0);
	}
	if (!vt_str_ok(text) || !vt_str_ok(&safe))
		r = -ENOMEM;
	if (r == 0)
		r = vt_cli_write(STDOUT_FILENO, safe.text, safe.len);
	vt_str_done(&safe);
	return r < 0 ? vt_fail(err, VT_STEP_OUTPUT, -r, "print the report") : 0;
}

void vt_cli_each_line(const char *text, void (*tell)(void *user, const char *line), void *user)
{
	struct vt_str line;

	vt_str_init(&line);
	while (*text) {
		size_t len = strcspn(text, "\n");

		vt_str_clear(&line);
		vt_str_addn(&line, text, len);
		tell(user, line.text);
		text += len + (text[len] == '\n');
	}
	vt_str_done(&line);
}

/* Messages quote what users and cells wrote: no control character of theirs reaches a terminal. */
void vt_cli_complain(const char *message)
{
	struct vt_str line;

	vt_str_init(&line);
	vt_str_add(&line, "vitro: ");
	vt_str_show(&line, message, strlen(message));
	vt_str_add(&line, "\n");
	(void)vt_cli_write(STDERR_FILENO, line.text, line.len); /* there is nobody else to tell */
	vt_str_done(&line);
}

static void complain(void *user, const char *line)
{
	(void)user;
	vt_cli_complain(line);
}

void vt_cli_complain_lines(const char *text)
{
	vt_cli_each_line(text, complain, NULL);
}

void vt_cli_complain_err(const struct vt_err *err)
{
	struct vt_verdict verdict;

	vt_verdict_fail(&verdict, err);
	vt_cli_complain(verdict.message);
}
