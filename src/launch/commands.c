/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/pass.h"
#include "launch/cell.h"
#include "launch/talk.h"
#include "launch/zygote.h"

enum { CONTROL_FD = 3, BODY_MAX = 8 << 20 };

/* The words after the first text, which is the program's path. NULL: there are none. */
static char **split(char *text, size_t len)
{
	size_t count = 0;
	char **argv;

	for (size_t i = 0; i < len; i++)
		count += !text[i];
	/* What is behind the last NUL is no word: there is one at text[len] in any case. */
	argv = count < 2 ? NULL : calloc(count, sizeof(char *));
	for (size_t i = 0; argv && i + 1 < count; i++) {
		text += strlen(text) + 1;
		argv[i] = text;
	}
	return argv;
}

/* Returns only if it cannot be executed: why. */
static int execute(const struct vt_talk *talk, int input)
{
	char **argv = split(talk->body, talk->body_len);

	if (!argv)
		return ENOMEM;
	if (dup2(input, STDIN_FILENO) < 0)
		return errno;
	(void)execve(talk->body, argv, environ); /* returns only to fail */
	return errno;
}

static _Noreturn void occupy(void)
{
	struct vt_note note;
	struct vt_talk_in in;
	struct vt_talk talk;
	struct vt_err err;
	size_t at = 0;
	int input;

	vt_talk_in_init(&in, BODY_MAX);
	if (vt_zygote_park(&err) < 0 ||
	    vt_pass_take(VT_OCCUPANT_CALL_FD, &note, sizeof(note), &input, 1, 0, &err) != 1 ||
	    note.kind != VT_NOTE_INPUT || input < 0 ||
	    vt_talk_next(&in, VT_OCCUPANT_CALL_FD, 0, &talk, &err) != 1)
		_exit(125);
	const struct vt_talk unable = { .kind = VT_TALK_UNABLE,
					.id = (uint64_t)execute(&talk, input) };

	(void)vt_talk_send(VT_OCCUPANT_CALL_FD, 0, &unable, &at, &err); /* we end, heard or not */
	_exit(126);
}

/* What a zygote is told stands behind the plan's own variables, and is nobody else's business. */
static void cut_environment(const struct vt_plan *plan)
{
	size_t count = 0;

	while (plan->envp[count] && environ[count])
		count++;
	environ[count] = NULL;
}

_Noreturn void vt_commands_run(void)
{
	struct vt_zygote zygote;
	struct vt_err err;

	if (vt_zygote_join(&zygote, CONTROL_FD, &err) < 0)
		_exit(err.num == EPIPE ? 0 : 1);
	cut_environment(zygote.plan);
	if (vt_zygote_serve(&zygote, &err) < 0)
		_exit(err.num == EPIPE ? 0 : 1);
	occupy();
}
