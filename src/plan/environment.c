/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/environment.h"

#include <stdbool.h>
#include <string.h>

#include "host/runtime.h"

struct variables {
	char **items;
	size_t count;
};

static size_t name_length(const char *variable)
{
	return strcspn(variable, "=");
}

static bool same_name(const char *variable, const char *name, size_t len)
{
	return name_length(variable) == len && strncmp(variable, name, len) == 0;
}

/* Adds a variable, in place of one of the same name. */
static void put(struct variables *vars, char *variable)
{
	size_t len = name_length(variable);

	for (size_t i = 0; i < vars->count; i++) {
		if (same_name(vars->items[i], variable, len)) {
			vars->items[i] = variable;
			return;
		}
	}
	vars->items[vars->count++] = variable;
}

/* "*" does not speak for PATH and HOME: the caller's name folders that are not there inside. */
static bool is_passed(const struct vt_strings *pass, const char *variable)
{
	size_t len = name_length(variable);

	for (size_t i = 0; i < pass->count; i++) {
		if (same_name(variable, pass->items[i], strlen(pass->items[i])))
			return true;
		if (strcmp(pass->items[i], "*") == 0 && !same_name("PATH", variable, len) &&
		    !same_name("HOME", variable, len))
			return true;
	}
	return false;
}

static char *search_path(struct vt_arena *arena, const struct vt_command *command)
{
	char *path = vt_arena_dup(arena, "PATH=");

	for (size_t i = 0; path && command && i < command->bin_dir_count; i++)
		path = vt_arena_printf(arena, "%s%s:", path, command->bin_dirs[i]);
	return path ? vt_arena_printf(arena, "%s" VT_RUNTIME_PATH, path) : NULL;
}

char **vt_environment_make(struct vt_arena *arena, const struct vt_policy *policy,
			   char *const *caller, const struct vt_command *command,
			   const char *scratch)
{
	static char *const empty[] = { NULL };
	struct variables vars = { 0 };
	size_t inherited = 0;

	caller = caller ? caller : empty;
	while (caller[inherited])
		inherited++;
	vars.items = vt_arena_array(arena, inherited + policy->env.set.count + 4, sizeof(char *));
	char *path = search_path(arena, command);
	char *home = vt_arena_printf(arena, "HOME=%s", scratch ? scratch : "/tmp");
	char *temporary = vt_arena_printf(arena, "TMPDIR=%s", scratch ? scratch : "/tmp");

	if (!vars.items || !path || !home || !temporary)
		return NULL;
	put(&vars, path);
	put(&vars, home);
	if (scratch)
		put(&vars, temporary);
	for (size_t i = 0; i < inherited; i++) {
		if (!strchr(caller[i], '=') || !is_passed(&policy->env.pass, caller[i]))
			continue;
		char *copy = vt_arena_dup(arena, caller[i]);

		if (!copy)
			return NULL;
		put(&vars, copy);
	}
	for (size_t i = 0; i < policy->env.set.count; i++) {
		char *copy = vt_arena_dup(arena, policy->env.set.items[i]);

		if (!copy)
			return NULL;
		put(&vars, copy);
	}
	vars.items[vars.count] = NULL;
	return vars.items;
}
