/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/audit_line.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/utf8.h"
#include "watch/audit.h"
#include "watch/result_private.h"

enum granted { GRANTED_READ, GRANTED_WRITE, GRANTED_SOCKET };

static enum granted kind_of(const struct vt_build *build)
{
	return build->socket ? GRANTED_SOCKET : build->writable ? GRANTED_WRITE : GRANTED_READ;
}

static json_t *grants_json(const struct vt_plan *plan, enum granted kind)
{
	json_t *list = json_array();

	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (build->act == VT_ACT_BIND && build->granted && !build->inner &&
		    kind_of(build) == kind)
			list = vt_json_append(list, vt_json_string(build->from));
	}
	return list;
}

static json_t *denials_json(const struct vt_plan *plan)
{
	json_t *list = json_array();

	for (size_t i = 0; i < plan->denial_count; i++)
		list = vt_json_append(list, vt_json_string(plan->denials[i].path));
	return list;
}

/* What the user opened and closed, as host paths, and the limits that were set for it. */
static json_t *granted_json(const struct vt_plan *plan)
{
	if (!plan)
		return json_null();
	struct vt_object granted = vt_object_new();

	vt_object_put(&granted, "read", grants_json(plan, GRANTED_READ));
	vt_object_put(&granted, "write", grants_json(plan, GRANTED_WRITE));
	vt_object_put(&granted, "deny", denials_json(plan));
	vt_object_put(&granted, "sockets", grants_json(plan, GRANTED_SOCKET));
	vt_object_put(&granted, "wall_ms", json_integer(plan->wall_ms));
	vt_object_put(&granted, "memory_mb", json_integer(plan->memory_bytes >> 20));
	vt_object_put(&granted, "pids", json_integer(plan->pids));
	return vt_object_take(&granted);
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

	for (; argv && *argv; argv++) {
		size_t one = strlen(*argv), shown = vt_utf8_cut(*argv, one, room);

		len += one + 1;
		if (room)
			list = vt_json_append(list, vt_json_text(*argv, shown));
		room -= room > one ? one + 1 : room;
	}
	*ret_len = len;
	return list;
}

static const char *program_of(const struct vt_plan *plan, const struct vt_audit *audit)
{
	return audit->tool ? audit->program : plan ? plan->exec_path : NULL;
}

int vt_audit_line(const struct vt_result *result, const struct vt_plan *plan,
		  const struct vt_audit *audit, struct vt_str *out, struct vt_err *err)
{
	const struct vt_verdict *verdict = &result->verdict;
	struct vt_object root = vt_object_new();
	size_t argv_len = 0;

	vt_object_put(&root, "time", time_json());
	vt_object_put(&root, "uid", json_integer(audit->tool ? audit->uid : getuid()));
	vt_object_put(&root, "pid", json_integer(audit->tool ? audit->pid : getpid()));
	vt_object_put(&root, "call_id", vt_json_string(result->call_id));
	if (audit->tool)
		vt_object_put(&root, "tool", vt_json_string(audit->tool));
	vt_object_put(&root, "argv", argv_json(audit->argv, &argv_len));
	argv_len = audit->argv_bytes ? audit->argv_bytes : argv_len;
	if (argv_len > VT_AUDIT_ARGV)
		vt_object_put(&root, "argv_bytes", json_integer((json_int_t)argv_len));
	if (argv_len > VT_AUDIT_ARGV && audit->argv_sha256)
		vt_object_put(&root, "argv_sha256", json_string(audit->argv_sha256));
	vt_object_put(&root, "program", vt_json_string(program_of(plan, audit)));
	vt_object_put(&root, "policy", vt_json_string(audit->policy));
	vt_object_put(&root, "isolation", vt_result_isolation(plan));
	vt_object_put(&root, "granted", granted_json(plan));
	vt_object_put(&root, "status", json_string(vt_status_name(verdict->status)));
	vt_object_put(&root, "message", vt_json_string(verdict->message));
	vt_object_put_end(&root, verdict);
	vt_object_put(&root, "usage", vt_result_usage(result));
	vt_object_write(vt_object_take(&root), out, 0);
	return vt_object_end_line(out, err);
}
