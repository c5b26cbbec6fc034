/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as `vitro explain` prints it, for a person; golden tests compare it. */
#include <string.h>

#include "plan/plan.h"

enum {
	NAME_WIDTH = 12,
	MECHANISM_WIDTH = 19,
	GRADE_WIDTH = 9,
	NOTE_AT = NAME_WIDTH + MECHANISM_WIDTH + GRADE_WIDTH,
	GUARD_WIDTH = 9,
	WATCHED_AT = 4,
};

const char *vt_grade_name(enum vt_grade grade)
{
	static const char *const names[] = { "none", "watched", "kernel" };

	return names[grade];
}

static void explain_holding(const struct vt_holding *h, struct vt_str *out)
{
	const char *mechanism = h->mechanism ? h->mechanism : "-";
	const char *grade = h->mechanism ? vt_grade_name(h->grade) : "-";
	const char *note = h->mechanism || *h->note ? h->note : "not asked for";

	vt_str_addf(out, "%-*s%-*s", NAME_WIDTH, h->name, MECHANISM_WIDTH, mechanism);
	vt_str_addf(out, "%-*s", *note ? GRADE_WIDTH : 0, grade);
	vt_str_wrap(out, note, NOTE_AT, NOTE_AT);
}

static void explain_holdings(const struct vt_plan *plan, struct vt_str *out)
{
	vt_str_addf(out, "%-*s%-*s%s\n", NAME_WIDTH, "PROPERTY", MECHANISM_WIDTH, "HELD BY",
		    "GRADE");
	for (size_t i = 0; i < VT_PROPERTIES; i++)
		explain_holding(&plan->holdings[i], out);
}

/* Paths and variables hold what anybody wrote into them. */
static void show(struct vt_str *out, const char *before, const char *text)
{
	vt_str_add(out, before);
	vt_str_show(out, text, strlen(text));
}

static double in_seconds(int64_t ms)
{
	return (double)ms / 1000;
}

static void explain_limits(const struct vt_plan *plan, struct vt_str *out)
{
	vt_str_addf(out, "\nLIMITS\n  %-14s %.10g s", "wall time", in_seconds(plan->wall_ms));
	if (plan->grace_ms)
		vt_str_addf(out, ", then SIGTERM and %.10g s of grace", in_seconds(plan->grace_ms));
	vt_str_addf(out, "\n  %-14s %lld MB\n", "memory", (long long)(plan->memory_bytes >> 20));
	if (plan->bare)
		vt_str_addf(out, "  %-14s %lld MB", "private folder",
			    (long long)(plan->watched_tmp_bytes >> 20));
	else
		vt_str_addf(out, "  %-14s %lld MB and %lld inodes, /dev/shm included",
			    "private /tmp", (long long)(plan->scratch_bytes >> 20),
			    (long long)plan->scratch_inodes);
	if (plan->bare)
		show(out, " in ", plan->scratch);
	vt_str_addf(out, "\n  %-14s %lld %s each, %lld open at once\n", "files",
		    (long long)(plan->lower_file_kb ? plan->lower_file_kb : plan->file_mb),
		    plan->lower_file_kb ? "KB" : "MB", (long long)plan->open_files);
	vt_str_addf(out, "  %-14s %lld, threads included\n", "processes", (long long)plan->pids);
	if (plan->cpu_ms >= 0)
		vt_str_addf(out, "  %-14s %.10g s\n", "CPU time", in_seconds(plan->cpu_ms));
	if (plan->cpu_share > 0)
		vt_str_addf(out, "  %-14s %g at once\n", "CPUs", plan->cpu_share);
	vt_str_addf(out, "  %-14s %lld kB and %lld kB of standard output and error%s\n", "captured",
		    (long long)(plan->stdout_bytes >> 10), (long long)(plan->stderr_bytes >> 10),
		    plan->stdout_capped || plan->stderr_capped
			    ? ", passed-on output too where given"
			    : "");
}

const char *vt_build_kind(const struct vt_build *build)
{
	switch (build->act) {
	case VT_ACT_BIND:
		return build->device     ? "device"
		       : build->socket   ? "socket"
		       : build->writable ? "write"
					 : "read";
	case VT_ACT_SCRATCH:
	case VT_ACT_PROC:
		return "private";
	case VT_ACT_LINK:
		return "link";
	case VT_ACT_MASK:
		return "masked";
	case VT_ACT_FILE:
		return *build->from ? "made" : NULL; /* the place that a file is mounted on */
	case VT_ACT_DIR:
		break;
	}
	return NULL;
}

static void explain_build(const struct vt_plan *plan, const struct vt_build *build,
			  struct vt_str *out)
{
	const char *kind = vt_build_kind(build);

	if (!kind)
		return;
	vt_str_addf(out, "  %-7s ", kind);
	show(out, "/", build->to);
	if (build->act == VT_ACT_BIND && strcmp(build->from + 1, build->to) != 0)
		show(out, " from ", build->from);
	if (build->act == VT_ACT_BIND && build->idmap >= 0)
		vt_str_addf(out, " (owner %u:%u is the cell's user)",
			    plan->idmaps[build->idmap].uid, plan->idmaps[build->idmap].gid);
	if (build->act == VT_ACT_LINK)
		show(out, " -> ", build->from);
	if (build->act == VT_ACT_PROC)
		vt_str_add(out, " with the cell's own processes only");
	vt_str_add(out, "\n");
}

static void explain_denials(const struct vt_plan *plan, struct vt_str *out)
{
	if (plan->denial_count)
		vt_str_add(out, "\nDENIED\n");
	for (size_t i = 0; i < plan->denial_count; i++) {
		const struct vt_denial *denial = &plan->denials[i];

		show(out, "  ", denial->path);
		if (denial->closed)
			show(out, " (all of ", denial->closed);
		vt_str_add(out, denial->closed ? ")\n" : "\n");
	}
}

const char *vt_guard_held(const struct vt_guard *guard)
{
	if (guard->kind != VT_GUARD_NAME)
		return guard->ino ? "in place" : NULL;
	return guard->closed ? "closed" : guard->ino ? "read-only" : "watched";
}

static bool is_watched(const struct vt_guard *guard)
{
	return guard->kind == VT_GUARD_NAME && !guard->ino && !guard->closed;
}

/* Names that are missing are told together, by the folder that they are looked for in. */
static void explain_watched(const struct vt_build *build, size_t from, struct vt_str *out)
{
	const char *path = build->guards[from].path, *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash + 1 - path) : 0;
	struct vt_str names;

	vt_str_init(&names);
	for (size_t i = from; i < build->guard_count; i++) {
		const struct vt_guard *guard = &build->guards[i];

		if (!is_watched(guard) || strncmp(guard->path, path, len) != 0 ||
		    strchr(guard->path + len, '/'))
			continue;
		vt_str_addf(&names, "%s%s", names.len ? ", " : "", guard->path + len);
	}
	vt_str_add(out, "  watched   ");
	show(out, "", build->from);
	vt_str_add(out, len ? "/" : "");
	vt_str_show(out, path, len ? len - 1 : 0);
	vt_str_add(out, " for\n    ");
	vt_str_wrap(out, vt_str_ok(&names) ? names.text : "", WATCHED_AT, WATCHED_AT);
	vt_str_done(&names);
}

/* Whether another in the same folder came before. */
static bool is_told(const struct vt_build *build, size_t at)
{
	const char *path = build->guards[at].path, *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash + 1 - path) : 0;

	for (size_t i = 0; i < at; i++)
		if (is_watched(&build->guards[i]) &&
		    strncmp(build->guards[i].path, path, len) == 0 &&
		    !strchr(build->guards[i].path + len, '/'))
			return true;
	return false;
}

static void explain_guards(const struct vt_plan *plan, struct vt_str *out)
{
	if (plan->guard_count)
		vt_str_add(out, "\nPROTECTED\n");
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		for (size_t j = 0; j < build->guard_count; j++) {
			const struct vt_guard *guard = &build->guards[j];
			const char *how = vt_guard_held(guard);

			if (is_watched(guard) && !is_told(build, j))
				explain_watched(build, j, out);
			if (is_watched(guard) || !how)
				continue;
			vt_str_addf(out, "  %-*s ", GUARD_WIDTH, how);
			show(out, "", build->from);
			show(out, "/", guard->path);
			vt_str_add(out, "\n");
		}
	}
}

void vt_plan_explain(const struct vt_plan *plan, struct vt_str *out)
{
	vt_str_addf(out, "isolation: %s\n\n", plan->level);
	explain_holdings(plan, out);
	explain_limits(plan, out);
	vt_str_add(out, "\nUSER\n  ");
	if (!plan->bare)
		vt_str_addf(out, "inside %u:%u, outside ", plan->inner_uid, plan->inner_gid);
	if (plan->own_ids)
		vt_str_addf(out, "one of %u to %u, its own\n", plan->id_base,
			    plan->id_base + plan->id_count - 1);
	else
		vt_str_addf(out, "%u:%u, the caller\n", plan->outer_uid, plan->outer_gid);
	show(out, "\nFILES (working directory ", plan->cwd);
	vt_str_add(out, ")\n");
	for (size_t i = 0; i < plan->build_count; i++)
		explain_build(plan, &plan->builds[i], out);
	explain_denials(plan, out);
	explain_guards(plan, out);
	vt_str_add(out, "\nENVIRONMENT\n");
	for (char **variable = plan->envp; *variable; variable++) {
		show(out, "  ", *variable);
		vt_str_add(out, "\n");
	}
	if (plan->note_count)
		vt_str_add(out, "\nNOTES\n");
	for (size_t i = 0; i < plan->note_count; i++) {
		vt_str_add(out, "  ");
		vt_str_wrap(out, plan->notes[i], 2, 4);
	}
}
