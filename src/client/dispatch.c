/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/json.h"
#include "base/json_scan.h"
#include "client/host_private.h"

/* How often one dispatch reads: what comes faster than that waits for the next. */
enum { MOST_READS = 64 };

/* ---- messages ------------------------------------------------------------------------------- */

/* A command's value is what it printed. *ret_made is to be freed. */
static void find_command_value(struct vitro_result *parts, char **ret_made)
{
	size_t len;

	if (parts->dropped_out > 0) {
		parts->status = VITRO_RESULT_LIMIT;
		parts->type = "ResultLimit";
		parts->message =
			"the command printed more than limits.stdout_kb, so its value is cut: "
			"raise that in the tool's policy";
	} else if (vt_command_value(parts->out.at, parts->out.len, ret_made, &len) == 0) {
		parts->value = (struct vt_bytes){ *ret_made, len };
		return;
	} else {
		parts->status = VITRO_LOST;
		parts->type = "Lost";
		parts->message = "out of memory";
	}
	parts->value = (struct vt_bytes){ 0 };
}

/* "exited with code 2: wc: x: No such file or directory". *ret_made is to be freed. */
static void add_last_words(struct vitro_result *parts, char **ret_made)
{
	AUTO_JSON json_t *words = vt_command_words(parts->err.at, parts->err.len);

	if (!words || !json_string_length(words) ||
	    asprintf(ret_made, "%s: %s", parts->message, json_string_value(words)) < 0) {
		*ret_made = NULL; /* without them it is as true */
		return;
	}
	parts->message = *ret_made;
}

/* The supervisor passes on what a cell gave. Whether that is JSON is looked at here. */
static void check_value(struct vitro_result *parts)
{
	if (vt_json_is_valid(parts->value.at, parts->value.len))
		return;
	parts->status = VITRO_NO_RESULT;
	parts->type = "NoResult";
	parts->message =
		"what the tool gave as its value is not JSON, or is nested deeper than 512 levels";
	parts->value = (struct vt_bytes){ 0 };
}

/* Of a server's own tool it is not known. */
static const char *isolation_of(const struct vt_target *target)
{
	return target->pool ? target->pool->capabilities : NULL;
}

static int take_done(vitro_toolhost *host, struct vt_call *call, const struct vt_message *message,
		     struct vt_err *err)
{
	const struct vt_target *target = call->tool->owner;
	struct vitro_result parts;
	char *made = NULL;
	int status = vt_result_read(message, &parts, err);

	if (status < 0)
		return status;
	parts.isolation = parts.came_to_cell ? isolation_of(target) : NULL;
	/* Of a server's own tool it shows: only a function has a value beside what it prints. */
	bool is_command = target->command ||
			  (target->remote && !(parts.status == VITRO_OK && parts.value.len));

	parts.is_printed = is_command;
	if (parts.status == VITRO_OK && is_command)
		find_command_value(&parts, &made);
	else if (parts.status == VITRO_OK)
		check_value(&parts);
	else if (is_command && parts.exit_code > 0 && parts.status == VITRO_ERROR)
		add_last_words(&parts, &made);
	if (parts.value.at && !made && parts.value.len >= VT_FRAMES_IDLE)
		parts.memory = vt_peer_take(&host->peer);
	vt_call_end(host, call, &parts);
	free(made);
	return 0;
}

static int take_output(struct vt_call *call, const struct vt_message *message, struct vt_err *err)
{
	int64_t stream = vt_head_int(&message->head, "stream", 0);
	size_t len = message->body_len;

	if (stream != VITRO_STDOUT && stream != VITRO_STDERR)
		return vt_fail(err, VT_STEP_WIRE, EBADMSG, "output of no stream");
	if (!call->on_output)
		return 0;
	/* A call-back may make other messages come, over this one. */
	char *bytes = malloc(len + 1);

	if (!bytes)
		return 0; /* the result has it too */
	memcpy(bytes, message->body, len);
	bytes[len] = '\0';
	call->on_output(call->user, (int)stream, bytes, len);
	free(bytes);
	return 0;
}

/* For the result, as long as there are not too many. A traceback is a part of the error. */
static void keep_log(struct vt_call *call, const char *level, const char *text)
{
	struct vt_str line;
	struct vt_err err;

	if (strcmp(level, "vitro.traceback") == 0) {
		free(call->traceback);
		call->traceback = strlen(text) <= VT_CALL_LOGS ? strdup(text) : NULL;
		return;
	}
	vt_str_init(&line);
	vt_head_begin(&line);
	vt_head_add(&line, "level", level);
	vt_head_add(&line, "text", text);
	if (vt_head_end(&line, &err) == 0 && call->logs.len + line.len <= VT_CALL_LOGS) {
		size_t before = call->logs.len;

		if (before)
			vt_str_add(&call->logs, ", ");
		vt_str_addn(&call->logs, line.text, line.len);
		if (!vt_str_ok(&call->logs)) {
			call->logs.len = before;
			call->logs.failed = false;
		}
	}
	vt_str_done(&line);
}

static int take_log(struct vt_call *call, const struct vt_message *message, struct vt_err *err)
{
	const char *level = vt_head_text(&message->head, "level", NULL);

	if (!level)
		return vt_fail(err, VT_STEP_WIRE, EBADMSG, "a log line has no level");
	/* From a cell: what is not UTF-8 is replaced. A line that there is no memory for is lost.
	 */
	AUTO_JSON json_t *text = vt_json_text(message->body, message->body_len);
	AUTO_JSON json_t *name = json_string(level);

	if (!text || !name)
		return 0;
	keep_log(call, level, json_string_value(text));
	if (call->on_log)
		call->on_log(call->user, json_string_value(name), json_string_value(text));
	return 0;
}

static int take_own_log(const vitro_toolhost *host, const struct vt_message *message)
{
	int64_t level = vt_head_int(&message->head, "level", LOG_INFO);
	AUTO_JSON json_t *text = vt_json_text(message->body, message->body_len);

	if (text)
		vt_host_log(host, level < LOG_EMERG || level > LOG_DEBUG ? LOG_INFO : (int)level,
			    json_string_value(text));
	return 0;
}

/* What a newer supervisor may say beside these is of no interest to this client. */
static bool is_known(const char *is)
{
	static const char *const kinds[] = { "done",  "output", "log",   "ask",
					     "count", "pool",   "hello", "tools" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i], is) == 0)
			return true;
	return false;
}

/* A negative value: the supervisor does not keep to the protocol. */
static int take(vitro_toolhost *host, const struct vt_message *message, struct vt_err *err)
{
	bool of_call = vt_head_find(&message->head, "call");
	int64_t number = vt_head_int(&message->head, "call", 0); /* no call has that */

	if (!is_known(message->is))
		return 0;
	if (strcmp(message->is, "log") == 0 && !of_call)
		return take_own_log(host, message);
	if (strcmp(message->is, "tools") == 0)
		return vt_remote_take(host, message, err);
	struct vt_call *call = vt_calls_find(&host->calls, (uint64_t)number);

	if (!call)
		return vt_fail(err, VT_STEP_WIRE, EBADMSG,
			       "a message of a call that is not under way");
	if (strcmp(message->is, "done") == 0)
		return take_done(host, call, message, err);
	if (strcmp(message->is, "output") == 0)
		return take_output(call, message, err);
	if (strcmp(message->is, "log") == 0)
		return take_log(call, message, err);
	if (strcmp(message->is, "ask") == 0)
		return vt_ask_take(host, call, message, err);
	return vt_fail(err, VT_STEP_WIRE, EBADMSG, "an answer to what was not asked");
}

/* ---- rounds --------------------------------------------------------------------------------- */

/* Does what can be done with what came already. How many calls were over. */
static int work(vitro_toolhost *host)
{
	struct vt_message message;
	struct vt_err err;

	while (vt_peer_next(&host->peer, &message))
		if (take(host, &message, &err) < 0)
			vt_peer_refuse(&host->peer, &err);
	if (host->peer.lost)
		vt_call_end_all(host);
	return vt_call_tell(host);
}

void vt_dispatch_later(vitro_toolhost *host)
{
	/* A dispatch looks at its end whether it leaves anything. */
	if (host->busy == 0)
		vt_peer_wake(&host->peer, host->ready || vt_peer_holds(&host->peer) ||
						  (host->peer.lost && host->calls.first));
}

int vitro_toolhost_fd(vitro_toolhost *host)
{
	return host->peer.epoll;
}

int vitro_dispatch(vitro_toolhost *host)
{
	int over = 0;

	host->busy++;
	vt_peer_flush(&host->peer);
	over += work(host);
	for (int reads = 0; reads < MOST_READS && vt_peer_read(&host->peer); reads++)
		over += work(host);
	if (host->peer.lost)
		over += work(host);
	host->busy--;
	vt_dispatch_later(host);
	return over;
}

vitro_result *vitro_call(vitro_toolhost *host, const struct vitro_request *request)
{
	struct vt_call *call = vt_call_begin(host, request, NULL, true, NULL);

	if (!call)
		return vt_result_no_memory();
	host->busy++;
	for (;;) {
		(void)work(host); /* this call is not among those that it counts */
		if (call->result)
			break;
		vt_peer_read_waiting(&host->peer);
	}
	host->busy--;
	vt_dispatch_later(host);
	vitro_result *result = call->result;

	call->result = NULL;
	vt_call_free(call);
	return result;
}
