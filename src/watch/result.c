/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/result.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "watch/audit.h"
#include "watch/report.h"

void vt_result_init(struct vt_result *result)
{
	/* All but the tail, which is as long as its length says. */
	memset(result, 0, offsetof(struct vt_result, err_tail));
	memcpy(result->call_id, "c1", sizeof("c1"));
	result->peak_memory_kb = result->processes = -1;
	vt_verdict_lose(&result->verdict);
	vt_capture_init(&result->out, 0);
	vt_capture_init(&result->err, 0);
	vt_capture_init(&result->report, 0);
}

void vt_result_done(struct vt_result *result)
{
	vt_capture_done(&result->out);
	vt_capture_done(&result->err);
	vt_capture_done(&result->report);
}

/*
 * An object being filled. Failure is sticky, as in vt_str: jansson gives NULL where memory is
 * short, and refuses to set NULL.
 */
struct object {
	json_t *json;
	bool failed;
};

static struct object object_new(void)
{
	json_t *json = json_object();

	return (struct object){ .json = json, .failed = !json };
}

static void put(struct object *object, const char *key, json_t *value)
{
	if (json_object_set_new(object->json, key, value) < 0)
		object->failed = true;
}

/* The filled object, or NULL where anything failed. */
static json_t *object_take(struct object *object)
{
	if (object->failed) {
		json_decref(object->json);
		return NULL;
	}
	return object->json;
}

static json_t *text_json(const char *text)
{
	return vt_json_text(text, strlen(text));
}

static json_t *ms_json(double ms)
{
	const int64_t tenths = vt_ms_tenths(ms);

	return tenths < 0 ? json_null() : json_real((double)tenths / 10);
}

/* A count that may not be known. */
static json_t *count_json(int64_t count)
{
	return count < 0 ? json_null() : json_integer(count);
}

static json_t *capture_json(const struct vt_capture *capture)
{
	struct vt_str text;
	json_t *json = NULL;

	vt_str_init(&text);
	vt_capture_text(capture, &text);
	if (vt_str_ok(&text))
		json = vt_json_text(text.text, text.len);
	vt_str_done(&text);
	return json;
}

static json_t *error_json(const struct vt_verdict *verdict, const struct vt_str *report)
{
	json_t *raised = vt_report_error(report->text, report->len, verdict);

	if (raised)
		return raised;
	if (verdict->status == VT_STATUS_OK)
		return json_null();
	struct object error = object_new();

	put(&error, "type", text_json(verdict->type));
	put(&error, "message", text_json(verdict->message));
	put(&error, "traceback", json_null());
	return object_take(&error);
}

static json_t *dropped_json(const struct vt_result *result)
{
	struct object dropped = object_new();

	put(&dropped, "stdout", json_integer((json_int_t)vt_capture_dropped(&result->out)));
	put(&dropped, "stderr", json_integer((json_int_t)vt_capture_dropped(&result->err)));
	return object_take(&dropped);
}

static json_t *usage_json(const struct vt_result *result)
{
	struct object usage = object_new();

	put(&usage, "wall_ms", ms_json(result->wall_ms));
	put(&usage, "cpu_ms", ms_json(result->cpu_ms));
	put(&usage, "peak_memory_kb", count_json(result->peak_memory_kb));
	put(&usage, "processes", count_json(result->processes));
	return object_take(&usage);
}

/* What results call each property; one that is optional is left out where it was not asked for. */
static const struct {
	const char *key;
	bool optional;
} properties[VT_PROPERTIES] = {
	[VT_PROPERTY_PROCESSES] = { "processes", false },
	[VT_PROPERTY_FILES] = { "files", false },
	[VT_PROPERTY_NETWORK] = { "network", false },
	[VT_PROPERTY_SYSCALLS] = { "syscalls", false },
	[VT_PROPERTY_MEMORY] = { "memory", false },
	[VT_PROPERTY_PIDS] = { "pids", false },
	[VT_PROPERTY_CPU_TIME] = { "cpu_time", true },
	[VT_PROPERTY_CPUS] = { "cpus", true },
	[VT_PROPERTY_TMP] = { "tmp", false },
};

/* Slack and caveats of what holds less than it might elsewhere. */
static json_t *notes_json(const struct vt_plan *plan)
{
	struct object notes = object_new();

	for (int i = 0; i < VT_PROPERTIES; i++) {
		const struct vt_holding *holding = &plan->holdings[i];

		if (holding->mechanism && holding->note && *holding->note)
			put(&notes, properties[i].key, text_json(holding->note));
	}
	if (plan->ids_note)
		put(&notes, "ids", text_json(plan->ids_note + strlen("ids: ")));
	if (plan->links_note)
		put(&notes, "links", text_json(plan->links_note));
	return object_take(&notes);
}

json_t *vt_result_isolation(const struct vt_plan *plan)
{
	if (!plan)
		return json_null();
	struct object isolation = object_new();

	put(&isolation, "level", text_json(plan->level));
	for (int i = 0; i < VT_PROPERTIES; i++) {
		const struct vt_holding *holding = &plan->holdings[i];
		bool held = holding->mechanism && holding->grade != VT_GRADE_NONE;

		/* What the policy opens is named; "none" is what it closes and nothing holds. */
		if (!holding->mechanism && i == VT_PROPERTY_NETWORK)
			put(&isolation, properties[i].key, text_json("host"));
		else if (holding->mechanism || !properties[i].optional)
			put(&isolation, properties[i].key,
			    text_json(held ? holding->mechanism : "none"));
	}
	json_t *notes = notes_json(plan);

	if (notes && !json_object_size(notes))
		json_decref(notes);
	else
		put(&isolation, "notes", notes);
	return object_take(&isolation);
}

static json_t *exit_code_json(const struct vt_verdict *verdict)
{
	return count_json(verdict->exit_code);
}

static json_t *signal_json(const struct vt_verdict *verdict)
{
	return verdict->signal ? json_integer(verdict->signal) : json_null();
}

static int write_to_str(const char *bytes, size_t len, void *out)
{
	vt_str_addn(out, bytes, len);
	return vt_str_ok(out) ? 0 : -1;
}

/* Takes root. 15 digits print a tenth of a millisecond as it was rounded, and not as 500.39999999.
 */
static void write_object(json_t *root, struct vt_str *out, size_t flags)
{
	if (!root || json_dump_callback(root, write_to_str, out, JSON_REAL_PRECISION(15) | flags))
		out->failed = true;
	json_decref(root);
}

static int end_line(struct vt_str *out, struct vt_err *err)
{
	vt_str_add(out, "\n");
	if (!vt_str_ok(out))
		return vt_fail(err, VT_STEP_OUTPUT, ENOMEM, "write the result as JSON");
	return 0;
}

static json_t *claims_json(const struct vt_result *result)
{
	const struct vt_verdict *verdict = &result->verdict;
	struct object claims = object_new();

	put(&claims, "call_id", text_json(result->call_id));
	put(&claims, "ok", json_boolean(verdict->status == VT_STATUS_OK));
	put(&claims, "status", json_string(vt_status_name(verdict->status)));
	return object_take(&claims);
}

/* All that follows the value. */
static json_t *rest_json(const struct vt_result *result, const struct vt_plan *plan,
			 const struct vt_str *report)
{
	const struct vt_verdict *verdict = &result->verdict;
	struct object root = object_new();

	put(&root, "error", error_json(verdict, report));
	put(&root, "exit_code", exit_code_json(verdict));
	put(&root, "signal", signal_json(verdict));
	put(&root, "stdout", result->passed_on ? json_null() : capture_json(&result->out));
	put(&root, "stderr", result->passed_on ? json_null() : capture_json(&result->err));
	put(&root, "dropped", dropped_json(result));
	put(&root, "logs", json_array());
	put(&root, "usage", usage_json(result));
	put(&root, "isolation", vt_result_isolation(plan));
	put(&root, "files", json_object());
	put(&root, "denials", json_null());
	if (result->unreaped)
		put(&root, "unreaped", json_true());
	if (result->uncleared && plan && plan->scratch)
		put(&root, "uncleared", text_json(plan->scratch));
	return object_take(&root);
}

/* As it was written: jansson would make other numbers of some. */
static void write_value(const struct vt_result *result, const struct vt_str *report,
			struct vt_str *out)
{
	struct vt_json_span value = vt_report_value(report->text, report->len, &result->verdict);

	if (value.at)
		vt_json_add_compact(out, value.at, (size_t)(value.end - value.at));
	else
		vt_str_add(out, "null");
}

int vt_result_json(const struct vt_result *result, const struct vt_plan *plan, struct vt_str *out,
		   struct vt_err *err)
{
	struct vt_str report;

	vt_str_init(&report);
	if (!vt_capture_dropped(&result->report))
		vt_capture_text(&result->report, &report);
	out->failed |= !vt_str_ok(&report);
	vt_str_add(out, "{");
	write_object(claims_json(result), out, JSON_EMBED);
	vt_str_add(out, ", \"value\": ");
	write_value(result, &report, out);
	vt_str_add(out, ", ");
	write_object(rest_json(result, plan, &report), out, JSON_EMBED);
	vt_str_add(out, "}");
	vt_str_done(&report);
	return end_line(out, err);
}

enum granted { GRANTED_READ, GRANTED_WRITE, GRANTED_SOCKET };

static enum granted kind_of(const struct vt_build *build)
{
	return build->socket ? GRANTED_SOCKET : build->writable ? GRANTED_WRITE : GRANTED_READ;
}

static json_t *grants_json(const struct vt_plan *plan, enum granted kind)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (build->act != VT_ACT_BIND || !build->granted || build->inner ||
		    kind_of(build) != kind)
			continue;
		if (json_array_append_new(list, text_json(build->from)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *denials_json(const struct vt_plan *plan)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < plan->denial_count; i++) {
		if (json_array_append_new(list, text_json(plan->denials[i].path)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* What the user opened and closed, as host paths, and the limits that were set for it. */
static json_t *granted_json(const struct vt_plan *plan)
{
	if (!plan)
		return json_null();
	struct object granted = object_new();

	put(&granted, "read", grants_json(plan, GRANTED_READ));
	put(&granted, "write", grants_json(plan, GRANTED_WRITE));
	put(&granted, "deny", denials_json(plan));
	put(&granted, "sockets", grants_json(plan, GRANTED_SOCKET));
	put(&granted, "wall_ms", json_integer(plan->wall_ms));
	put(&granted, "memory_mb", json_integer(plan->memory_bytes >> 20));
	put(&granted, "pids", json_integer(plan->pids));
	return object_take(&granted);
}

static json_t *time_json(void)
{
	char text[VT_CHAIN_TIME];

	vt_audit_time(text);
	return text[0] ? json_string(text) : json_null();
}

/* The words, as far as they have room; *ret_len is what they have in all, each with its NUL. */
static json_t *argv_json(char *const *argv, size_t *ret_len)
{
	json_t *list = json_array();
	size_t room = VT_AUDIT_ARGV, len = 0;

	for (; list && argv && *argv; argv++) {
		size_t one = strlen(*argv), shown = vt_utf8_cut(*argv, one, room);

		len += one + 1;
		if (room && json_array_append_new(list, vt_json_text(*argv, shown)) < 0) {
			json_decref(list);
			return NULL;
		}
		room -= room > one ? one + 1 : room;
	}
	*ret_len = len;
	return list;
}

static json_t *program_json(const struct vt_plan *plan, const struct vt_audit *audit)
{
	const char *program = audit->tool ? audit->program : plan ? plan->exec_path : NULL;

	return program ? text_json(program) : json_null();
}

int vt_result_audit(const struct vt_result *result, const struct vt_plan *plan,
		    const struct vt_audit *audit, struct vt_str *out, struct vt_err *err)
{
	const struct vt_verdict *verdict = &result->verdict;
	struct object root = object_new();
	size_t argv_len = 0;

	put(&root, "time", time_json());
	put(&root, "uid", json_integer(audit->tool ? audit->uid : getuid()));
	put(&root, "pid", json_integer(audit->tool ? audit->pid : getpid()));
	put(&root, "call_id", text_json(result->call_id));
	if (audit->tool)
		put(&root, "tool", text_json(audit->tool));
	put(&root, "argv", argv_json(audit->argv, &argv_len));
	if (argv_len > VT_AUDIT_ARGV)
		put(&root, "argv_bytes", json_integer((json_int_t)argv_len));
	put(&root, "program", program_json(plan, audit));
	put(&root, "policy", text_json(audit->policy));
	put(&root, "isolation", vt_result_isolation(plan));
	put(&root, "granted", granted_json(plan));
	put(&root, "status", json_string(vt_status_name(verdict->status)));
	put(&root, "message", text_json(verdict->message));
	put(&root, "exit_code", exit_code_json(verdict));
	put(&root, "signal", signal_json(verdict));
	put(&root, "usage", usage_json(result));
	write_object(object_take(&root), out, 0);
	return end_line(out, err);
}
