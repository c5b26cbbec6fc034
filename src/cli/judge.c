/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/judge.h"

#include <stdio.h>

const char *vt_trial_outcome_name(enum vt_trial_outcome outcome)
{
	static const char *const names[VT_TRIAL_OUTCOMES] = {
		[VT_TRIAL_DENIED] = "denied",     [VT_TRIAL_LATE] = "denied late",
		[VT_TRIAL_REACHED] = "reached",   [VT_TRIAL_ALLOWED] = "allowed",
		[VT_TRIAL_UNJUDGED] = "unjudged", [VT_TRIAL_UNCLEAR] = "unclear",
	};

	return names[outcome];
}

const char *vt_found_name(enum vt_found found)
{
	static const char *const names[VT_FOUNDS] = {
		[VT_FOUND_NOTHING] = "not judged",
		[VT_FOUND_ABSENT] = "absent",
		[VT_FOUND_WEAKER] = "weaker",
		[VT_FOUND_ENFORCED] = "enforced",
	};

	return names[found];
}

/* What one act leaves of what was found before it. */
static enum vt_found lower(enum vt_found found, const struct vt_trial *trial)
{
	enum vt_found left = VT_FOUND_ENFORCED;

	if (trial->outcome == VT_TRIAL_REACHED)
		left = trial->means == VT_MEANS_ABSENT ? VT_FOUND_ABSENT : VT_FOUND_WEAKER;
	else if (trial->outcome == VT_TRIAL_LATE)
		left = VT_FOUND_WEAKER;
	return found == VT_FOUND_NOTHING || left < found ? left : found;
}

static bool differs(const struct vt_claim *claim, enum vt_found found, bool unnoted)
{
	if (!claim->mechanism || found == VT_FOUND_NOTHING)
		return false;
	switch (claim->grade) {
	case VT_GRADE_KERNEL:
		return found == VT_FOUND_ABSENT || (found == VT_FOUND_WEAKER && unnoted);
	case VT_GRADE_WATCHED:
		return found == VT_FOUND_ABSENT;
	case VT_GRADE_NONE:
		return found == VT_FOUND_ENFORCED;
	}
	return true;
}

void vt_judge(const struct vt_trial *trials, size_t count, unsigned property,
	      const struct vt_claim *claim, struct vt_ruling *ret_ruling)
{
	struct vt_ruling ruling = { .found = VT_FOUND_NOTHING };
	bool unnoted = false;

	for (size_t i = 0; i < count; i++) {
		const struct vt_trial *trial = &trials[i];

		if (trial->property != property)
			continue;
		switch (trial->outcome) {
		case VT_TRIAL_DENIED:
		case VT_TRIAL_LATE:
			ruling.denied++;
			/* fall through */
		case VT_TRIAL_REACHED:
			ruling.judged++;
			ruling.found = lower(ruling.found, trial);
			unnoted |= trial->outcome != VT_TRIAL_DENIED && !trial->noted;
			break;
		case VT_TRIAL_UNCLEAR:
			ruling.unclear++;
			break;
		default:
			break;
		}
	}
	ruling.mismatch = differs(claim, ruling.found, unnoted);
	*ret_ruling = ruling;
}

bool vt_excess_tell(const struct vt_excess *excess, char *why, size_t size)
{
	if (excess->over < excess->least)
		return false;
	int len = snprintf(why, size,
			   "%s passed its limit of %lld %s by %lld %s before it was seen",
			   excess->what, excess->limit, excess->unit, excess->over, excess->unit);

	if (excess->stated && excess->over > excess->stated && len >= 0 && (size_t)len < size)
		(void)snprintf(why + len, size - (size_t)len,
			       ", more than the %lld %s that are stated", excess->stated,
			       excess->unit); /* cut is fine */
	return true;
}
