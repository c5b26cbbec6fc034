/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool that runs may call others. What it asks for is untrusted: the client looks whether it may,
 * and makes the call itself, as it would for anybody; what the tool host does not have, the program
 * may answer. How many questions a call has, and how deep calls call, is bounded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_scan.h"
#include "client/error.h"
#include "client/host_private.h"

static void send_answer(vitro_toolhost *host, const struct vt_call *asker, int64_t number, bool ok,
			const char *text, size_t len)
{
	struct vt_str *head = vt_peer_begin(&host->peer, "answer");
	struct vt_err err;

	vt_head_add_int(head, "call", (int64_t)asker->number);
	vt_head_add_int(head, "ask", number);
	vt_head_add_flag(head, "ok", ok);
	if (vt_peer_send(&host->peer, text, len, &err) == -EMSGSIZE)
		send_answer(host, asker, number, false, err.what, strlen(err.what));
}

static void unlink_question(vitro_question *question)
{
	*question->before = question->next;
	if (question->next)
		question->next->before = question->before;
	question->asker->ask_count--;
	question->asker = NULL;
}

/* The last that is heard of it. */
static void answer(vitro_question *question, bool ok, const char *text, size_t len)
{
	if (question->asker) {
		send_answer(question->host, question->asker, question->number, ok, text, len);
		unlink_question(question);
	}
	free(question);
}

void vitro_question_answer(vitro_question *question, const char *value, const char *error)
{
	if (!question)
		return;
	if (value && vt_json_is_valid(value, strlen(value)))
		answer(question, true, value, strlen(value));
	else if (value)
		answer(question, false, "the answer is not JSON", strlen("the answer is not JSON"));
	else
		answer(question, false, error ? error : "no reason was given",
		       strlen(error ? error : "no reason was given"));
}

void vt_ask_answer(vitro_question *question, const vitro_result *result)
{
	if (result->status == VITRO_OK)
		answer(question, true, result->value.at, result->value.len);
	else
		answer(question, false, result->message, strlen(result->message));
}

/* The program's call-back, and what it stands for, may be gone with the call that brought it in. */
static void silence(struct vt_call *call)
{
	call->on_call = NULL;
	for (vitro_question *question = call->asks; question; question = question->next)
		if (question->call)
			silence(question->call);
}

/* Calls that were made for it are ended; questions to the program stay the program's. */
void vt_ask_drop_all(vitro_toolhost *host, struct vt_call *call)
{
	while (call->asks) {
		vitro_question *question = call->asks;

		unlink_question(question);
		if (question->call) {
			silence(question->call);
			vt_call_cancel(host, question->call);
		}
	}
}

static bool may_call(const struct vt_call *call, const char *name)
{
	const struct vt_target *target = call->tool->owner;

	for (char **at = target->may_call; at && *at; at++)
		if (strcmp(*at, "*") == 0 || strcmp(*at, name) == 0)
			return true;
	return false;
}

/* Why there is no answer but this one; NULL: there is. */
static const char *object_to(vitro_toolhost *host, const struct vt_call *call, const char *name,
			     const struct vt_message *message)
{
	bool known = vt_toolset_find(host->tools, name);

	if (!known && !call->on_call)
		return "there is no such tool";
	if (known && !may_call(call, name))
		return "this tool may not call that one";
	if (call->ask_count >= VT_CALL_ASKS)
		return "too many calls at once";
	if (known && call->depth >= VT_CALL_DEPTH)
		return "calls within calls are too deep";
	if (!vt_json_is_valid(message->body, message->body_len))
		return "the arguments are not JSON";
	return NULL;
}

static vitro_question *question_new(vitro_toolhost *host, struct vt_call *call, int64_t number)
{
	vitro_question *question = calloc(1, sizeof(*question));

	if (!question)
		return NULL;
	*question = (vitro_question){
		.host = host,
		.asker = call,
		.number = number,
		.next = call->asks,
		.before = &call->asks,
	};
	if (call->asks)
		call->asks->before = &question->next;
	call->asks = question;
	call->ask_count++;
	return question;
}

/* The tool host's own tool, for a call of its own; or the program is asked. */
static void pursue(vitro_toolhost *host, vitro_question *question, const char *name,
		   const char *arguments)
{
	struct vt_call *asker = question->asker;
	struct vitro_request request = {
		.tool = name,
		.arguments = arguments,
		.user = asker->user,
		.on_call = asker->on_call,
	};

	if (!vt_toolset_find(host->tools, name))
		asker->on_call(asker->user, question, name, arguments);
	else if (!vt_call_begin(host, &request, NULL, false, question))
		answer(question, false, "out of memory", strlen("out of memory"));
}

int vt_ask_take(vitro_toolhost *host, struct vt_call *call, const struct vt_message *message,
		struct vt_err *err)
{
	int64_t number = vt_head_int(&message->head, "ask", -1);
	const char *name = vt_head_text(&message->head, "tool", NULL);

	if (number < 0 || !name)
		return vt_fail(err, VT_STEP_WIRE, EBADMSG, "a question lacks its parts");
	const char *objection = object_to(host, call, name, message);

	if (objection) {
		send_answer(host, call, number, false, objection, strlen(objection));
		return 0;
	}
	/* The message may be gone when a call-back reads it: it can make others come. */
	char *tool = strdup(name), *arguments = strndup(message->body, message->body_len);
	vitro_question *question = tool && arguments ? question_new(host, call, number) : NULL;

	if (question)
		pursue(host, question, tool, arguments);
	else
		send_answer(host, call, number, false, "out of memory", strlen("out of memory"));
	free(tool);
	free(arguments);
	return 0;
}
