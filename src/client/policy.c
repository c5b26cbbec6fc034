/* SPDX-License-Identifier: Apache-2.0 */
#include "client/policy.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/head.h"
#include "base/json.h"
#include "client/error.h"
#include "policy/builtin.h"
#include "policy/policy.h"

vitro_policy *vitro_policy_new(void)
{
	vitro_policy *policy = calloc(1, sizeof(*policy));

	if (policy)
		vt_str_init(&policy->sources);
	return policy;
}

void vitro_policy_free(vitro_policy *policy)
{
	if (!policy)
		return;
	vt_str_done(&policy->sources);
	free(policy);
}

char *vt_policy_sources(const vitro_policy *policy)
{
	struct vt_str text;

	vt_str_init(&text);
	vt_str_add(&text, "[");
	if (policy)
		vt_str_addn(&text, policy->sources.text, policy->sources.len);
	vt_str_add(&text, "]");
	char *taken = vt_str_ok(&text) ? strdup(text.text) : NULL;

	vt_str_done(&text);
	return taken;
}

/* One thing that a policy is made of: a name, a text, or a key with its value. */
struct source {
	const char *load, *json, *key, *value;
	const char *from; /* the file that a text is a part of; NULL: none */
};

/* Whether it can be applied at all: to a policy of defaults, which is thrown away. */
static int check(const struct source *source, struct vt_err *err)
{
	struct vt_policy *tried;
	int status = vt_policy_new(&tried, err);

	if (status < 0)
		return status;
	if (source->load)
		status = vt_policy_load(tried, source->load, "", err);
	else if (source->json && source->from)
		status = vt_policy_load_part(tried, source->json, strlen(source->json),
					     source->from, source->from, err);
	else if (source->json)
		status = vt_policy_load_text(tried, source->json, strlen(source->json), NULL,
					     "policy", err);
	else
		status = vt_policy_set(tried, source->key, source->value, NULL, source->key, err);
	vt_policy_free(tried);
	return status;
}

static void add_given(struct vt_str *head, const char *name, const char *text)
{
	if (text)
		vt_head_add(head, name, text);
}

/* The list is as it was where this fails. */
static int append(vitro_policy *policy, const struct source *source, struct vt_err *err)
{
	struct vt_str all, one;

	vt_str_init(&one);
	vt_head_begin(&one);
	add_given(&one, "load", source->load);
	add_given(&one, "json", source->json);
	add_given(&one, "key", source->key);
	add_given(&one, "value", source->value);
	add_given(&one, "from", source->from);
	int status = vt_head_end(&one, err);

	vt_str_init(&all);
	vt_str_addn(&all, policy->sources.text, policy->sources.len);
	if (all.len)
		vt_str_add(&all, ",");
	vt_str_addn(&all, one.text, one.len);
	vt_str_done(&one);
	if (status == 0 && !vt_str_ok(&all))
		status = vt_error_no_memory(err);
	if (status == 0) {
		vt_str_done(&policy->sources);
		policy->sources = all;
	} else {
		vt_str_done(&all);
	}
	return status;
}

static int add(vitro_policy *policy, const struct source *source, struct vitro_error *error)
{
	struct vt_err err = { 0 };
	int status = check(source, &err);

	if (status == 0)
		status = append(policy, source, &err);
	return status < 0 ? vt_error_pass(error, &err) : 0;
}

/* The supervisor has a working directory of its own: a file goes by its absolute name. */
int vitro_policy_load(vitro_policy *policy, const char *name, struct vitro_error *error)
{
	char path[PATH_MAX], cwd[PATH_MAX];

	if (!name)
		return vt_error_give(error, EINVAL, "the name of a policy is NULL");
	if (vt_builtin_find(name) || name[0] == '/')
		return add(policy, &(struct source){ .load = name }, error);
	if (!getcwd(cwd, sizeof(cwd)))
		return vt_error_give(error, errno, "the working directory has no name");
	const char *between = cwd[1] ? "/" : "";

	if (snprintf(path, sizeof(path), "%s%s%s", cwd, between, name) >= (int)sizeof(path))
		return vt_error_give(error, ENAMETOOLONG, "the name of the policy is too long");
	return add(policy, &(struct source){ .load = path }, error);
}

/* As JSON: in the text of a key some of what a path may have would be something else. */
int vt_policy_sources_reading(const vitro_policy *policy, const char *folder, char **ret_sources,
			      struct vt_err *err)
{
	AUTO_JSON json_t *more = folder ? json_pack("{s:{s:[s]}}", "files", "read", folder) : NULL;
	char *json = more ? json_dumps(more, JSON_COMPACT) : NULL;
	vitro_policy *whole = vitro_policy_new();
	int status = whole ? 0 : vt_error_no_memory(err);

	if (status == 0 && policy)
		vt_str_addn(&whole->sources, policy->sources.text, policy->sources.len);
	if (status == 0 && folder && !json)
		status = vt_fail(err, VT_STEP_POLICY, EINVAL,
				 "the name of a folder to read is not UTF-8");
	if (status == 0 && folder)
		status = check(&(struct source){ .json = json }, err);
	if (status == 0 && folder)
		status = append(whole, &(struct source){ .json = json }, err);
	char *made = status == 0 ? vt_policy_sources(whole) : NULL;

	if (status == 0 && !made)
		status = vt_error_no_memory(err);
	if (status == 0)
		*ret_sources = made;
	vitro_policy_free(whole);
	free(json);
	return status;
}

int vitro_policy_load_json(vitro_policy *policy, const char *json, struct vitro_error *error)
{
	if (!json)
		return vt_error_give(error, EINVAL, "the JSON of a policy is NULL");
	return add(policy, &(struct source){ .json = json }, error);
}

int vitro_policy_set(vitro_policy *policy, const char *key, const char *value,
		     struct vitro_error *error)
{
	if (!key || !value)
		return vt_error_give(error, EINVAL, key ? "value is NULL" : "key is NULL");
	return add(policy, &(struct source){ .key = key, .value = value }, error);
}

int vt_policy_add_part(vitro_policy *policy, const char *json, const char *file,
		       struct vitro_error *error)
{
	return add(policy, &(struct source){ .json = json, .from = file }, error);
}
