/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitro-escape NAME [ARGS]: tries one forbidden act. vitro-escape --list prints them all, as
 * NAME<tab>MECHANISM<tab>SENTENCE.
 */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const struct act *const themes[] = { file_acts,   setuid_acts, mount_acts, process_acts,
					    kernel_acts, net_acts,    limit_acts, look_acts,
					    call_acts,   mode_acts,   road_acts };

enum { THEMES = sizeof(themes) / sizeof(themes[0]) };

static int say(int code, const char *head, const char *fmt, va_list args)
{
	printf("%s", head);
	vprintf(fmt, args);
	printf("\n");
	return fflush(stdout) ? 3 : code;
}

int reached(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int code = say(0, "reached: ", fmt, args);
	va_end(args);
	return code;
}

int denied(int err, const char *fmt, ...)
{
	char head[64];
	const char *name = strerrorname_np(err);
	snprintf(head, sizeof(head), "denied: %s ", err && name ? name : "-");

	va_list args;
	va_start(args, fmt);
	int code = say(1, head, fmt, args);
	va_end(args);
	return code;
}

int unclear(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int code = say(2, "unclear: ", fmt, args);
	va_end(args);
	return code;
}

int broken(const char *fmt, ...)
{
	char head[64];
	snprintf(head, sizeof(head), "unclear: %s ", strerrorname_np(errno));

	va_list args;
	va_start(args, fmt);
	int code = say(2, head, fmt, args);
	va_end(args);
	return code;
}

int gated(int err, const char *what)
{
	if (err == EPERM || err == EACCES || err == ENOSYS)
		return denied(err, "%s", what);
	return unclear("%s: %s comes from behind the door", what, strerrorname_np(err));
}

int take(int dir, const char *path)
{
	char text[33] = "";
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return denied(errno, "open %s", path);
	ssize_t got = read(fd, text, sizeof(text) - 1);
	int err = errno;
	close(fd);
	if (got < 0)
		return denied(err, "read %s", path);
	for (ssize_t i = 0; i < got; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '.';
	return reached("%s reads \"%s\"", path, text);
}

int open_any(const char *const *paths, int flags)
{
	int err = ENOENT;
	for (; *paths; paths++) {
		struct stat st;
		int fd = open(*paths, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0) {
			err = errno == ENOENT ? err : errno;
			continue;
		}
		/* Containers cover files with it. */
		bool null = fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
			    st.st_rdev == makedev(1, 3);
		close(fd);
		if (!null)
			return reached("opened %s", *paths);
		err = EACCES;
	}
	return denied(err, "none could be opened");
}

const char *join(const char *dir, const char *name)
{
	static char buffers[4][PATH_MAX];
	static unsigned turn;
	char *buffer = buffers[turn++ % 4];
	snprintf(buffer, PATH_MAX, "%s/%s", dir, name);
	return buffer;
}

long number(char **argv, int n)
{
	return strtol(argv[n], NULL, 0);
}

static int list(void)
{
	for (int t = 0; t < THEMES; t++)
		for (const struct act *act = themes[t]; act->name; act++)
			printf("%s\t%s\t%s\n", act->name, act->mechanism, act->sentence);
	return 0;
}

const struct act *find_act(const char *name)
{
	for (int t = 0; t < THEMES; t++)
		for (const struct act *act = themes[t]; act->name; act++)
			if (strcmp(act->name, name) == 0)
				return act;
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc >= 2 && strcmp(argv[1], "--list") == 0)
		return list();
	const struct act *act = argc >= 2 ? find_act(argv[1]) : NULL;
	if (act)
		return act->attempt(argc - 1, argv + 1);
	fprintf(stderr, "usage: vitro-escape --list | NAME [ARGS]\n");
	return 64;
}
