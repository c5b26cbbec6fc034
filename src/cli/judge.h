/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the acts of the self-test say about a property, and whether that is what was claimed of it.
 * Pure: the findings come from what happened alone, and the claim is looked at only after them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "plan/plan.h"

/* How one act went in its cell. */
enum vt_trial_outcome {
	VT_TRIAL_DENIED,
	VT_TRIAL_LATE,     /* denied, but the limit had been passed by then */
	VT_TRIAL_REACHED,
	VT_TRIAL_ALLOWED,  /* the policy allows it: nothing was tried */
	VT_TRIAL_UNJUDGED, /* it does not succeed outside either, or cannot be tried here */
	VT_TRIAL_UNCLEAR,  /* it succeeds outside, and inside neither was shown */
	VT_TRIAL_OUTCOMES
};

/* What it says of a property that an act was reached. */
enum vt_means { VT_MEANS_ABSENT, VT_MEANS_WEAKER };

enum vt_found { VT_FOUND_NOTHING, VT_FOUND_ABSENT, VT_FOUND_WEAKER, VT_FOUND_ENFORCED, VT_FOUNDS };

struct vt_trial {
	unsigned        property; /* an index of the caller's */
	enum vt_means   means;
	enum vt_trial_outcome outcome;
	bool            noted;    /* the plan of its own call says in a note what is weaker */
};

/* What a plan says of a property. */
struct vt_claim {
	const char   *mechanism; /* NULL: nothing is claimed, since it was not asked for */
	enum vt_grade grade;
};

struct vt_ruling {
	enum vt_found found;
	size_t        judged;   /* acts that were reached or denied */
	size_t        denied;   /* of these */
	size_t        unclear;
	bool          mismatch; /* not what was claimed */
};

/*
 * Judges one property. An act that was reached and means absent makes it absent; one that means
 * weaker, or that was denied late, weaker. No act judged: nothing is found, and nothing compared.
 *
 * The claim agrees with what was found as follows:
 *    kernel   enforced, or weaker where a note says so, of each call in which it is
 *    watched  enforced or weaker
 *    none     absent or weaker
 */
void vt_judge(const struct vt_trial *trials, size_t count, unsigned property,
	      const struct vt_claim *claim, struct vt_ruling *ret_ruling);

/* By how much a watched limit was passed before that was seen. */
struct vt_excess {
	const char *what, *unit; /* "memory", "MB" */
	long long   limit, over;
	long long   least;       /* less is not worth a word */
	/* that the plan states; 0: it states nothing */
	long long   stated;
};

/* Whether it is worth a word, and then that in why. */
bool vt_excess_tell(const struct vt_excess *excess, char *why, size_t size);

/* "denied", "unjudged" */
const char *vt_trial_outcome_name(enum vt_trial_outcome outcome);
/* "enforced", "not judged" */
const char *vt_found_name(enum vt_found found);
