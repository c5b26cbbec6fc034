/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/closest.h"
#include "base/utf8.h"
#include "tool/schema_private.h"

#define RULE(name)                                                                       \
	int name(struct vt_checking *c, const struct vt_rule *rule, const json_t *value, \
		 const struct vt_schema_place *at)

struct vt_checking {
	const char *name;
	struct vt_err *err;
	int64_t steps;  /* that are left */
	unsigned depth; /* of schemas that are being applied */
	unsigned quiet; /* over 0: a failure is an answer, and nobody reads about it */
};

int64_t *vt_check_steps(struct vt_checking *c)
{
	return &c->steps;
}

bool vt_check_is_quiet(const struct vt_checking *c)
{
	return c->quiet > 0;
}

__attribute__((format(printf, 4, 0))) static int fail(struct vt_checking *c,
						      const struct vt_schema_place *at,
						      const char *found, const char *fmt,
						      va_list args)
{
	char place[VT_PLACE_SIZE], what[VT_MESSAGE_SIZE];

	(void)vsnprintf(what, sizeof(what), fmt, args); /* fits */
	return vt_fail(c->err, VT_STEP_POLICY, EINVAL, found ? "%s: want %s, found %s" : "%s: %s",
		       vt_schema_place_show(place, c->name, at), what, found);
}

int vt_check_fail(struct vt_checking *c, const struct vt_schema_place *at, const char *fmt, ...)
{
	va_list args;

	if (c->quiet)
		return -EINVAL;
	va_start(args, fmt);
	int status = fail(c, at, NULL, fmt, args);
	va_end(args);
	return status;
}

int vt_check_wrong(struct vt_checking *c, const struct vt_schema_place *at, const json_t *value,
		   const char *fmt, ...)
{
	char found[VT_SHOWN_SIZE];
	va_list args;

	if (c->quiet)
		return -EINVAL;
	va_start(args, fmt);
	int status = fail(c, at, vt_data_show(found, value), fmt, args);
	va_end(args);
	return status;
}

int vt_check_stop(struct vt_checking *c, const struct vt_schema_place *at, int num)
{
	char place[VT_PLACE_SIZE];
	const char *what = num == ENOMEM   ? "out of memory"
			   : num == EILSEQ ? "the text is not UTF-8"
					   : "too much work to check; make it simpler or smaller";

	return vt_fail(c->err, VT_STEP_POLICY, num, "%s: %s",
		       vt_schema_place_show(place, c->name, at), what);
}

int vt_check_pattern(struct vt_checking *c, const struct vt_pattern *pattern, const char *text,
		     size_t len, const struct vt_schema_place *at)
{
	int status = vt_pattern_find(pattern, text, len, &c->steps);

	return status < 0 ? vt_check_stop(c, at, -status) : status;
}

/* Applies a schema. 0: it fits; -EINVAL: it does not; all else: nobody knows. */
static int check_node(struct vt_checking *c, const struct vt_schema_node *node, const json_t *value,
		      const struct vt_schema_place *at)
{
	unsigned types = vt_data_types(value);
	int status = 0;

	if (--c->steps < 0 || c->depth == VT_SCHEMA_MAX_NESTING)
		return vt_check_stop(c, at, E2BIG);
	if (node->never)
		return vt_check_wrong(c, at, value, "nothing here");
	c->depth++;
	for (size_t i = 0; i < node->count && status == 0; i++) {
		const struct vt_rule *rule = &node->rules[i];

		if (types & rule->keyword->types)
			status = rule->keyword->check(c, rule, value, at);
	}
	c->depth--;
	return status;
}

/* The same, where a failure is an answer. */
static int try_node(struct vt_checking *c, const struct vt_schema_node *node, const json_t *value,
		    const struct vt_schema_place *at)
{
	c->quiet++;
	int status = check_node(c, node, value, at);
	c->quiet--;
	return status;
}

int vt_schema_check(const struct vt_schema *schema, const json_t *value, const char *name,
		    struct vt_err *err)
{
	struct vt_checking c = { .name = name, .err = err, .steps = VT_SCHEMA_MAX_STEPS };

	return check_node(&c, schema->root, value, NULL);
}

/* ---- arrays -------------------------------------------------------------------------------- */

RULE(vt_rule_prefix)
{
	size_t count = json_array_size(value);
	int status = 0;

	for (size_t i = 0; i < rule->count && i < count && status == 0; i++)
		status = check_node(c, rule->nodes[i], json_array_get(value, i), VT_ELEMENT(at, i));
	return status;
}

RULE(vt_rule_items)
{
	size_t count = json_array_size(value);
	int status = 0;

	if (rule->node->never && count > rule->count)
		return vt_check_fail(c, VT_ELEMENT(at, rule->count),
				     "want no more than %zu items, found %zu", rule->count, count);
	for (size_t i = rule->count; i < count && status == 0; i++)
		status = check_node(c, rule->node, json_array_get(value, i), VT_ELEMENT(at, i));
	return status;
}

RULE(vt_rule_contains)
{
	size_t fitting = 0, count = json_array_size(value);

	for (size_t i = 0; i < count; i++) {
		int status = try_node(c, rule->node, json_array_get(value, i), VT_ELEMENT(at, i));

		if (status < 0 && status != -EINVAL)
			return status;
		fitting += status == 0;
	}
	if (fitting >= rule->count && fitting <= rule->most)
		return 0;
	return vt_check_fail(c, at, "want %s %zu items that fit the schema's 'contains', found %zu",
			     fitting < rule->count ? "at least" : "at most",
			     fitting < rule->count ? rule->count : rule->most, fitting);
}

/* ---- objects ------------------------------------------------------------------------------- */

RULE(vt_rule_properties)
{
	int status = 0;

	c->steps -= (int64_t)rule->count;
	for (size_t i = 0; i < rule->count && status == 0; i++) {
		const struct vt_member *member = &rule->members[i];
		const json_t *found = json_object_getn(value, member->key, member->len);

		if (found)
			status = check_node(c, member->node, found,
					    VT_MEMBER(at, member->key, member->len));
	}
	return status;
}

RULE(vt_rule_patterns)
{
	for (void *i = json_object_iter((json_t *)value); i;
	     i = json_object_iter_next((json_t *)value, i)) {
		const struct vt_schema_place *here = VT_MEMBER(at, json_object_iter_key(i),
							       json_object_iter_key_len(i));

		for (size_t j = 0; j < rule->count; j++) {
			const struct vt_member *member = &rule->members[j];
			int status = vt_check_pattern(c, member->pattern, here->key, here->len, at);

			if (status == 1)
				status = check_node(c, member->node, json_object_iter_value(i),
						    here);
			if (status < 0)
				return status;
		}
	}
	return 0;
}

/* 1: another keyword has a schema for this property; 0: none has. */
static int is_named(struct vt_checking *c, const struct vt_rule *rule,
		    const struct vt_schema_place *here)
{
	c->steps--;
	if (json_object_getn(rule->properties, here->key, here->len))
		return 1;
	for (size_t i = 0; rule->patterns && i < rule->patterns->count; i++) {
		int status = vt_check_pattern(c, rule->patterns->members[i].pattern, here->key,
					      here->len, here->up);

		if (status)
			return status;
	}
	return 0;
}

static int fail_unknown(struct vt_checking *c, const struct vt_rule *rule, const json_t *value,
			const struct vt_schema_place *here)
{
	char shown[VT_CLOSEST_LONGEST + 4];
	struct vt_closest closest;
	int guesses = VT_GUESSES_MOST;

	if (c->quiet)
		return -EINVAL;
	vt_closest_init(&closest, here->key);
	for (void *i = json_object_iter((json_t *)rule->properties); i && guesses-- > 0;
	     i = json_object_iter_next((json_t *)rule->properties, i)) {
		const char *key = json_object_iter_key(i);

		/* One that is there already is not the one that was meant. */
		if (!json_object_get(value, key))
			vt_closest_try(&closest, key, key);
	}
	if (!closest.best)
		return vt_check_fail(c, here, "there is no such property");
	return vt_check_fail(
		c, here, "there is no such property; did you mean '%s'?",
		vt_utf8_show_text(shown, sizeof(shown), closest.best, strlen(closest.best)));
}

RULE(vt_rule_additional)
{
	for (void *i = json_object_iter((json_t *)value); i;
	     i = json_object_iter_next((json_t *)value, i)) {
		const struct vt_schema_place *here = VT_MEMBER(at, json_object_iter_key(i),
							       json_object_iter_key_len(i));
		int status = is_named(c, rule, here);

		if (status == 0 && rule->node->never)
			return fail_unknown(c, rule, value, here);
		if (status == 0)
			status = check_node(c, rule->node, json_object_iter_value(i), here);
		if (status < 0)
			return status;
	}
	return 0;
}

RULE(vt_rule_names)
{
	int status = 0;

	for (void *i = json_object_iter((json_t *)value); i && status == 0;
	     i = json_object_iter_next((json_t *)value, i)) {
		const struct vt_schema_place here = { at, json_object_iter_key(i),
						      json_object_iter_key_len(i), true };
		AUTO_JSON json_t *name = json_stringn_nocheck(here.key, here.len);

		c->steps -= 4 + (int64_t)(here.len / VT_STEP_BYTES);
		status = name ? check_node(c, rule->node, name, &here)
			      : vt_check_stop(c, at, ENOMEM);
	}
	return status;
}

RULE(vt_rule_dependent_schemas)
{
	int status = 0;

	c->steps -= (int64_t)rule->count;
	for (size_t i = 0; i < rule->count && status == 0; i++)
		if (json_object_getn(value, rule->members[i].key, rule->members[i].len))
			status = check_node(c, rule->members[i].node, value, at);
	return status;
}

/* ---- the same value ------------------------------------------------------------------------ */

RULE(vt_rule_ref)
{
	return check_node(c, rule->node, value, at);
}

RULE(vt_rule_all)
{
	int status = 0;

	for (size_t i = 0; i < rule->count && status == 0; i++)
		status = check_node(c, rule->nodes[i], value, at);
	return status;
}

RULE(vt_rule_not)
{
	int status = try_node(c, rule->node, value, at);
	char found[VT_SHOWN_SIZE];

	if (status < 0)
		return status == -EINVAL ? 0 : status;
	return vt_check_fail(c, at, "found %s, which the schema's 'not' excludes",
			     vt_data_show(found, value));
}

RULE(vt_rule_if)
{
	int status = try_node(c, rule->node, value, at);

	if (status < 0 && status != -EINVAL)
		return status;
	return check_node(c, status == 0 ? rule->then : rule->otherwise, value, at);
}

/* Whether a value is of the kind that a schema is about, as far as it says by a type or a fixed
 * value. */
static bool is_meant(struct vt_checking *c, const struct vt_schema_node *node, const json_t *value,
		     bool is_member)
{
	for (size_t i = 0; i < node->count; i++) {
		const struct vt_rule *rule = &node->rules[i];
		vt_rule_check *check = rule->keyword->check;
		bool is_fixed = check == vt_rule_const ||
				(check == vt_rule_enum && json_array_size(rule->value) == 1);

		if (check == vt_rule_ref && !is_meant(c, rule->node, value, is_member))
			return false;
		if ((is_fixed ||
		     (!is_member && (check == vt_rule_type || check == vt_rule_enum))) &&
		    check(c, rule, value, NULL) == -EINVAL)
			return false;
		/* { "kind": "circle", ... } is meant for the alternative that wants this kind. */
		for (size_t j = 0; check == vt_rule_properties && !is_member && j < rule->count;
		     j++) {
			const struct vt_member *member = &rule->members[j];
			const json_t *found = json_object_getn(value, member->key, member->len);

			if (found && !is_meant(c, member->node, found, true))
				return false;
		}
	}
	return !node->never;
}

/* "want a string, an array or null", if all alternatives can be put in words. */
static int fail_listed(struct vt_checking *c, const struct vt_rule *rule, const json_t *value,
		       const struct vt_schema_place *at)
{
	char words[VT_WANTED_SIZE] = "";
	size_t used = 0;

	for (size_t i = 0; i < rule->count; i++) {
		const char *before = i == 0 ? "" : i + 1 == rule->count ? " or " : ", ";
		size_t len = strlen(before);

		if (used + len >= sizeof(words))
			break;
		memcpy(words + used, before, len + 1);
		if (!vt_schema_node_show(words + used + len, sizeof(words) - used - len,
					 rule->nodes[i]))
			return vt_check_wrong(c, at, value, "one of the %zu alternatives of '%s'",
					      rule->count, rule->keyword->name);
		used += strlen(words + used);
	}
	return vt_check_wrong(c, at, value, "%s", words);
}

/* None fits. Where only one is about such values, what is wrong by that one is what helps. */
static int fail_all(struct vt_checking *c, const struct vt_rule *rule, const json_t *value,
		    const struct vt_schema_place *at)
{
	const struct vt_schema_node *meant = NULL;
	size_t count = 0;

	if (c->quiet)
		return -EINVAL;
	c->quiet++;
	for (size_t i = 0; i < rule->count; i++) {
		if (!is_meant(c, rule->nodes[i], value, false))
			continue;
		meant = rule->nodes[i];
		count++;
	}
	c->quiet--;
	int status = count == 1 ? check_node(c, meant, value, at) : 0;

	return status < 0 ? status : fail_listed(c, rule, value, at);
}

RULE(vt_rule_any)
{
	for (size_t i = 0; i < rule->count; i++) {
		int status = try_node(c, rule->nodes[i], value, at);

		if (status != -EINVAL)
			return status;
	}
	return fail_all(c, rule, value, at);
}

RULE(vt_rule_one)
{
	size_t first = rule->count;

	for (size_t i = 0; i < rule->count; i++) {
		int status = try_node(c, rule->nodes[i], value, at);

		if (status < 0 && status != -EINVAL)
			return status;
		if (status == 0 && first < rule->count)
			return vt_check_fail(c, at,
					     "want just one of the alternatives of 'oneOf', but "
					     "[%zu] and [%zu] both fit",
					     first, i);
		if (status == 0)
			first = i;
	}
	return first < rule->count ? 0 : fail_all(c, rule, value, at);
}
