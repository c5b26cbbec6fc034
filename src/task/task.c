/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a C tool: the program, started afresh, becomes a zygote in vitro_host_main(), and
 * each fork of it an occupant that waits for its one call. Part of libvitro, and of vitro-object.
 * Everything here that an occupant runs is as untrusted as the tool itself: what matters is what
 * the supervisor believes of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vitro.h>

#include "launch/talk.h"
#include "launch/zygote.h"
#include "task/task.h"

#define ZYGOTE_VARIABLE "VITRO_ZYGOTE"

/* Of a call that was submitted, in their order, until it is awaited. */
struct answer {
	struct answer *next;
	uint64_t ticket;
	bool come, failed;
	char *text; /* of one that has come; NULL: there was no memory for it */
};

struct vitro_task {
	const char *call_id, *arguments;
	size_t arguments_len;
	size_t ask_max; /* bytes of arguments that the supervisor takes */
	struct vt_talk_in in;
	uint64_t tickets;
	struct answer *answers;
	bool over; /* a result was sent */
};

/* ---- a call -------------------------------------------------------------------------------- */

const char *vitro_task_arguments(const vitro_task *task, size_t *ret_len)
{
	if (ret_len)
		*ret_len = task->arguments_len;
	return task->arguments;
}

const char *vitro_task_call_id(const vitro_task *task)
{
	return task->call_id;
}

static int say(uint32_t kind, uint64_t id, const char *name, const char *body, size_t len)
{
	const struct vt_talk talk = { .kind = kind,
				      .id = id,
				      .name = (char *)name,
				      .name_len = strlen(name),
				      .body = (char *)body,
				      .body_len = len };
	struct vt_err err;
	size_t at = 0;

	int r = vt_talk_send(VT_OCCUPANT_CALL_FD, 0, &talk, &at, &err);

	return r < 0 ? r : 0;
}

/* What was printed before the result belongs to it. */
static int give(vitro_task *task, uint32_t kind, const char *name, const char *body, size_t len)
{
	if (task->over)
		return -EALREADY;
	if (!name || (!body && len))
		return -EINVAL;
	if (strlen(name) > VT_TALK_NAME_MAX)
		return -ENAMETOOLONG;
	(void)fflush(NULL); /* what cannot be written has no reader */
	int r = say(kind, 0, name, body, len);

	task->over = r == 0;
	return r;
}

int vitro_task_return_bytes(vitro_task *task, const char *json, size_t len)
{
	return give(task, VT_TALK_RESULT, "", json, len);
}

int vitro_task_return(vitro_task *task, const char *json)
{
	return json ? vitro_task_return_bytes(task, json, strlen(json)) : -EINVAL;
}

int vitro_task_fail(vitro_task *task, const char *type, const char *message)
{
	return message ? give(task, VT_TALK_ERROR, type, message, strlen(message)) : -EINVAL;
}

int vitro_task_log(vitro_task *task, const char *level, const char *text)
{
	(void)task;
	if (!level || !text)
		return -EINVAL;
	size_t len = strlen(text);

	if (strlen(level) > VT_TALK_NAME_MAX)
		return -ENAMETOOLONG;
	return say(VT_TALK_LOG, 0, level, text, len < VT_TALK_LOG_MAX ? len : VT_TALK_LOG_MAX);
}

int vitro_task_submit(vitro_task *task, const char *tool, const char *arguments,
		      uint64_t *ret_ticket)
{
	if (!tool || !ret_ticket)
		return -EINVAL;
	size_t len = arguments ? strlen(arguments) : 2;

	if (len > task->ask_max)
		return -EMSGSIZE;
	struct answer *answer = calloc(1, sizeof(*answer)), **at = &task->answers;
	uint64_t ticket = task->tickets + 1;

	if (!answer)
		return -ENOMEM;
	int r = strlen(tool) > VT_TALK_NAME_MAX
			? -ENAMETOOLONG
			: say(VT_TALK_ASK, ticket, tool, arguments ? arguments : "{}", len);

	if (r < 0) {
		free(answer);
		return r;
	}
	task->tickets = answer->ticket = *ret_ticket = ticket;
	while (*at)
		at = &(*at)->next;
	*at = answer;
	return 0;
}

/* The one of that ticket; 0: one that has come, or else any. NULL: there is none. */
static struct answer **find_answer(vitro_task *task, uint64_t ticket)
{
	struct answer **found = NULL;

	for (struct answer **at = &task->answers; *at; at = &(*at)->next) {
		if (ticket && (*at)->ticket != ticket)
			continue;
		if (!found || ((*at)->come && !(*found)->come))
			found = at;
	}
	return found;
}

/* Takes the next answer to come. */
static int hear_answer(vitro_task *task)
{
	struct vt_talk talk;
	struct vt_err err;
	int r = vt_talk_next(&task->in, VT_OCCUPANT_CALL_FD, 0, &talk, &err);

	if (r < 0)
		return r;
	struct answer **at = talk.kind == VT_TALK_ANSWER && talk.id ? find_answer(task, talk.id)
								    : NULL;

	if (!at || (*at)->come)
		return -EBADMSG;
	(*at)->come = true;
	(*at)->failed = talk.flags & VT_TALK_FAILED;
	(*at)->text = strdup(talk.body);
	return 0;
}

int vitro_task_await(vitro_task *task, uint64_t ticket, uint64_t *ret_ticket, char **ret_value)
{
	struct answer **at;

	if (!ret_value)
		return -EINVAL;
	while ((at = find_answer(task, ticket)) && !(*at)->come) {
		int r = hear_answer(task);

		if (r < 0)
			return r;
	}
	if (!at)
		return -ENOENT;
	struct answer *answer = *at;
	int r = !answer->text ? -ENOMEM : answer->failed ? -EREMOTEIO : 0;

	*at = answer->next;
	if (ret_ticket)
		*ret_ticket = answer->ticket;
	if (answer->text)
		*ret_value = answer->text;
	free(answer);
	return r;
}

int vitro_task_call(vitro_task *task, const char *tool, const char *arguments, char **ret_value)
{
	uint64_t ticket;
	int r = ret_value ? vitro_task_submit(task, tool, arguments, &ticket) : -EINVAL;

	return r < 0 ? r : vitro_task_await(task, ticket, NULL, ret_value);
}

/* ---- an occupant --------------------------------------------------------------------------- */

/* What most tools do with their arguments first. */
static void rehearse_libc(void)
{
	char text[256];
	int whole = 0;
	double real = 0;

	(void)snprintf(text, sizeof(text), "%d %g %s", 7, 0.5, "text");
	(void)sscanf(text, "%d %lg", &whole, &real);
	for (size_t size = 16; size <= 16384; size *= 4)
		free(malloc(size));
}

/*
 * Says to itself what a call would be, and answers. The pages that are written then are the
 * process's own by now, and not copied while a caller waits.
 */
static void rehearse(vitro_task *task)
{
	const struct vt_talk dummy = {
		.kind = VT_TALK_EXECUTE, .name = (char *)"", .body = (char *)"{}", .body_len = 2
	};
	struct vt_talk heard;
	struct vt_err err;
	size_t at = 0;
	int pair[2];

	/* One that cannot be had costs time, and nothing else. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	if (vt_talk_send(pair[0], 0, &dummy, &at, &err) == 1)
		(void)vt_talk_next(&task->in, pair[1], MSG_DONTWAIT, &heard, &err);
	(void)close(pair[0]);
	(void)close(pair[1]);
	(void)fflush(NULL);
	rehearse_libc();
}

static _Noreturn void occupy(const struct vt_task_tools *tools, size_t ask_max)
{
	vitro_task task = { .ask_max = ask_max };
	struct vt_talk talk;
	struct vt_err err;

	vt_talk_in_init(&task.in, SIZE_MAX / 4); /* the supervisor's bound is the one that counts */
	rehearse(&task);
	if (tools->touch)
		tools->touch(tools->user);
	if (vt_zygote_park(&err) < 0 ||
	    vt_talk_next(&task.in, VT_OCCUPANT_CALL_FD, 0, &talk, &err) != 1)
		_exit(125);
	vitro_function *function = tools->find(tools->user, talk.name, &err);
	size_t name_len = strlen(talk.name);

	task.call_id = name_len < talk.name_len ? talk.name + name_len + 1 : "";
	task.arguments = talk.body;
	task.arguments_len = talk.body_len;
	task.in.data = NULL; /* it is the task's now */
	task.in.cap = 0;
	if (function)
		(void)function(&task); /* what it has to say, it has said */
	else
		(void)vitro_task_fail(&task, err.num == ENOEXEC ? "CannotExecute" : "NotFound",
				      err.what);
	/* The end of a process takes longer than most calls: it is left to whoever kills the cell.
	 */
	while (task.over)
		(void)pause();
	(void)fflush(NULL);
	_exit(0);
}

int vt_task_control(void)
{
	const char *text = getenv(ZYGOTE_VARIABLE);
	int type = 0;
	socklen_t len = sizeof(type);

	if (!text || strcmp(text, "3") != 0 ||
	    getsockopt(3, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET)
		return -1;
	(void)unsetenv(ZYGOTE_VARIABLE); /* of a name without '=': cannot fail */
	(void)unsetenv("LD_BIND_NOW");
	return 3;
}

_Noreturn void vt_task_serve(struct vt_zygote *zygote, const struct vt_task_tools *tools)
{
	const size_t ask_max = (size_t)zygote->plan->result_bytes;
	struct vt_err err;

	if (vt_zygote_serve(zygote, &err) < 0)
		_exit(err.num == EPIPE ? 0 : 1);
	occupy(tools, ask_max);
}

/* In the table that the program has given. */
static vitro_function *find_own(void *user, const char *name, struct vt_err *err)
{
	for (const struct vitro_tool *tool = user; tool && tool->name; tool++)
		if (tool->function && strcmp(tool->name, name) == 0)
			return tool->function;
	(void)vt_fail(err, VT_STEP_COMMAND, ENOENT, "the program has no function for this tool");
	return NULL;
}

/* A fork has no page of the program's file before it touches it: names and code of the tools. */
static void touch_own(void *user)
{
	volatile unsigned char seen;

	for (const struct vitro_tool *tool = user; tool && tool->name; tool++) {
		seen = (unsigned char)tool->name[0];
		if (tool->function)
			seen = *(const unsigned char *)(uintptr_t)tool->function;
	}
	(void)seen;
}

void vitro_host_main(int argc, char **argv, const struct vitro_tool *tools)
{
	const struct vt_task_tools own = { .find = find_own,
					   .touch = touch_own,
					   .user = (void *)tools };
	struct vt_zygote zygote;
	struct vt_err err;
	int fd = vt_task_control();

	(void)argc;
	(void)argv;
	if (fd < 0)
		return;
	if (vt_zygote_join(&zygote, fd, &err) < 0)
		_exit(err.num == EPIPE ? 0 : 1);
	vt_task_serve(&zygote, &own);
}
