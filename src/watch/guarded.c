/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "kernel/mount.h"

enum {
	EVENTS_MOST = 64,        /* that a result tells; the rest is counted */
	EVENT_BYTES_MOST = 8192, /* the same, of their paths together: a frame's head has them */
};

static json_t *list_of(json_t *root, const char *key)
{
	json_t *list = json_object_get(root, key);

	if (!list && (list = json_array()) && json_object_set_new(root, key, list) < 0)
		list = NULL;
	return list;
}

/* Out of memory a result says less. */
void vt_guarded_tell(struct vt_result *result, const char *folder, enum vt_guard_event event,
		     const char *path, const char *to, int num)
{
	static const char *const lists[] = {
		[VT_GUARD_APART] = "set_apart",
		[VT_GUARD_STUCK] = "set_apart",
		[VT_GUARD_UNSEEN] = "unseen",
		[VT_GUARD_REPLACED] = "replaced",
	};
	const char *slash = strrchr(path, '/');
	struct vt_str from, place;
	json_t *item = NULL;

	if (!result->guarded && !(result->guarded = json_object()))
		return;
	vt_str_init(&from);
	vt_str_init(&place);
	vt_str_addf(&from, "%s/%s", folder, path);
	vt_str_addf(&place, "%s/%.*s%s", folder, (int)(slash ? slash + 1 - path : 0), path,
		    to ? to : "");
	result->guarded_bytes += from.len + place.len;
	if (result->guarded_count++ >= EVENTS_MOST || result->guarded_bytes > EVENT_BYTES_MOST) {
		json_t *more = json_object_get(result->guarded, "more");

		(void)json_object_set_new(result->guarded, "more",
					  json_integer(json_integer_value(more) + 1));
	} else if (vt_str_ok(&from) && vt_str_ok(&place)) {
		item = vt_json_text(from.text, from.len);
		if (event == VT_GUARD_UNSEEN)
			item = json_pack("{s:o}", "path", item);
		else if (event != VT_GUARD_REPLACED)
			item = json_pack("{s:o, s:o}", "path", item, "to",
					 to ? vt_json_text(place.text, place.len) : json_null());
		if (item && !to && event != VT_GUARD_REPLACED)
			(void)json_object_set_new(item, "error", vt_json_string(strerror(num)));
		(void)json_array_append_new(list_of(result->guarded, lists[event]), item);
	}
	vt_str_done(&from);
	vt_str_done(&place);
}

/* The granted folder, if it is the one that the plan saw. */
static int open_folder(const struct vt_build *build)
{
	struct vt_err err;
	AUTO_CLOSE int fd = open(build->from, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && vt_mount_check(fd, build->dev, build->ino, build->from, &err) == 0
		       ? vt_fd_take(&fd)
		       : -1;
}

int vt_guarded_begin(struct vt_guarded *guarded, const struct vt_plan *plan, struct vt_err *err)
{
	size_t at = 0, i = 0;

	*guarded = (struct vt_guarded){ .plan = plan };
	if (!plan->guard_count || plan->rehearsal)
		return 0;
	guarded->seen = calloc(plan->guard_count, sizeof(*guarded->seen));
	if (!guarded->seen)
		return vt_fail(err, VT_STEP_MOUNTS, ENOMEM, "note what is protected");
	for (; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];
		AUTO_CLOSE int fd = build->guard_count ? open_folder(build) : -1;

		if (!build->guard_count)
			continue;
		if (fd < 0)
			break; /* nothing is mounted of another folder either: the call fails */
		vt_guard_note(build, fd, guarded->seen + at);
		at += build->guard_count;
	}
	guarded->first_unseen = i;
	return 0;
}

struct telling {
	struct vt_result *result;
	const char *folder;
};

static void tell(void *user, enum vt_guard_event event, const char *path, const char *to, int num)
{
	struct telling *telling = user;

	vt_guarded_tell(telling->result, telling->folder, event, path, to, num);
}

void vt_guarded_end(struct vt_guarded *guarded, struct vt_result *result)
{
	const struct vt_plan *plan = guarded->plan;
	size_t at = 0;

	for (size_t i = 0; guarded->seen && i < guarded->first_unseen; i++) {
		const struct vt_build *build = &plan->builds[i];
		struct telling telling = { result, build->from };
		const struct vt_guard_teller teller = { tell, &telling };

		if (!build->guard_count)
			continue;
		AUTO_CLOSE int fd = open_folder(build);

		if (fd >= 0)
			vt_guard_judge(build, fd, guarded->seen + at, result->call_id, &teller);
		else
			tell(&telling, VT_GUARD_UNSEEN, "", NULL, ESTALE);
		at += build->guard_count;
	}
	free(guarded->seen);
	guarded->seen = NULL;
}
