/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

enum { MAX_OUTPUT = 1 << 20 };

void die(const char *fmt, ...)
{
	va_list args;

	fputs("\nvitro-bench: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

void *need(void *memory)
{
	if (!memory)
		die("out of memory");
	return memory;
}

pid_t spawn(char *const *argv, int out_fd, int err_fd)
{
	static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
	char *const environment[] = { path, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int num = posix_spawn_file_actions_init(&actions);

	if (!num)
		num = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (!num)
		num = posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
	if (!num)
		num = posix_spawn_file_actions_adddup2(&actions, err_fd, 2);
	if (!num)
		num = posix_spawn(&pid, argv[0], &actions, NULL, argv, environment);
	(void)posix_spawn_file_actions_destroy(&actions); /* never fails */
	if (num)
		die("start %s: %s", argv[0], strerror(num));
	return pid;
}

/* Else it would hold ends of others' sockets, which then never end. */
void keep_only(int *fd)
{
	if (dup2(*fd, 3) < 0 || syscall(SYS_close_range, 4U, ~0U, 0) < 0)
		_exit(125);
	*fd = 3;
}

bool split_off(pid_t *ret_pid, int *ret_fd)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		die("make a socket: %s", strerror(errno));
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(125);
	if (pid == 0)
		keep_only(&pair[1]);
	else
		(void)close(pair[1]); /* the child's */
	*ret_pid = pid;
	*ret_fd = pair[pid == 0 ? 1 : 0];
	return pid == 0;
}

int await(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("wait for a process: %s", strerror(errno));
	return status;
}

char *output_of(char *const *argv)
{
	char *text = need(malloc(MAX_OUTPUT));
	size_t len = 0;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		die("make a pipe: %s", strerror(errno));
	pid_t pid = spawn(argv, ends[1], 2);

	(void)close(ends[1]); /* the child has its own */
	for (;;) {
		ssize_t got = read(ends[0], text + len, MAX_OUTPUT - 1 - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		len += (size_t)got;
	}
	(void)close(ends[0]); /* only read from */
	text[len] = '\0';
	int status = await(pid);

	if (status != 0)
		die("%s failed (wait status %#x), and printed: %s", argv[0], (unsigned)status,
		    text);
	return text;
}

void words_add(struct words *words, const char *word)
{
	words->items = need(realloc(words->items, (words->count + 2) * sizeof(*words->items)));
	words->items[words->count++] = need(strdup(word));
	words->items[words->count] = NULL;
}

void words_addf(struct words *words, const char *fmt, ...)
{
	va_list args;
	char *word;

	va_start(args, fmt);
	if (vasprintf(&word, fmt, args) < 0)
		die("out of memory");
	va_end(args);
	words_add(words, word);
	free(word);
}
