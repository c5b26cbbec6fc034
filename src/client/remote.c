/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of a server's own, in a tool host beside those of the program. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_scan.h"
#include "client/error.h"
#include "client/host_private.h"

static bool is_remote(const struct vt_tool *tool)
{
	return ((const struct vt_target *)tool->owner)->remote;
}

/* A member's text as it came: through jansson 0.1 becomes 0.10000000000000001. NULL: no memory. */
static char *copy_member(struct vt_json_span object, const char *name)
{
	struct vt_json_span key, value;
	size_t len = strlen(name);

	while (vt_json_next(&object, &key, &value))
		if ((size_t)(key.end - key.at) == len + 2 && memcmp(key.at + 1, name, len) == 0)
			return strndup(value.at, (size_t)(value.end - value.at));
	return NULL;
}

/* span is its text. */
static int make_tool(const json_t *one, struct vt_json_span span, struct vt_tool **ret_tool,
		     struct vt_err *err)
{
	const char *name = json_string_value(json_object_get(one, "name"));
	const char *description = json_string_value(json_object_get(one, "description"));
	const json_t *schema = json_object_get(one, "input_schema");

	if (!name || (schema && !json_is_object(schema)))
		return vt_fail(err, VT_STEP_WIRE, EBADMSG, "a tool that is none");
	struct vt_target *target = calloc(1, sizeof(*target));
	char *text = schema ? copy_member(span, "input_schema") : NULL;
	int status = target && (!schema || text)
			     ? vt_tool_new(name, description, text, ret_tool, err)
			     : vt_fail(err, VT_STEP_WIRE, ENOMEM, "take a tool");

	free(text);
	if (status < 0) {
		free(target);
		return status;
	}
	target->remote = true;
	(*ret_tool)->owner = target;
	(*ret_tool)->release = free;
	return 0;
}

/* What the program has itself stays. */
static int add_tool(vitro_toolhost *host, const json_t *one, struct vt_json_span span,
		    struct vt_err *err)
{
	struct vt_tool *made;
	int status = make_tool(one, span, &made, err);

	if (status < 0)
		return status;
	const struct vt_tool *before = vt_toolset_find(host->tools, made->name);

	if (!before || is_remote(before))
		status = vt_toolset_add(host->tools, made, err);
	vt_tool_unref(made);
	return status;
}

static bool is_listed(const json_t *list, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *other = json_string_value(json_object_get(one, "name"));

		if (other && strcmp(other, name) == 0)
			return true;
	}
	return false;
}

/* Whoever is told of one may change the set: it is looked through anew. */
static bool remove_one(vitro_toolhost *host, const json_t *list)
{
	struct vt_err err;

	for (size_t i = 0; i < vt_toolset_count(host->tools); i++) {
		const struct vt_tool *tool = vt_toolset_at(host->tools, i);

		if (is_remote(tool) && !is_listed(list, tool->name))
			return vt_toolset_remove(host->tools, tool->name, &err) == 0;
	}
	return false;
}

/* Whoever is told of a change can have the next list come meanwhile, which stands then. */
static int take_list(vitro_toolhost *host, const json_t *list, struct vt_json_span rest,
		     struct vt_err *err)
{
	const uint64_t number = ++host->lists;
	struct vt_json_span key, span;
	int status = 0;

	while (host->lists == number && remove_one(host, list))
		continue;
	for (size_t i = 0; status == 0 && host->lists == number && i < json_array_size(list); i++)
		status = vt_json_next(&rest, &key, &span)
				 ? add_tool(host, json_array_get(list, i), span, err)
				 : vt_fail(err, VT_STEP_WIRE, EBADMSG,
					   "a tool is nested too deeply");
	return status;
}

int vt_remote_take(vitro_toolhost *host, const struct vt_message *message, struct vt_err *err)
{
	const char *error = vt_head_text(&message->head, "error", NULL);
	size_t len = message->body_len;
	int status;

	if (!vt_head_flag(&message->head, "ok", false))
		return vt_fail(err, VT_STEP_WIRE, ENOENT, "%s", error ? error : "it has no tools");
	/* A copy: that next list would come over this message. */
	char *text = malloc(len + 1);

	if (!text)
		return vt_error_no_memory(err);
	memcpy(text, message->body, len);
	AUTO_JSON json_t *list = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

	status = json_is_array(list) ? take_list(host, list, vt_json_span(text, len), err)
				     : vt_fail(err, VT_STEP_WIRE, EBADMSG, "its tools are no list");
	free(text);
	return status;
}

static enum vt_peer_taken take(void *user, const struct vt_message *message, struct vt_err *err)
{
	if (strcmp(message->is, "tools") != 0)
		return VT_PEER_OTHER;
	return vt_remote_take(user, message, err) < 0 ? VT_PEER_WRONG : VT_PEER_LAST;
}

int vt_remote_open(vitro_toolhost *host, struct vt_err *err)
{
	struct vt_err inner = { 0 };

	vt_peer_begin(&host->peer, "tools");
	int status = vt_peer_send(&host->peer, NULL, 0, &inner);

	if (status == 0)
		status = vt_peer_await(&host->peer, -1, take, host, &inner);
	return status < 0 ? vt_fail(err, VT_STEP_WIRE, inner.num, "the server at '%s': %s",
				    host->peer.program, inner.what)
			  : 0;
}
