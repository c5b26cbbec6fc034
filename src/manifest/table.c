/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/table.h"

#include <errno.h>
#include <stdlib.h>

#include "client/error.h"
#include "client/policy.h"

/* The manifest is a source of each policy: a call that could change it is refused. */
static int make_policy(const struct vt_manifest *manifest, const struct vt_manifest_policy *policy,
		       vitro_policy **ret_policy, struct vitro_error *error)
{
	vitro_policy *made = vitro_policy_new();
	int status = made ? vt_policy_add_part(made, policy->json, manifest->path, error)
			  : vt_error_give(error, ENOMEM, "out of memory");

	if (status == 0 && policy->load)
		status = vitro_policy_load(made, policy->load, error);
	if (status < 0)
		vitro_policy_free(made);
	else
		*ret_policy = made;
	return status;
}

static int fill(const struct vt_manifest *manifest, const struct vt_manifest_tool *from,
		struct vitro_tool *to, struct vitro_error *error)
{
	vitro_policy *policy = NULL;
	int status = make_policy(manifest, &from->policy, &policy, error);

	*to = (struct vitro_tool){
		.name = from->name,
		.description = from->description,
		.schema = from->schema,
		.command = from->command,
		.input = from->input,
		.python = from->language == VT_PYTHON ? from->function : NULL,
		.node = from->language == VT_NODE ? from->function : NULL,
		.folder = from->function ? manifest->folder : NULL,
		.interpreter = from->function ? from->program : NULL,
		.policy = policy,
	};
	return status;
}

int vt_manifest_table(const struct vt_manifest *manifest, const struct vt_manifest_tool *only,
		      struct vitro_tool **ret_tools, struct vitro_error *error)
{
	const struct vt_manifest_tool *from = only ? only : manifest->tools;
	size_t count = only ? 1 : manifest->count;
	struct vitro_tool *tools = calloc(count + 1, sizeof(*tools));
	int status = tools ? 0 : vt_error_give(error, ENOMEM, "out of memory");

	for (size_t i = 0; status == 0 && i < count; i++)
		status = fill(manifest, &from[i], &tools[i], error);
	if (status < 0)
		vt_manifest_table_free(tools);
	else
		*ret_tools = tools;
	return status;
}

void vt_manifest_table_free(struct vitro_tool *tools)
{
	for (struct vitro_tool *tool = tools; tool && tool->name; tool++)
		vitro_policy_free((vitro_policy *)tool->policy);
	free(tools);
}
