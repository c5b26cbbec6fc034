/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/key.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/policy.h"

static void add_file(struct vt_str *key, const struct stat *st)
{
	vt_str_addf(key, "%llx:%llx:%llx:%lld.%09ld\n", (unsigned long long)st->st_dev,
		    (unsigned long long)st->st_ino, (unsigned long long)st->st_size,
		    (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

static void add_path(struct vt_str *key, const char *path)
{
	struct stat st = { 0 };

	vt_str_addf(key, "%s ", path ? path : "");
	(void)stat(path ? path : "", &st); /* what is not there is all 0 */
	add_file(key, &st);
}

/* The names of the pool differ, of which only bare cells have any. */
static void add_plan(struct vt_str *key, const struct vt_plan *plan)
{
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		vt_str_addf(key, "%d %s %d %llx:%llx\n", (int)build->act, build->to,
			    build->writable, (unsigned long long)build->dev,
			    (unsigned long long)build->ino);
		for (size_t j = 0; build->veil && j < build->veil->count; j++)
			vt_str_addf(key, "\t%s\n", build->veil->names[j].path);
	}
	for (size_t i = 0; i < plan->landlock_rule_count; i++)
		vt_str_addf(key, "%llx:%llx %llx\n",
			    (unsigned long long)plan->landlock_rules[i].dev,
			    (unsigned long long)plan->landlock_rules[i].ino,
			    (unsigned long long)plan->landlock_rules[i].rights);
	for (char **variable = plan->envp; variable && *variable; variable++)
		vt_str_addn(key, *variable, strlen(*variable) + 1);
}

int vt_cells_key(struct vt_cells *cells, const struct vt_cells_wish *wish, struct vt_err *err)
{
	struct vt_str *key = &cells->key;
	struct stat st = { 0 };

	vt_str_addf(key, "%s\n%s\n%u %u %u\n", wish->command ? "command" : cells->program,
		    cells->object ? cells->object : "", wish->ready_min, wish->ready_max,
		    wish->live_max);
	vt_str_addf(key, "%s\n", cells->setup ? cells->setup : "");
	if (cells->program_fd >= 0 && fstat(cells->program_fd, &st) == 0)
		add_file(key, &st);
	if (cells->object)
		add_path(key, cells->object);
	vt_str_addn(key, wish->sources, wish->sources_len);
	vt_str_add(key, "\n");
	for (size_t i = 0; i < cells->policy->sources.count; i++)
		add_path(key, cells->policy->sources.items[i]);
	add_plan(key, cells->plan);
	return vt_str_ok(key) ? 0 : vt_cells_no_memory(err);
}
