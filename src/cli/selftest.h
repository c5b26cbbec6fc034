/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test: tries every act of cli/acts.h outside and inside a cell, judges each property by
 * what happened, and compares with what the plans of those very calls claimed. Leaves nothing
 * behind and touches nothing that it did not make.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/acts.h"
#include "cli/attempt.h"
#include "cli/judge.h"
#include "policy/policy.h"

enum { VT_WHY_SIZE = 768 }; /* room for a verdict's message and some words */

/* One act and all that is known of it. Texts are "" where there is nothing to say. */
struct vt_tried {
	const struct vt_try *row;
	const char          *door, *sentence;       /* vitro-escape's own words for it */
	enum vt_trial_outcome      outcome;
	bool                 noted;                 /* the call's plan says what is weaker */
	struct vt_said       outside, inside;
	const char          *status;                /* of the call; NULL: none was made */
	char                 why[VT_WHY_SIZE];      /* why it was not judged; what is weaker */
};

struct vt_selftest {
	struct vt_arena   *arena;
	struct vt_tried   *tried;    /* vt_try_count of them */
	struct vt_claim    claims[VT_TESTED_COUNT];
	const char        *notes[VT_TESTED_COUNT];
	struct vt_ruling   rulings[VT_TESTED_COUNT];
	size_t             judged, mismatches, unclear;
	const char        *caller;   /* vt_cli_caller() */
	struct vt_err      refusal;  /* of the policy as it is; num 0: none */
	int                cancelled; /* the signal that ended it early; 0: none */
};

/*
 * Runs it. policy is changed. progress: a descriptor for a line that says where it is, -1: none.
 * What was found is in *ret_test, to be freed by vt_selftest_done(); an error means that there is
 * no report.
 */
int  vt_selftest_run(struct vt_policy *policy, int progress, struct vt_selftest *ret_test,
		     struct vt_err *err);
void vt_selftest_done(struct vt_selftest *test);

/* Whether everything is as claimed. */
bool vt_selftest_ok(const struct vt_selftest *test);

/* The report for a person, and for a program (NULL: out of memory). */
void    vt_selftest_text(const struct vt_selftest *test, struct vt_str *out);
json_t *vt_selftest_json(const struct vt_selftest *test);
