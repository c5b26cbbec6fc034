/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/closest.h"
#include "base/utf8.h"
#include "tool/schema_private.h"

#define RULE(name)                                                                       \
	int name(struct vt_checking *c, const struct vt_rule *rule, const json_t *value, \
		 const struct vt_schema_place *at)

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

RULE(vt_rule_type)
{
	char want[VT_WANTED_SIZE];

	if (vt_data_types(value) & rule->types)
		return 0;
	if (vt_check_is_quiet(c))
		return -EINVAL;
	return vt_check_wrong(c, at, value, "%s", vt_data_show_types(want, rule->types));
}

RULE(vt_rule_const)
{
	char want[VT_SHOWN_SIZE];
	int status = vt_data_equal(rule->value, value, vt_check_steps(c));

	if (status < 0)
		return vt_check_stop(c, at, -status);
	if (status || vt_check_is_quiet(c))
		return status ? 0 : -EINVAL;
	/* Without a word on how two objects differ, the found one would read like the wanted one.
	 */
	if (json_is_object(rule->value) || json_is_array(rule->value))
		return vt_check_fail(c, at, "want the one value that the schema's 'const' names");
	return vt_check_wrong(c, at, value, "%s", vt_data_show(want, rule->value));
}

static int fail_enum(struct vt_checking *c, const json_t *values, const json_t *value,
		     const struct vt_schema_place *at)
{
	char want[VT_WANTED_SIZE], found[VT_SHOWN_SIZE], near[VT_CLOSEST_LONGEST + 4];
	struct vt_closest closest;

	vt_data_show_all(want, values);
	if (!json_is_string(value))
		return vt_check_wrong(c, at, value, "%s", want);
	vt_closest_init(&closest, json_string_value(value));
	for (size_t i = 0; i < json_array_size(values) && i < VT_GUESSES_MOST; i++) {
		const char *text = json_string_value(json_array_get(values, i));

		if (text)
			vt_closest_try(&closest, text, text);
	}
	if (!closest.best)
		return vt_check_wrong(c, at, value, "%s", want);
	return vt_check_fail(
		c, at, "want %s, found %s; did you mean \"%s\"?", want, vt_data_show(found, value),
		vt_utf8_show_text(near, sizeof(near), closest.best, strlen(closest.best)));
}

RULE(vt_rule_enum)
{
	size_t count = json_array_size(rule->value);

	for (size_t i = 0; i < count; i++) {
		int status = vt_data_equal(json_array_get(rule->value, i), value,
					   vt_check_steps(c));

		if (status < 0)
			return vt_check_stop(c, at, -status);
		if (status)
			return 0;
	}
	return vt_check_is_quiet(c) ? -EINVAL : fail_enum(c, rule->value, value, at);
}

/* ---- numbers ------------------------------------------------------------------------------- */

static int fail_bound(struct vt_checking *c, const json_t *value, const struct vt_schema_place *at,
		      const char *words, const json_t *bound)
{
	char shown[VT_SHOWN_SIZE];

	if (vt_check_is_quiet(c))
		return -EINVAL;
	return vt_check_wrong(c, at, value, "a number %s %s", words, vt_data_show(shown, bound));
}

RULE(vt_rule_minimum)
{
	if (vt_data_compare(value, rule->value) >= 0)
		return 0;
	return fail_bound(c, value, at, "of at least", rule->value);
}

RULE(vt_rule_maximum)
{
	if (vt_data_compare(value, rule->value) <= 0)
		return 0;
	return fail_bound(c, value, at, "of at most", rule->value);
}

RULE(vt_rule_above)
{
	if (vt_data_compare(value, rule->value) > 0)
		return 0;
	return fail_bound(c, value, at, "above", rule->value);
}

RULE(vt_rule_below)
{
	if (vt_data_compare(value, rule->value) < 0)
		return 0;
	return fail_bound(c, value, at, "below", rule->value);
}

RULE(vt_rule_multiple)
{
	/* A real is printed and read to know its decimals. */
	*vt_check_steps(c) -= json_is_real(value) ? 50 : 1;
	if (vt_exact_divides(rule->decimal, vt_exact_of(value)))
		return 0;
	return fail_bound(c, value, at, "that is a multiple of", rule->unit);
}

/* ---- strings ------------------------------------------------------------------------------- */

/* "want at least 3 characters, found 2" */
static int fail_count(struct vt_checking *c, const struct vt_schema_place *at, const char *words,
		      size_t want, const char *noun, size_t found)
{
	return vt_check_fail(c, at, "want %s %zu %s%s, found %zu", words, want, noun, plural(want),
			     found);
}

static size_t count_characters(struct vt_checking *c, const json_t *value)
{
	*vt_check_steps(c) -= (int64_t)(json_string_length(value) / VT_STEP_BYTES);
	return vt_data_length(value);
}

RULE(vt_rule_min_length)
{
	size_t count = count_characters(c, value);

	return count >= rule->count
		       ? 0
		       : fail_count(c, at, "at least", rule->count, "character", count);
}

RULE(vt_rule_max_length)
{
	size_t count = count_characters(c, value);

	return count <= rule->count ? 0
				    : fail_count(c, at, "at most", rule->count, "character", count);
}

RULE(vt_rule_pattern)
{
	char shown[VT_WANTED_SIZE];
	int status = vt_check_pattern(c, rule->pattern, json_string_value(value),
				      json_string_length(value), at);

	if (status)
		return status < 0 ? status : 0;
	if (vt_check_is_quiet(c))
		return -EINVAL;
	return vt_check_wrong(c, at, value, "text that matches '%s'",
			      vt_utf8_show_text(shown, sizeof(shown), rule->pattern->text,
						strlen(rule->pattern->text)));
}

/* ---- arrays -------------------------------------------------------------------------------- */

RULE(vt_rule_min_items)
{
	size_t count = json_array_size(value);

	return count >= rule->count ? 0 : fail_count(c, at, "at least", rule->count, "item", count);
}

RULE(vt_rule_max_items)
{
	size_t count = json_array_size(value);

	return count <= rule->count ? 0 : fail_count(c, at, "at most", rule->count, "item", count);
}

RULE(vt_rule_unique)
{
	size_t i = 0, j = 0;
	int status = vt_data_unique(value, vt_check_steps(c), &i, &j);

	(void)rule;
	if (status < 0)
		return vt_check_stop(c, at, -status);
	return status ? 0
		      : vt_check_fail(c, at, "want items that differ, found [%zu] and [%zu] equal",
				      i, j);
}

/* ---- objects ------------------------------------------------------------------------------- */

RULE(vt_rule_min_members)
{
	size_t count = json_object_size(value);

	return count >= rule->count ? 0
				    : fail_count(c, at, "at least", rule->count, "member", count);
}

RULE(vt_rule_max_members)
{
	size_t count = json_object_size(value);

	return count <= rule->count ? 0
				    : fail_count(c, at, "at most", rule->count, "member", count);
}

/* The first of names that is not in value; NULL if all are. */
static const json_t *find_missing(struct vt_checking *c, const json_t *names, const json_t *value)
{
	size_t count = json_array_size(names);

	*vt_check_steps(c) -= (int64_t)count;
	for (size_t i = 0; i < count; i++) {
		const json_t *name = json_array_get(names, i);

		if (!json_object_getn(value, json_string_value(name), json_string_length(name)))
			return name;
	}
	return NULL;
}

RULE(vt_rule_required)
{
	const json_t *missing = find_missing(c, rule->value, value);
	char shown[VT_SHOWN_SIZE];

	if (!missing || vt_check_is_quiet(c))
		return missing ? -EINVAL : 0;
	return vt_check_fail(c, at, "%s is missing", vt_data_show(shown, missing));
}

RULE(vt_rule_dependent)
{
	char shown[VT_SHOWN_SIZE], key[VT_SHOWN_SIZE];

	*vt_check_steps(c) -= (int64_t)rule->count;
	for (size_t i = 0; i < rule->count; i++) {
		const struct vt_member *member = &rule->members[i];

		if (!json_object_getn(value, member->key, member->len))
			continue;
		const json_t *missing = find_missing(c, member->names, value);

		if (missing)
			return vt_check_fail(
				c, at, "%s is missing, which '%s' needs",
				vt_data_show(shown, missing),
				vt_utf8_show_text(key, sizeof(key), member->key, member->len));
	}
	return 0;
}
