/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/result.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "watch/report.h"
#include "watch/result_private.h"

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
	json_decref(result->guarded);
	vt_capture_done(&result->out);
	vt_capture_done(&result->err);
	vt_capture_done(&result->report);
}

struct vt_object vt_object_new(void)
{
	json_t *json = json_object();

	return (struct vt_object){ .json = json, .failed = !json };
}

void vt_object_put(struct vt_object *object, const char *key, json_t *value)
{
	if (json_object_set_new(object->json, key, value) < 0)
		object->failed = true;
}

json_t *vt_object_take(struct vt_object *object)
{
	if (object->failed) {
		json_decref(object->json);
		return NULL;
	}
	return object->json;
}

static json_t *ms_json(double ms)
{
	const int64_t tenths = vt_ms_tenths(ms);

	return tenths < 0 ? json_null() : json_real((double)tenths / 10);
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
	struct vt_object error = vt_object_new();

	vt_object_put(&error, "type", vt_json_string(verdict->type));
	vt_object_put(&error, "message", vt_json_string(verdict->message));
	vt_object_put(&error, "traceback", json_null());
	return vt_object_take(&error);
}

static json_t *dropped_json(const struct vt_result *result)
{
	struct vt_object dropped = vt_object_new();

	vt_object_put(&dropped, "stdout",
		      json_integer((json_int_t)vt_capture_dropped(&result->out)));
	vt_object_put(&dropped, "stderr",
		      json_integer((json_int_t)vt_capture_dropped(&result->err)));
	return vt_object_take(&dropped);
}

json_t *vt_result_usage(const struct vt_result *result)
{
	struct vt_object usage = vt_object_new();

	vt_object_put(&usage, "wall_ms", ms_json(result->wall_ms));
	vt_object_put(&usage, "cpu_ms", ms_json(result->cpu_ms));
	vt_object_put(&usage, "peak_memory_kb", vt_json_count(result->peak_memory_kb));
	vt_object_put(&usage, "processes", vt_json_count(result->processes));
	return vt_object_take(&usage);
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
	struct vt_object notes = vt_object_new();

	for (int i = 0; i < VT_PROPERTIES; i++) {
		const struct vt_holding *holding = &plan->holdings[i];

		if (holding->mechanism && holding->note && *holding->note)
			vt_object_put(&notes, properties[i].key, vt_json_string(holding->note));
	}
	if (plan->ids_note)
		vt_object_put(&notes, "ids", vt_json_string(plan->ids_note + strlen("ids: ")));
	if (plan->protect_note)
		vt_object_put(&notes, "protect",
			      vt_json_string(plan->protect_note + strlen("files: ")));
	else if (plan->unlooked)
		vt_object_put(&notes, "protect", vt_json_string(plan->unlooked));
	if (plan->links_note)
		vt_object_put(&notes, "links", vt_json_string(plan->links_note));
	return vt_object_take(&notes);
}

json_t *vt_result_isolation(const struct vt_plan *plan)
{
	if (!plan)
		return json_null();
	struct vt_object isolation = vt_object_new();

	vt_object_put(&isolation, "level", vt_json_string(plan->level));
	for (int i = 0; i < VT_PROPERTIES; i++) {
		const struct vt_holding *holding = &plan->holdings[i];
		bool held = holding->mechanism && holding->grade != VT_GRADE_NONE;

		/* What the policy opens is named; "none" is what it closes and nothing holds. */
		if (!holding->mechanism && i == VT_PROPERTY_NETWORK)
			vt_object_put(&isolation, properties[i].key, vt_json_string("host"));
		else if (holding->mechanism || !properties[i].optional)
			vt_object_put(&isolation, properties[i].key,
				      vt_json_string(held ? holding->mechanism : "none"));
	}
	json_t *notes = notes_json(plan);

	if (notes && !json_object_size(notes))
		json_decref(notes);
	else
		vt_object_put(&isolation, "notes", notes);
	return vt_object_take(&isolation);
}

void vt_object_put_end(struct vt_object *object, const struct vt_verdict *verdict)
{
	vt_object_put(object, "exit_code", vt_json_count(verdict->exit_code));
	vt_object_put(object, "signal",
		      verdict->signal ? json_integer(verdict->signal) : json_null());
}

static int write_to_str(const char *bytes, size_t len, void *out)
{
	vt_str_addn(out, bytes, len);
	return vt_str_ok(out) ? 0 : -1;
}

/* 15 digits print a tenth of a millisecond as it was rounded, and not as 500.39999999.
 */
void vt_object_write(json_t *root, struct vt_str *out, size_t flags)
{
	if (!root || json_dump_callback(root, write_to_str, out, JSON_REAL_PRECISION(15) | flags))
		out->failed = true;
	json_decref(root);
}

int vt_object_end_line(struct vt_str *out, struct vt_err *err)
{
	vt_str_add(out, "\n");
	if (!vt_str_ok(out))
		return vt_fail(err, VT_STEP_OUTPUT, ENOMEM, "write the result as JSON");
	return 0;
}

static json_t *claims_json(const struct vt_result *result)
{
	const struct vt_verdict *verdict = &result->verdict;
	struct vt_object claims = vt_object_new();

	vt_object_put(&claims, "call_id", vt_json_string(result->call_id));
	vt_object_put(&claims, "ok", json_boolean(verdict->status == VT_STATUS_OK));
	vt_object_put(&claims, "status", json_string(vt_status_name(verdict->status)));
	return vt_object_take(&claims);
}

/* All that follows the value. */
static json_t *rest_json(const struct vt_result *result, const struct vt_plan *plan,
			 const struct vt_str *report)
{
	const struct vt_verdict *verdict = &result->verdict;
	struct vt_object root = vt_object_new();

	vt_object_put(&root, "error", error_json(verdict, report));
	vt_object_put_end(&root, verdict);
	vt_object_put(&root, "stdout",
		      result->passed_on ? json_null() : capture_json(&result->out));
	vt_object_put(&root, "stderr",
		      result->passed_on ? json_null() : capture_json(&result->err));
	vt_object_put(&root, "dropped", dropped_json(result));
	vt_object_put(&root, "logs", json_array());
	vt_object_put(&root, "usage", vt_result_usage(result));
	vt_object_put(&root, "isolation", vt_result_isolation(plan));
	vt_object_put(&root, "files", json_object());
	vt_object_put(&root, "denials", json_null());
	if (result->guarded)
		vt_object_put(&root, "protected", json_incref(result->guarded));
	if (result->unreaped)
		vt_object_put(&root, "unreaped", json_true());
	if (result->uncleared && plan && plan->scratch)
		vt_object_put(&root, "uncleared", vt_json_string(plan->scratch));
	return vt_object_take(&root);
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
	vt_object_write(claims_json(result), out, JSON_EMBED);
	vt_str_add(out, ", \"value\": ");
	write_value(result, &report, out);
	vt_str_add(out, ", ");
	vt_object_write(rest_json(result, plan, &report), out, JSON_EMBED);
	vt_str_add(out, "}");
	vt_str_done(&report);
	return vt_object_end_line(out, err);
}
