/* SPDX-License-Identifier: Apache-2.0 */
#include "client/result.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "base/status.h"

_Static_assert((int)VITRO_OK == (int)VT_STATUS_OK && (int)VITRO_LOST == (int)VT_STATUS_LOST,
	       "statuses have the same numbers outside");

/* The one result that needs no memory. It is never written to. */
static vitro_result no_memory = {
	.status = VITRO_LOST,
	.call_id = "",
	.out.at = "",
	.err.at = "",
	.exit_code = -1,
	.usage = { .peak_memory_kb = -1, .processes = -1 },
	.type = "Lost",
	.message = "out of memory",
	.logs.at = "",
	.json = (char *)"{\"call_id\": \"\", \"ok\": false, \"status\": \"lost\", \"value\": null, "
			"\"error\": {\"type\": \"Lost\", \"message\": \"out of memory\", "
			"\"traceback\": null}, \"exit_code\": null, \"signal\": null, "
			"\"stdout\": \"\", \"stderr\": \"\", \"dropped\": {\"stdout\": 0, "
			"\"stderr\": 0}, \"logs\": [], \"usage\": {\"wall_ms\": 0.0, "
			"\"cpu_ms\": 0.0, \"peak_memory_kb\": null, \"processes\": null}, "
			"\"isolation\": null, \"files\": {}, \"denials\": null}\n",
};

/* ---- making --------------------------------------------------------------------------------- */

vitro_result *vt_result_no_memory(void)
{
	return &no_memory;
}

struct vitro_result vt_result_failed(enum vitro_status status, const char *message)
{
	struct vitro_result parts = no_memory;

	parts.status = status;
	parts.type = vt_status_type((enum vt_status)status);
	parts.message = message;
	parts.json = NULL;
	return parts;
}

/* Copies bytes to *at, with a NUL behind them, and moves it on. */
static const char *put(char **at, const char *bytes, size_t len)
{
	char *start = *at;

	memcpy(start, bytes, len);
	start[len] = '\0';
	*at += len + 1;
	return start;
}

static const char *put_text(char **at, const char *text)
{
	return text ? put(at, text, strlen(text)) : NULL;
}

static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* All sizes are of what is in memory already, so that their sum is no overflow. */
vitro_result *vt_result_new(const struct vitro_result *parts)
{
	size_t value = parts->value.at && !parts->memory ? parts->value.len + 1 : 0;
	vitro_result *result = malloc(sizeof(*result) + value + parts->out.len + parts->err.len +
				      parts->logs.len + 3 + text_size(parts->call_id) +
				      text_size(parts->type) + text_size(parts->message) +
				      text_size(parts->traceback) + text_size(parts->isolation) +
				      text_size(parts->guarded));

	if (!result) {
		free(parts->memory);
		return &no_memory;
	}
	char *at = (char *)(result + 1);

	*result = *parts;
	result->json = NULL;
	if (value)
		result->value.at = put(&at, parts->value.at, parts->value.len);
	result->out.at = put(&at, parts->out.at, parts->out.len);
	result->err.at = put(&at, parts->err.at, parts->err.len);
	result->logs.at = put(&at, parts->logs.at, parts->logs.len);
	result->call_id = put_text(&at, parts->call_id);
	result->type = put_text(&at, parts->type);
	result->message = put_text(&at, parts->message);
	result->traceback = put_text(&at, parts->traceback);
	result->isolation = put_text(&at, parts->isolation);
	result->guarded = put_text(&at, parts->guarded);
	/* Output that followed the value has been copied. */
	if (parts->memory && parts->value.at)
		((char *)parts->value.at)[parts->value.len] = '\0';
	return result;
}

void vitro_result_free(vitro_result *result)
{
	if (!result || result == &no_memory)
		return;
	free(result->memory);
	free(result->json);
	free(result);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The next so many bytes of the body. */
static bool cut(const struct vt_message *message, size_t *at, const char *name,
		struct vt_bytes *ret_bytes)
{
	int64_t len = vt_head_int(&message->head, name, 0);

	if (len < 0 || (uint64_t)len > message->body_len - *at)
		return false;
	*ret_bytes = (struct vt_bytes){ message->body + *at, (size_t)len };
	*at += (size_t)len;
	return true;
}

int vt_result_read(const struct vt_message *message, struct vitro_result *ret_parts,
		   struct vt_err *err)
{
	const struct vt_head *head = &message->head;
	const char *name = vt_head_text(head, "status", NULL);
	int status = name ? vt_status_find(name) : -1;
	struct vitro_result parts = vt_result_failed(VITRO_LOST, NULL);
	size_t at = 0;

	if (status < 0)
		return vt_fail(err, VT_STEP_WIRE, EBADMSG, "a result has no status that is known");
	if (!cut(message, &at, "value", &parts.value) || !cut(message, &at, "stdout", &parts.out) ||
	    !cut(message, &at, "stderr", &parts.err) || at != message->body_len)
		return vt_fail(err, VT_STEP_WIRE, EBADMSG,
			       "a result has other lengths than it says");
	parts.status = (enum vitro_status)status;
	parts.dropped_out = vt_head_int(head, "dropped_stdout", 0);
	parts.dropped_err = vt_head_int(head, "dropped_stderr", 0);
	parts.came_to_cell = vt_head_flag(head, "cell", false);
	parts.unreaped = vt_head_flag(head, "unreaped", false);
	parts.guarded = vt_head_text(head, "protected", NULL);
	if (parts.guarded &&
	    (*parts.guarded != '{' || !vt_json_is_valid(parts.guarded, strlen(parts.guarded))))
		return vt_fail(err, VT_STEP_WIRE, EBADMSG, "what is protected is no JSON object");
	parts.exit_code = (int)vt_head_int(head, "exit_code", -1);
	parts.signal = (int)vt_head_int(head, "signal", 0);
	parts.usage.wall_ms = (double)vt_head_int(head, "wall_ns", 0) / VT_NS_PER_MS;
	parts.usage.cpu_ms = (double)vt_head_int(head, "cpu_ns", 0) / VT_NS_PER_MS;
	parts.usage.peak_memory_kb = vt_head_int(head, "peak_kb", -1);
	parts.usage.processes = vt_head_int(head, "processes", -1);
	parts.type = parts.message = NULL;
	if (status != VITRO_OK) {
		parts.value = (struct vt_bytes){ 0 };
		parts.type = vt_head_text(head, "error_type", NULL);
		parts.message = vt_head_text(head, "error", NULL);
		if (!parts.type)
			parts.type = vt_status_type((enum vt_status)status);
		if (!parts.message)
			parts.message = "no reason was given";
	}
	*ret_parts = parts;
	return 0;
}

/* ---- what others see ------------------------------------------------------------------------ */

const char *vitro_status_name(enum vitro_status status)
{
	return vt_status_name((enum vt_status)status);
}

enum vitro_status vitro_result_status(const vitro_result *result)
{
	return result->status;
}

const char *vitro_result_call_id(const vitro_result *result)
{
	return result->call_id;
}

static const char *give(const struct vt_bytes *bytes, size_t *ret_len)
{
	if (ret_len)
		*ret_len = bytes->len;
	return bytes->at;
}

const char *vitro_result_value(const vitro_result *result, size_t *ret_len)
{
	return give(&result->value, ret_len);
}

const char *vitro_result_error_type(const vitro_result *result)
{
	return result->type;
}

const char *vitro_result_error(const vitro_result *result)
{
	return result->message;
}

const char *vitro_result_output(const vitro_result *result, int stream, size_t *ret_len)
{
	return give(stream == VITRO_STDERR ? &result->err : &result->out, ret_len);
}

uint64_t vitro_result_dropped(const vitro_result *result, int stream)
{
	return (uint64_t)(stream == VITRO_STDERR ? result->dropped_err : result->dropped_out);
}

int vitro_result_exit_code(const vitro_result *result)
{
	return result->exit_code;
}

int vitro_result_signal(const vitro_result *result)
{
	return result->signal;
}

void vitro_result_usage(const vitro_result *result, struct vitro_usage *ret_usage)
{
	*ret_usage = result->usage;
}

const char *vitro_result_isolation(const vitro_result *result)
{
	return result->isolation;
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static int write_to_str(const char *bytes, size_t len, void *out)
{
	vt_str_addn(out, bytes, len);
	return 0;
}

static void add_text(struct vt_str *out, const char *bytes, size_t len)
{
	AUTO_JSON json_t *text = vt_json_text(bytes, len);

	if (!text || json_dump_callback(text, write_to_str, out, JSON_ENCODE_ANY) < 0)
		out->failed = true;
}

static void add_ms(struct vt_str *out, const char *name, double ms)
{
	const int64_t tenths = vt_ms_tenths(ms);

	if (tenths < 0)
		vt_str_addf(out, "\"%s\": null, ", name);
	else
		vt_str_addf(out, "\"%s\": %" PRId64 ".%d, ", name, tenths / 10, (int)(tenths % 10));
}

/* A number that may not be there. */
static void add_number(struct vt_str *out, const char *name, int64_t number, bool there)
{
	if (there)
		vt_str_addf(out, "\"%s\": %" PRId64, name, number);
	else
		vt_str_addf(out, "\"%s\": null", name);
}

static void add_error(struct vt_str *out, const vitro_result *result)
{
	if (!result->type) {
		vt_str_add(out, ", \"error\": null, ");
		return;
	}
	vt_str_add(out, ", \"error\": {\"type\": ");
	add_text(out, result->type, strlen(result->type));
	vt_str_add(out, ", \"message\": ");
	add_text(out, result->message, strlen(result->message));
	vt_str_add(out, ", \"traceback\": ");
	if (result->traceback)
		add_text(out, result->traceback, strlen(result->traceback));
	else
		vt_str_add(out, "null");
	vt_str_add(out, "}, ");
}

static void add_usage(struct vt_str *out, const struct vitro_usage *usage)
{
	vt_str_add(out, "], \"usage\": {");
	add_ms(out, "wall_ms", usage->wall_ms);
	add_ms(out, "cpu_ms", usage->cpu_ms);
	add_number(out, "peak_memory_kb", usage->peak_memory_kb, usage->peak_memory_kb >= 0);
	vt_str_add(out, ", ");
	add_number(out, "processes", usage->processes, usage->processes >= 0);
}

/* The names and their order are those of `vitro run --json`. Value and isolation are JSON already.
 */
static void add_all(struct vt_str *out, const vitro_result *result)
{
	vt_str_add(out, "{\"call_id\": ");
	add_text(out, result->call_id, strlen(result->call_id));
	vt_str_addf(out, ", \"ok\": %s", result->status == VITRO_OK ? "true" : "false");
	vt_str_addf(out, ", \"status\": \"%s\", \"value\": ", vitro_status_name(result->status));
	if (result->value.at)
		vt_json_add_compact(out, result->value.at, result->value.len);
	else
		vt_str_add(out, "null");
	add_error(out, result);
	add_number(out, "exit_code", result->exit_code, result->exit_code >= 0);
	vt_str_add(out, ", ");
	add_number(out, "signal", result->signal, result->signal > 0);
	vt_str_add(out, ", \"stdout\": ");
	add_text(out, result->out.at, result->out.len);
	vt_str_add(out, ", \"stderr\": ");
	add_text(out, result->err.at, result->err.len);
	vt_str_add(out, ", \"dropped\": {");
	add_number(out, "stdout", result->dropped_out, true);
	vt_str_add(out, ", ");
	add_number(out, "stderr", result->dropped_err, true);
	vt_str_add(out, "}, \"logs\": [");
	vt_str_addn(out, result->logs.at, result->logs.len);
	add_usage(out, &result->usage);
	vt_str_addf(out, "}, \"isolation\": %s", result->isolation ? result->isolation : "null");
	vt_str_add(out, ", \"files\": {}, \"denials\": null");
	if (result->guarded)
		vt_str_addf(out, ", \"protected\": %s", result->guarded);
	vt_str_add(out, result->unreaped ? ", \"unreaped\": true}\n" : "}\n");
}

const char *vitro_result_json(vitro_result *result)
{
	struct vt_str out;

	if (result->json)
		return result->json;
	vt_str_init(&out);
	add_all(&out, result);
	if (vt_str_ok(&out))
		result->json = strdup(out.text);
	vt_str_done(&out);
	return result->json;
}
