/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/key.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "policy/policy.h"
#include "serve/modules.h"

static void add_file(struct vt_str *key, const struct stat *st)
{
	char stamp[VT_FILE_STAMP];

	vt_file_stamp(st, stamp);
	vt_str_addf(key, "%s\n", stamp);
}

static void add_path(struct vt_str *key, const char *path)
{
	struct stat st = { 0 };

	vt_str_addf(key, "%s ", path ? path : "");
	(void)stat(path ? path : "", &st); /* what is not there is all 0 */
	add_file(key, &st);
}

static void add_plan(struct vt_str *key, const struct vt_plan *plan)
{
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		vt_str_addf(key, "%d %s %d %llx:%llx\n", (int)build->act, build->to,
			    build->writable, (unsigned long long)build->dev,
			    (unsigned long long)build->ino);
		for (size_t j = 0; build->veil && j < build->veil->count; j++)
			vt_str_addf(key, "\t%s\n", build->veil->names[j].path);
		for (size_t j = 0; j < build->guard_count; j++)
			vt_str_addf(key, "\t%s %llx:%llx\n", build->guards[j].path,
				    (unsigned long long)build->guards[j].dev,
				    (unsigned long long)build->guards[j].ino);
	}
	for (size_t i = 0; i < plan->landlock_rule_count; i++)
		vt_str_addf(key, "%llx:%llx %llx\n",
			    (unsigned long long)plan->landlock_rules[i].dev,
			    (unsigned long long)plan->landlock_rules[i].ino,
			    (unsigned long long)plan->landlock_rules[i].rights);
	for (size_t i = 0; i < plan->filter_count; i++)
		vt_str_addn(key, (const char *)plan->filters[i]->filter,
			    plan->filters[i]->len * sizeof(*plan->filters[i]->filter));
	vt_str_addf(key, "%s\n", plan->cwd ? plan->cwd : "");
	for (char **variable = plan->envp; variable && *variable; variable++)
		vt_str_addn(key, *variable, strlen(*variable) + 1);
}

/* The private folder of bare cells has the name of the pool, which no other has. */
static void leave_name_out(struct vt_str *key, const char *name)
{
	size_t len = name ? strlen(name) : 0;
	char *at = key->text;

	while (len && (at = memmem(at, key->len - (size_t)(at - key->text), name, len)))
		memset(at, '-', len);
}

int vt_cells_key(struct vt_cells *cells, const struct vt_cells_wish *wish,
		 const struct vt_command *command, struct vt_err *err)
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
	if (cells->interpreter)
		vt_modules_add(key, cells->interpreter, cells->setup, command->path, cells->policy);
	vt_str_addn(key, wish->sources, wish->sources_len);
	vt_str_add(key, "\n");
	add_plan(key, cells->plan);
	if (!vt_str_ok(key))
		return vt_cells_no_memory(err);
	leave_name_out(key, cells->plan->scratch);
	return 0;
}
