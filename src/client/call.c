/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call's life: checked, sent, over, told. It is sent only where its arguments fit the tool's
 * schema, so that no cell is used for what cannot work; and however it ends, it is here that its
 * one result is made.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "base/decimal.h"
#include "base/json.h"
#include "base/utf8.h"
#include "client/error.h"
#include "client/host_private.h"

static struct vt_target *target_of(const struct vt_call *call)
{
	return call->tool->owner;
}

void vt_call_free(struct vt_call *call)
{
	vitro_result_free(call->result);
	vt_str_done(&call->logs);
	free(call->traceback);
	vt_tool_unref(call->tool);
	free(call);
}

/* ---- the end -------------------------------------------------------------------------------- */

void vt_call_end(vitro_toolhost *host, struct vt_call *call, struct vitro_result *parts)
{
	if (call->listed)
		vt_calls_remove(&host->calls, call);
	vt_ask_drop_all(host, call);
	parts->call_id = call->id;
	parts->logs = (struct vt_bytes){ call->logs.text, call->logs.len };
	parts->traceback = call->traceback;
	call->result = vt_result_new(parts);
	if (call->waited)
		return;
	if (call->question) {
		vt_ask_answer(call->question, call->result);
		vt_call_free(call);
		return;
	}
	call->next = NULL;
	*host->ready_end = call;
	host->ready_end = &call->next;
	host->ready_count++;
	vt_dispatch_later(host);
}

static void end_failed(vitro_toolhost *host, struct vt_call *call, enum vitro_status status,
		       const char *type, const char *message)
{
	struct vitro_result parts = vt_result_failed(status, message);

	if (type)
		parts.type = type;
	vt_call_end(host, call, &parts);
}

static void end_lost(vitro_toolhost *host, struct vt_call *call)
{
	char text[sizeof(host->peer.why.what) + 64];

	if (host->peer.why.num == ESHUTDOWN) { /* it said so */
		end_failed(host, call, VITRO_REFUSED, "Refused", host->peer.why.what);
		return;
	}
	(void)snprintf(text, sizeof(text), "the supervisor was lost: %s", host->peer.why.what);
	end_failed(host, call, VITRO_LOST, NULL, text);
}

void vt_call_end_all(vitro_toolhost *host)
{
	while (host->calls.first)
		end_lost(host, host->calls.first);
}

int vt_call_tell(vitro_toolhost *host)
{
	int told = 0;

	/* What its call-backs bring about is for the next time: they may begin calls for ever. */
	for (size_t left = host->ready_count; left > 0 && host->ready; left--, told++) {
		struct vt_call *call = host->ready;
		vitro_result *result = call->result;
		vitro_done *done = call->done;
		void *user = call->user;

		host->ready = call->next;
		if (!host->ready)
			host->ready_end = &host->ready;
		host->ready_count--;
		call->result = NULL;
		vt_call_free(call);
		if (done)
			done(user, result);
		else
			vitro_result_free(result);
	}
	return told;
}

/* ---- the beginning -------------------------------------------------------------------------- */

static int check_id(const char *id, struct vt_err *err)
{
	size_t len = strlen(id);

	if (len == 0 || len >= VT_CALL_ID)
		return vt_fail(err, VT_STEP_WIRE, EINVAL, "call_id must have 1 to %d bytes",
			       VT_CALL_ID - 1);
	if (!vt_utf8_is_valid(id, len))
		return vt_fail(err, VT_STEP_WIRE, EINVAL, "call_id is not UTF-8");
	for (const char *at = id; *at; at++)
		if ((unsigned char)*at < ' ' || *at == '\x7f')
			return vt_fail(err, VT_STEP_WIRE, EINVAL,
				       "call_id has a control character in it");
	return 0;
}

/* Its id: the request's, or, where that has none or one that is no good, one that no other call
 * has. */
static int name_call(vitro_toolhost *host, struct vt_call *call, const char *id, struct vt_err *err)
{
	int status = id ? check_id(id, err) : 0;

	if (id && status == 0) {
		memcpy(call->id, id, strlen(id) + 1);
		return vt_calls_find_id(&host->calls, id)
			       ? vt_fail(err, VT_STEP_WIRE, EEXIST,
					 "a call of the id '%s' is under way", id)
			       : 0;
	}
	call->id[0] = 'c';
	call->id[1 + vt_decimal(call->id + 1, call->number)] = '\0';
	for (unsigned i = 1; vt_calls_find_id(&host->calls, call->id); i++)
		(void)snprintf(call->id, sizeof(call->id), "c%" PRIu64 ".%u", call->number, i);
	return status;
}

/* The body of a command's call: its words, each with its NUL, and then its standard input. */
static void add_body(struct vt_str *body, char **argv, const char *input, size_t len)
{
	for (; *argv; argv++)
		vt_str_addn(body, *argv, strlen(*argv) + 1);
	vt_str_addn(body, input, len);
}

static struct vt_str *begin_head(vitro_toolhost *host, const struct vt_call *call, int64_t wall_ms)
{
	const struct vt_target *target = target_of(call);
	const char *name = target->symbol ? target->symbol : call->tool->name;
	struct vt_str *head = vt_peer_begin(&host->peer, target->remote ? "tool" : "call");

	vt_head_add_int(head, "call", (int64_t)call->number);
	if (target->pool)
		vt_head_add_int(head, "pool", target->pool->number);
	vt_head_add(head, "tool", name);
	vt_head_add(head, "id", call->id);
	if (wall_ms > 0)
		vt_head_add_int(head, "wall_ms", wall_ms);
	if (call->on_output)
		vt_head_add_flag(head, "stream", true);
	if (call->question)
		vt_head_add_flag(head, "within", true);
	return head;
}

static int send_command(vitro_toolhost *host, const struct vt_call *call,
			const struct vitro_request *request, const json_t *arguments,
			struct vt_err *err)
{
	const struct vt_target *target = target_of(call);
	char **argv, *input = NULL;
	size_t input_len = strlen(request->arguments);
	struct vt_err inner;
	int status = vt_template_expand(target->command, arguments, &argv, &inner);

	if (status < 0)
		return vt_fail(err, inner.step, inner.num, "%s: %s", call->tool->name, inner.what);
	if (target->input)
		status = vt_template_expand_input(target->input, arguments, &input, &input_len,
						  &inner);
	if (status < 0) {
		free(argv);
		return vt_fail(err, inner.step, inner.num, "%s: %s", call->tool->name, inner.what);
	}
	struct vt_str body;

	vt_str_init(&body);
	add_body(&body, argv, input ? input : request->arguments, input_len);
	free(input);
	free(argv);
	if (vt_str_ok(&body)) {
		struct vt_str *head = begin_head(host, call, request->wall_ms);

		vt_head_add_int(head, "stdin", (int64_t)input_len);
		status = vt_peer_send(&host->peer, body.text, body.len, err);
	} else {
		status = vt_error_no_memory(err);
	}
	vt_str_done(&body);
	return status;
}

/* Checks all there is to check, and sends it. */
static int send_call(vitro_toolhost *host, struct vt_call *call,
		     const struct vitro_request *request, struct vt_err *err)
{
	AUTO_JSON json_t *arguments = NULL;
	size_t len = strlen(request->arguments);
	int status = vt_tool_check(call->tool, request->arguments, len,
				   target_of(call)->command ? &arguments : NULL, err);

	if (status < 0)
		return status;
	if (vt_calls_add(&host->calls, call) < 0)
		return vt_fail(err, VT_STEP_WIRE, ENOMEM, "out of memory");
	if (target_of(call)->command)
		return send_command(host, call, request, arguments, err);
	begin_head(host, call, request->wall_ms);
	return vt_peer_send(&host->peer, request->arguments, len, err);
}

static int check_request(const struct vitro_request *request, struct vt_err *err)
{
	if (request->wall_ms < 0)
		return vt_fail(err, VT_STEP_WIRE, EINVAL, "wall_ms must not be negative");
	if (!VT_IS_CLEAR(request->reserved))
		return vt_fail(err, VT_STEP_WIRE, EINVAL, "reserved must be 0 in a request");
	return 0;
}

static void refuse_unknown(vitro_toolhost *host, struct vt_call *call, const char *name)
{
	char text[2 * VT_TOOL_MAX_NAME + 96], shown[VT_TOOL_MAX_NAME];
	struct vt_closest closest;

	vt_closest_init(&closest, name);
	for (size_t i = 0; i < vt_toolset_count(host->tools); i++) {
		const char *known = vt_toolset_at(host->tools, i)->name;

		vt_closest_try(&closest, known, known);
	}
	vt_utf8_show_text(shown, sizeof(shown), name, strlen(name));
	(void)snprintf(text, sizeof(text), "there is no tool '%s'%s%s%s", shown,
		       closest.best ? "; did you mean '" : "", closest.best ? closest.best : "",
		       closest.best ? "'?" : ""); /* fits */
	end_failed(host, call, VITRO_REFUSED, "NoSuchTool", text);
}

/* It ends at once where it cannot be begun. */
static void begin(vitro_toolhost *host, struct vt_call *call, const struct vitro_request *request)
{
	struct vt_err err = { 0 };

	if (name_call(host, call, request->call_id, &err) < 0 || check_request(request, &err) < 0) {
		end_failed(host, call, VITRO_REFUSED, "InvalidRequest", err.what);
	} else if (!call->tool) {
		refuse_unknown(host, call, request->tool ? request->tool : "");
	} else if (!host->peer.lost && send_call(host, call, request, &err) == 0) {
		return;
	} else if (host->peer.lost) {
		end_lost(host, call);
	} else if (err.num == ENOMEM) {
		end_failed(host, call, VITRO_LOST, NULL, err.what);
	} else {
		end_failed(host, call, VITRO_REFUSED, "InvalidArguments", err.what);
	}
}

struct vt_call *vt_call_begin(vitro_toolhost *host, const struct vitro_request *request,
			      vitro_done *done, bool waited, vitro_question *question)
{
	/* None is one without a tool. */
	struct vitro_request whole = request ? *request : (struct vitro_request){ 0 };
	struct vt_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	struct vt_tool *tool = whole.tool ? vt_toolset_find(host->tools, whole.tool) : NULL;

	whole.arguments = whole.arguments ? whole.arguments : "{}";
	*call = (struct vt_call){
		.number = ++host->last_call,
		.tool = tool ? vt_tool_ref(tool) : NULL,
		.user = whole.user,
		.on_output = whole.on_output,
		.on_log = whole.on_log,
		.on_call = whole.on_call,
		.done = done,
		.waited = waited,
		.question = question,
		.depth = question ? question->asker->depth + 1 : 0,
	};
	vt_str_init(&call->logs);
	if (question)
		question->call = call;
	begin(host, call, &whole);
	return call;
}

int vitro_submit(vitro_toolhost *host, const struct vitro_request *request, vitro_done *done)
{
	return vt_call_begin(host, request, done, false, NULL) ? 0 : -ENOMEM;
}

/* ---- in between ----------------------------------------------------------------------------- */

void vt_call_cancel(vitro_toolhost *host, struct vt_call *call)
{
	struct vt_err err;

	if (call->cancelled)
		return;
	call->cancelled = true;
	struct vt_str *head = vt_peer_begin(&host->peer, "cancel");

	vt_head_add_int(head, "call", (int64_t)call->number);
	/* Where it cannot be sent, the supervisor is lost, and the call ends of that. */
	(void)vt_peer_send(&host->peer, NULL, 0, &err);
}

int vitro_cancel(vitro_toolhost *host, const char *call_id)
{
	struct vt_call *call = call_id ? vt_calls_find_id(&host->calls, call_id) : NULL;

	if (!call)
		return call_id ? -ENOENT : -EINVAL;
	vt_call_cancel(host, call);
	return 0;
}

void vitro_cancel_all(vitro_toolhost *host)
{
	for (struct vt_call *call = host->calls.first; call; call = call->next)
		vt_call_cancel(host, call);
}

int vitro_is_running(vitro_toolhost *host, const char *call_id)
{
	return call_id ? !!vt_calls_find_id(&host->calls, call_id) : !!host->calls.first;
}
