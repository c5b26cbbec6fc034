/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/request.h"

#include <errno.h>
#include <string.h>

/* In the order in which a call has them, since there are more of those than of all others. */
static const struct vt_head_field fields[] = {
	{ "do", VT_HEAD_TEXT, 0, 0 },
	{ "call", VT_HEAD_INT, 0, INT64_MAX },
	{ "pool", VT_HEAD_INT, 0, INT64_MAX },
	{ "tool", VT_HEAD_TEXT, 0, 0 },
	{ "id", VT_HEAD_TEXT, 0, 0 },
	{ "wall_ms", VT_HEAD_INT, 0, INT64_MAX },
	{ "stream", VT_HEAD_FLAG, 0, 0 },
	{ "within", VT_HEAD_FLAG, 0, 0 },
	{ "stdin", VT_HEAD_INT, 0, INT64_MAX },
	{ "ask", VT_HEAD_INT, 0, INT64_MAX },
	{ "ok", VT_HEAD_FLAG, 0, 0 },
	{ "program", VT_HEAD_TEXT, 0, 0 },
	{ "object", VT_HEAD_TEXT, 0, 0 },
	{ "command", VT_HEAD_TEXT, 0, 0 },
	{ "ready_min", VT_HEAD_INT, 0, INT64_MAX },
	{ "ready_max", VT_HEAD_INT, 0, INT64_MAX },
	{ "live_max", VT_HEAD_INT, 0, INT64_MAX },
	{ "python", VT_HEAD_TEXT, 0, 0 },
	{ "node", VT_HEAD_TEXT, 0, 0 },
	{ "setup", VT_HEAD_TEXT, 0, 0 },
	{ "module", VT_HEAD_TEXT, 0, 0 },
	{ "version", VT_HEAD_INT, 0, INT64_MAX },
	{ "cwd", VT_HEAD_TEXT, 0, 0 },
};

/* What each must have. */
static const struct {
	const char *what;
	const char *must[4]; /* up to the first NULL */
} requests[] = {
	{ "call", { "call", "pool", "tool", "id" } },
	{ "answer", { "call", "ask", "ok" } },
	{ "cancel", { "call" } },
	{ "pool", { "pool" } },
	{ "drop", { "pool" } },
	{ "learn", { "pool", "module" } },
	{ "hello", { "version" } },
	{ "tool", { "call", "tool", "id" } },
};

static bool is_there(const struct vt_head *head, const char *name)
{
	const struct vt_head_member *member = vt_head_find(head, name);

	return member && member->type != VT_HEAD_NULL;
}

int vt_request_check(const struct vt_head *head, struct vt_err *err)
{
	const char *what = vt_head_text(head, "do", NULL);
	int r = vt_head_check(head, fields, sizeof(fields) / sizeof(fields[0]), err);

	for (size_t i = 0; r == 0 && what && i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (strcmp(requests[i].what, what) != 0)
			continue;
		for (size_t j = 0; j < 4 && requests[i].must[j]; j++)
			if (!is_there(head, requests[i].must[j]))
				return vt_fail(err, VT_STEP_WIRE, EBADMSG,
					       "understand the client: '%s' has no '%s'", what,
					       requests[i].must[j]);
		break;
	}
	return r;
}

int vt_request_misunderstand(const char *what, struct vt_err *err)
{
	return vt_fail(err, VT_STEP_WIRE, EBADMSG, "understand the client: %s", what);
}
