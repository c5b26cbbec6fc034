/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/members.h"

#include <string.h>

#include "base/closest.h"
#include "base/utf8.h"

static void complain_of_key(struct vt_mistakes *mistakes, const struct vt_place *place,
			    const char *key, struct vt_json_span key_span,
			    const struct vt_manifest_member *fields, size_t count)
{
	const struct vt_place at = { key_span, place->key };
	struct vt_closest closest;
	char shown[80];

	vt_closest_init(&closest, key);
	for (size_t i = 0; i < count; i++)
		vt_closest_try(&closest, fields[i].key, fields[i].key);
	for (size_t i = 0; i < count; i++)
		if (strcmp(fields[i].key, "input_schema") == 0)
			vt_closest_try(&closest, "input", fields[i].key);
	vt_utf8_show_text(shown, sizeof(shown), key, strlen(key));
	if (closest.best)
		vt_mistakes_add(mistakes, &at, "unknown key '%s'; did you mean '%s'?", shown,
				closest.best);
	else
		vt_mistakes_add(mistakes, &at, "unknown key '%s'; see vitro-tools(5)", shown);
}

/* Of a member that begins behind `at`, which is all that a scan knows of it. */
static void complain_of_depth(struct vt_mistakes *mistakes, const struct vt_place *place,
			      const char *key, const char *at)
{
	const struct vt_place member = { { at + strspn(at, "{, \t\r\n"), place->span.end },
					 place->key };
	char shown[80];

	vt_mistakes_add(mistakes, &member, "%s: this is nested too deeply",
			vt_utf8_show_text(shown, sizeof(shown), key, strlen(key)));
}

bool vt_members_find(struct vt_mistakes *mistakes, const json_t *object,
		     const struct vt_place *place, struct vt_manifest_member *fields, size_t count)
{
	struct vt_json_span rest = place->span, key_span, span;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		size_t i = 0;

		/* jansson keeps the order; what it takes and the scan does not is too deep. */
		if (!vt_json_next(&rest, &key_span, &span)) {
			complain_of_depth(mistakes, place, key, rest.at);
			return false;
		}
		while (i < count && strcmp(fields[i].key, key) != 0)
			i++;
		if (i == count) {
			complain_of_key(mistakes, place, key, key_span, fields, count);
			continue;
		}
		fields[i].value = value;
		fields[i].span = span;
	}
	return true;
}
