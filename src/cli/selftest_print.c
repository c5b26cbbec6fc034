/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/selftest.h"

enum {
	NAME_WIDTH = 12,
	CLAIM_WIDTH = 28,
	FOUND_WIDTH = 12,
	TEXT_SIZE = VT_WHY_SIZE + 3 * VT_SAID_SIZE
};

bool vt_selftest_ok(const struct vt_selftest *test)
{
	return test->judged > 0 && test->mismatches == 0 && test->unclear == 0;
}

static void name_claim(const struct vt_claim *claim, const struct vt_ruling *ruling, char *buf,
		       size_t size)
{
	if (!claim->mechanism)
		(void)snprintf(buf, size, "%s", ruling->judged ? "not asked for" : "-");
	else if (claim->grade == VT_GRADE_NONE)
		(void)snprintf(buf, size, "none");
	else
		(void)snprintf(buf, size, "%s, %s", vt_grade_name(claim->grade), claim->mechanism);
}

static size_t count(const struct vt_selftest *test, unsigned property,
		    enum vt_trial_outcome outcome)
{
	size_t found = 0;

	for (size_t i = 0; i < vt_try_count; i++)
		found += vt_tries[i].property == property && test->tried[i].outcome == outcome;
	return found;
}

static void add_property(struct vt_str *out, const struct vt_selftest *test, unsigned property)
{
	const struct vt_ruling *ruling = &test->rulings[property];
	size_t allowed = count(test, property, VT_TRIAL_ALLOWED);
	size_t unjudged = count(test, property, VT_TRIAL_UNJUDGED);
	char claim[64];

	name_claim(&test->claims[property], ruling, claim, sizeof(claim));
	vt_str_addf(out, "%-*s%-*s%-*s%zu of %zu denied", NAME_WIDTH, vt_tested_name(property),
		    CLAIM_WIDTH, claim, FOUND_WIDTH, vt_found_name(ruling->found), ruling->denied,
		    ruling->judged);
	if (ruling->unclear)
		vt_str_addf(out, ", %zu unclear", ruling->unclear);
	if (allowed)
		vt_str_addf(out, ", %zu allowed", allowed);
	if (unjudged)
		vt_str_addf(out, ", %zu not judged", unjudged);
	vt_str_add(out, ruling->mismatch ? "   MISMATCH\n" : "\n");
}

/* One act, and what became of it: "act label (door): why: what it said". */
static void describe(const struct vt_tried *tried, char *buf, size_t size)
{
	const char *label = tried->row->label, *why = tried->why;
	const char *said = tried->outcome == VT_TRIAL_UNJUDGED ? "" : tried->inside.line;

	/* Where nothing else says what it means, the act's own sentence does. */
	if (tried->outcome == VT_TRIAL_REACHED && !*why)
		why = tried->sentence;
	(void)snprintf(buf, size, "%s%s%s (%s): %s%s%s", tried->row->act, label ? " " : "",
		       label ? label : "", tried->door, why, *why && *said ? ": " : "", said);
}

static void add_act(struct vt_str *out, const struct vt_tried *tried)
{
	char text[TEXT_SIZE];

	describe(tried, text, sizeof(text));
	vt_str_addf(out, "%-*s", NAME_WIDTH, vt_tested_name(tried->row->property));
	vt_str_wrap(out, text, NAME_WIDTH, NAME_WIDTH + 2);
}

/* Whether there is nothing to say of the one that is not said of the other: one cause can stop
 * many. */
static bool is_alike(const struct vt_tried *one, const struct vt_tried *other)
{
	return one->outcome == other->outcome && *one->why && strcmp(one->why, other->why) == 0 &&
	       (one->outcome == VT_TRIAL_UNJUDGED ||
		strcmp(one->inside.line, other->inside.line) == 0);
}

/* Whether there is another like this one: any at all, or before it. */
static bool has_like(const struct vt_selftest *test, size_t index, bool before)
{
	for (size_t i = 0; i < (before ? index : vt_try_count); i++)
		if (i != index && is_alike(&test->tried[i], &test->tried[index]))
			return true;
	return false;
}

/* What is to be said of several, once, with all of them. */
static void add_alike(struct vt_str *out, const struct vt_selftest *test, size_t index)
{
	const struct vt_tried *first = &test->tried[index];
	const char *said = first->outcome == VT_TRIAL_UNJUDGED ? "" : first->inside.line;
	const char *sep = ": ";
	struct vt_str text;

	vt_str_init(&text);
	vt_str_addf(&text, "%s%s%s", first->why, *said ? ": " : "", said);
	for (size_t i = index; i < vt_try_count; i++) {
		if (!is_alike(&test->tried[i], first))
			continue;
		vt_str_addf(&text, "%s%s", sep, test->tried[i].row->act);
		sep = ", ";
	}
	out->failed = out->failed || !vt_str_ok(&text);
	vt_str_addf(out, "%-*s", NAME_WIDTH, "several");
	vt_str_wrap(out, text.text, NAME_WIDTH, NAME_WIDTH + 2);
	vt_str_done(&text);
}

static void add_section(struct vt_str *out, const struct vt_selftest *test, const char *title,
			enum vt_trial_outcome outcome)
{
	bool any = false;

	for (size_t i = 0; i < vt_try_count; i++) {
		if (test->tried[i].outcome != outcome || has_like(test, i, true))
			continue;
		if (!any)
			vt_str_addf(out, "\n%s\n", title);
		any = true;
		if (has_like(test, i, false))
			add_alike(out, test, i);
		else
			add_act(out, &test->tried[i]);
	}
}

static void add_mismatches(struct vt_str *out, const struct vt_selftest *test)
{
	char text[TEXT_SIZE];

	for (unsigned i = 0; i < VT_TESTED_COUNT; i++) {
		const struct vt_ruling *ruling = &test->rulings[i];
		const struct vt_claim *claim = &test->claims[i];

		if (!ruling->mismatch)
			continue;
		(void)snprintf(text, sizeof(text),
			       "MISMATCH: %s: vitro claims %s (%s), and the acts find it %s. %s",
			       vt_tested_name(i), vt_grade_name(claim->grade), claim->mechanism,
			       vt_found_name(ruling->found),
			       ruling->found == VT_FOUND_ENFORCED
				       ? "It holds better than vitro says; please report it."
				       : "Do not rely on it here, and please report it: "
					 "SECURITY.md says how.");
		vt_str_add(out, "\n");
		vt_str_wrap(out, text, 0, 2);
	}
}

static void add_sum(struct vt_str *out, const struct vt_selftest *test)
{
	if (test->judged == 0 && test->unclear == 0) {
		vt_str_add(out, "\nself-test: no act could be judged here\n");
		return;
	}
	vt_str_addf(out, "\nself-test: %zu acts, %zu mismatch%s", test->judged, test->mismatches,
		    test->mismatches == 1 ? "" : "es");
	if (test->unclear)
		vt_str_addf(out, ", %zu unclear", test->unclear);
	vt_str_add(out, "\n");
}

void vt_selftest_text(const struct vt_selftest *test, struct vt_str *out)
{
	vt_str_addf(out,
		    "vitro %s: forbidden acts, each tried outside and then inside a cell, as %s\n",
		    VITRO_VERSION, test->caller);
	if (test->refusal.num) {
		vt_str_add(out, "\n");
		vt_str_wrap(out, test->refusal.what, 0, 0);
		vt_str_add(out, "With require=best-effort:\n");
	}
	vt_str_addf(out, "\n%-*s%-*s%-*s%s\n", NAME_WIDTH, "PROPERTY", CLAIM_WIDTH, "CLAIMED",
		    FOUND_WIDTH, "FOUND", "ACTS");
	for (unsigned i = 0; i < VT_TESTED_COUNT; i++)
		add_property(out, test, i);
	add_section(out, test, "Not denied:", VT_TRIAL_REACHED);
	add_section(out, test, "Stopped late:", VT_TRIAL_LATE);
	add_section(out, test, "Unclear, though it works outside:", VT_TRIAL_UNCLEAR);
	add_section(out, test, "Not judged here:", VT_TRIAL_UNJUDGED);
	add_mismatches(out, test);
	add_sum(out, test);
}

static json_t *text_or_null(const char *text)
{
	return text && *text ? vt_json_text(text, strlen(text)) : json_null();
}

static json_t *act_json(const struct vt_tried *tried)
{
	const struct vt_try *row = tried->row;

	return json_pack(
		"{s:s, s:o, s:s, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o}", "act", row->act, "label",
		text_or_null(row->label), "property", vt_tested_name(row->property), "mechanism",
		text_or_null(tried->door), "sentence", text_or_null(tried->sentence), "outcome",
		vt_trial_outcome_name(tried->outcome), "reached_means",
		row->weaker ? "weaker" : "absent", "outside", text_or_null(tried->outside.line),
		"inside", text_or_null(tried->inside.line), "status", text_or_null(tried->status),
		"why", text_or_null(tried->why));
}

static json_t *property_json(const struct vt_selftest *test, unsigned property)
{
	const struct vt_ruling *ruling = &test->rulings[property];
	const struct vt_claim *claim = &test->claims[property];
	json_t *claimed = claim->mechanism
				  ? json_pack("{s:s, s:s, s:o}", "mechanism", claim->mechanism,
					      "grade", vt_grade_name(claim->grade), "note",
					      text_or_null(test->notes[property]))
				  : json_null();

	return json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:b}", "name", vt_tested_name(property),
			 "claimed", claimed, "found", vt_found_name(ruling->found), "judged",
			 (json_int_t)ruling->judged, "denied", (json_int_t)ruling->denied,
			 "unclear", (json_int_t)ruling->unclear, "mismatch", ruling->mismatch);
}

json_t *vt_selftest_json(const struct vt_selftest *test)
{
	json_t *properties = json_array(), *acts = json_array();

	for (unsigned i = 0; i < VT_TESTED_COUNT; i++)
		if (json_array_append_new(properties, property_json(test, i)) < 0)
			goto failed;
	for (size_t i = 0; i < vt_try_count; i++)
		if (json_array_append_new(acts, act_json(&test->tried[i])) < 0)
			goto failed;
	return json_pack("{s:s, s:b, s:o, s:I, s:I, s:I, s:o, s:o}", "version", VITRO_VERSION, "ok",
			 vt_selftest_ok(test), "refused",
			 text_or_null(test->refusal.num ? test->refusal.what : ""), "judged",
			 (json_int_t)test->judged, "mismatches", (json_int_t)test->mismatches,
			 "unclear", (json_int_t)test->unclear, "properties", properties, "acts",
			 acts);
failed:
	json_decref(properties);
	json_decref(acts);
	return NULL;
}
