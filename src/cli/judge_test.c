/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MINE, OTHERS };

static const struct vt_claim kernel = { "pidns", VT_GRADE_KERNEL };
static const struct vt_claim watched = { "watchdog", VT_GRADE_WATCHED };
static const struct vt_claim none = { "none", VT_GRADE_NONE };
static const struct vt_claim unasked = { NULL, VT_GRADE_NONE };

static const struct vt_trial denied = { MINE, VT_MEANS_ABSENT, VT_TRIAL_DENIED };
static const struct vt_trial reached = { MINE, VT_MEANS_ABSENT, VT_TRIAL_REACHED };
static const struct vt_trial seen = { MINE, VT_MEANS_WEAKER, VT_TRIAL_REACHED };
static const struct vt_trial seen_noted = { MINE, VT_MEANS_WEAKER, VT_TRIAL_REACHED, true };
static const struct vt_trial reached_noted = { MINE, VT_MEANS_ABSENT, VT_TRIAL_REACHED, true };
static const struct vt_trial late = { MINE, VT_MEANS_ABSENT, VT_TRIAL_LATE };
static const struct vt_trial elsewhere = { OTHERS, VT_MEANS_ABSENT, VT_TRIAL_REACHED };
static const struct vt_trial allowed = { MINE, VT_MEANS_ABSENT, VT_TRIAL_ALLOWED };
static const struct vt_trial unjudged = { MINE, VT_MEANS_ABSENT, VT_TRIAL_UNJUDGED };
static const struct vt_trial unclear = { MINE, VT_MEANS_ABSENT, VT_TRIAL_UNCLEAR };

static struct vt_ruling judge(const struct vt_claim *claim, struct vt_trial one,
			      struct vt_trial other)
{
	const struct vt_trial trials[] = { one, elsewhere, other };
	struct vt_ruling ruling;

	vt_judge(trials, COUNT(trials), MINE, claim, &ruling);
	return ruling;
}

static void finds_by_what_happened_alone(void **state)
{
	static const struct vt_claim *const claims[] = { &kernel, &watched, &none, &unasked };

	(void)state;
	for (size_t i = 0; i < COUNT(claims); i++) {
		assert_int_equal(judge(claims[i], denied, denied).found, VT_FOUND_ENFORCED);
		assert_int_equal(judge(claims[i], denied, seen).found, VT_FOUND_WEAKER);
		assert_int_equal(judge(claims[i], late, denied).found, VT_FOUND_WEAKER);
		assert_int_equal(judge(claims[i], denied, reached).found, VT_FOUND_ABSENT);
		assert_int_equal(judge(claims[i], reached, seen).found, VT_FOUND_ABSENT);
		assert_int_equal(judge(claims[i], seen, reached).found, VT_FOUND_ABSENT);
		assert_int_equal(judge(claims[i], allowed, unjudged).found, VT_FOUND_NOTHING);
		assert_int_equal(judge(claims[i], unclear, unclear).found, VT_FOUND_NOTHING);
	}
}

static void compares_with_the_claim(void **state)
{
	static const struct {
		const struct vt_claim *claim;
		const struct vt_trial *trial;
		bool mismatch;
	} cases[] = {
		{ &kernel, &denied, false },       { &kernel, &seen, true },
		{ &kernel, &late, true },          { &kernel, &reached, true },
		{ &kernel, &unjudged, false },     { &kernel, &seen_noted, false },
		{ &kernel, &reached_noted, true }, { &watched, &denied, false },
		{ &watched, &late, false },        { &watched, &reached, true },
		{ &none, &denied, true },          { &none, &seen, false },
		{ &none, &reached, false },        { &none, &unjudged, false },
		{ &unasked, &denied, false },      { &unasked, &reached, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(judge(cases[i].claim, *cases[i].trial, allowed).mismatch,
				 cases[i].mismatch);
}

/* What one call says of itself is no word about another. */
static void compares_each_with_its_own_note(void **state)
{
	(void)state;
	assert_false(judge(&kernel, seen_noted, denied).mismatch);
	assert_false(judge(&kernel, seen_noted, seen_noted).mismatch);
	assert_true(judge(&kernel, seen_noted, seen).mismatch);
	assert_true(judge(&kernel, seen_noted, late).mismatch);
}

static void counts(void **state)
{
	struct vt_ruling ruling = judge(&kernel, late, reached);

	(void)state;
	assert_int_equal(ruling.judged, 2);
	assert_int_equal(ruling.denied, 1);
	ruling = judge(&kernel, unclear, denied);
	assert_int_equal(ruling.judged, 1);
	assert_int_equal(ruling.unclear, 1);
}

static void tells_an_excess(void **state)
{
	struct vt_excess excess = { "memory", "MB", 24, 1, 2, 40 };
	char why[160] = "as it was", small[24];

	(void)state;
	assert_false(vt_excess_tell(&excess, why, sizeof(why)));
	assert_string_equal(why, "as it was");
	excess.over = 40;
	assert_true(vt_excess_tell(&excess, why, sizeof(why)));
	assert_string_equal(why, "memory passed its limit of 24 MB by 40 MB before it was seen");
	excess.over = 41;
	assert_true(vt_excess_tell(&excess, why, sizeof(why)));
	assert_string_equal(why,
			    "memory passed its limit of 24 MB by 41 MB before it was seen, more "
			    "than the 40 MB that are stated");
	assert_true(vt_excess_tell(&excess, small, sizeof(small)));
	assert_string_equal(small, "memory passed its limit");
	excess.stated = 0;
	assert_true(vt_excess_tell(&excess, why, sizeof(why)));
	assert_string_equal(why, "memory passed its limit of 24 MB by 41 MB before it was seen");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_by_what_happened_alone),
		cmocka_unit_test(compares_with_the_claim),
		cmocka_unit_test(compares_each_with_its_own_note),
		cmocka_unit_test(counts),
		cmocka_unit_test(tells_an_excess),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
