/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as `vitro explain --json` prints it, for a program; golden tests compare it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "plan/grade.h"
#include "plan/plan.h"
#include "policy/policy.h"

static json_t *properties_json(const struct vt_plan *plan, enum vt_require asked)
{
	json_t *list = json_array();

	for (int i = 0; i < VT_PROPERTIES; i++) {
		const struct vt_holding *h = &plan->holdings[i];

		list = vt_json_append(
			list, json_pack("{s:s, s:s, s:s?, s:s?, s:o, s:b}", "name", h->name, "key",
					h->key, "mechanism", h->mechanism, "grade",
					h->mechanism ? vt_grade_name(h->grade) : NULL, "note",
					vt_json_string(*h->note ? h->note : NULL), "refused",
					!vt_grade_suffices(h, (enum vt_property)i, asked)));
	}
	return list;
}

/* By the names that policies have for them. */
static json_t *limits_json(const struct vt_plan *plan)
{
	int64_t tmp = plan->bare ? plan->watched_tmp_bytes : plan->scratch_bytes;

	return json_pack("{s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:o, s:I, s:o, s:I, s:I}", "wall_ms",
			 (json_int_t)plan->wall_ms, "grace_ms", (json_int_t)plan->grace_ms,
			 "cpu_ms", vt_json_count(plan->cpu_ms), "cpus",
			 plan->cpu_share > 0 ? json_real(plan->cpu_share) : json_null(),
			 "memory_mb", (json_int_t)(plan->memory_bytes >> 20), "pids",
			 (json_int_t)plan->pids, "open_files", (json_int_t)plan->open_files,
			 "file_mb",
			 plan->lower_file_kb ? json_real((double)plan->lower_file_kb / 1024)
					     : json_integer(plan->file_mb),
			 "tmp_mb", (json_int_t)(tmp >> 20), "tmp_inodes",
			 plan->bare ? json_null() : json_integer(plan->scratch_inodes), "stdout_kb",
			 (json_int_t)(plan->stdout_bytes >> 10), "stderr_kb",
			 (json_int_t)(plan->stderr_bytes >> 10));
}

static json_t *ids_json(uint32_t uid, uint32_t gid)
{
	return json_pack("{s:I, s:I}", "uid", (json_int_t)uid, "gid", (json_int_t)gid);
}

static json_t *user_json(const struct vt_plan *plan)
{
	json_t *own = plan->own_ids ? json_pack("[I, I]", (json_int_t)plan->id_base,
						(json_int_t)plan->id_base + plan->id_count - 1)
				    : json_null();

	return json_pack("{s:o, s:o, s:o}", "inside",
			 plan->bare ? json_null() : ids_json(plan->inner_uid, plan->inner_gid),
			 "caller",
			 plan->own_ids ? json_null() : ids_json(plan->outer_uid, plan->outer_gid),
			 "own", own);
}

/* As it is inside: builds have their places without the first slash. */
static json_t *place_json(const struct vt_build *build)
{
	struct vt_str place;

	vt_str_init(&place);
	vt_str_addf(&place, "/%s", build->to);
	json_t *json = vt_str_ok(&place) ? vt_json_text(place.text, place.len) : NULL;

	vt_str_done(&place);
	return json;
}

static json_t *file_json(const struct vt_plan *plan, const struct vt_build *build, const char *kind)
{
	const struct vt_idmap *owner = build->idmap >= 0 ? &plan->idmaps[build->idmap] : NULL;
	bool bind = build->act == VT_ACT_BIND;
	/* The text of a file that is made is not where it comes from. */
	bool led = build->act == VT_ACT_LINK || (bind && strcmp(build->from + 1, build->to) != 0);

	return json_pack("{s:s, s:o, s:o, s:b, s:o}", "kind", kind, "path", place_json(build),
			 "from", vt_json_string(led ? build->from : NULL), "granted",
			 bind && build->granted, "owner",
			 bind && owner ? ids_json(owner->uid, owner->gid) : json_null());
}

static json_t *files_json(const struct vt_plan *plan)
{
	json_t *list = json_array();

	for (size_t i = 0; i < plan->build_count; i++) {
		const char *kind = vt_build_kind(&plan->builds[i]);

		if (kind)
			list = vt_json_append(list, file_json(plan, &plan->builds[i], kind));
	}
	return list;
}

static json_t *denied_json(const struct vt_plan *plan)
{
	json_t *list = json_array();

	for (size_t i = 0; i < plan->denial_count; i++)
		list = vt_json_append(
			list, json_pack("{s:o, s:o}", "path", vt_json_string(plan->denials[i].path),
					"closed", vt_json_string(plan->denials[i].closed)));
	return list;
}

static json_t *protected_json(const struct vt_plan *plan)
{
	json_t *list = json_array();

	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		for (size_t j = 0; j < build->guard_count; j++) {
			const char *held = vt_guard_held(&build->guards[j]);
			struct vt_str path;

			if (!held)
				continue;
			vt_str_init(&path);
			vt_str_addf(&path, "%s/%s", build->from, build->guards[j].path);
			list = vt_json_append(
				list, json_pack("{s:o, s:s}", "path",
						vt_str_ok(&path) ? vt_json_text(path.text, path.len)
								 : NULL,
						"held", held));
			vt_str_done(&path);
		}
	}
	return list;
}

static json_t *texts_json(const char *const *texts, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		list = vt_json_append(list, vt_json_string(texts[i]));
	return list;
}

static json_t *plan_json(const struct vt_plan *plan, enum vt_require asked, bool refused)
{
	size_t variables = 0;

	if (!plan)
		return json_null();
	while (plan->envp[variables])
		variables++;
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "require",
			 vt_require_name(refused ? VT_REQUIRE_BEST_EFFORT : asked), "level",
			 plan->level, "properties", properties_json(plan, asked), "limits",
			 limits_json(plan), "user", user_json(plan), "cwd",
			 vt_json_string(plan->cwd), "files", files_json(plan), "denied",
			 denied_json(plan), "protected", protected_json(plan), "unlooked",
			 vt_json_string(plan->unlooked), "environment",
			 texts_json((const char *const *)plan->envp, variables), "notes",
			 texts_json(plan->notes, plan->note_count));
}

int vt_plan_explain_json(const struct vt_plan *plan, enum vt_require asked, const char *refusal,
			 struct vt_str *out, struct vt_err *err)
{
	AUTO_JSON json_t *root = json_pack("{s:b, s:o, s:o}", "ok", !refusal, "refused",
					   vt_json_string(refusal), "plan",
					   plan_json(plan, asked, refusal != NULL));
	/* 15 digits print 0.1 as it was written. */
	char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;

	if (!text)
		return vt_fail(err, VT_STEP_OUTPUT, ENOMEM, "print the plan");
	vt_str_addf(out, "%s\n", text);
	free(text);
	return 0;
}
