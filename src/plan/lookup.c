/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/lookup.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/runtime.h"
#include "plan/altered.h"

static int list_givens(const struct vt_policy *policy, struct vt_arena *arena,
		       struct vt_givens *ret_givens, struct vt_err *err)
{
	const struct vt_grants *lists[] = { &policy->files.read, &policy->files.write };
	struct vt_given *items = vt_arena_array(arena, lists[0]->count + lists[1]->count + 1,
						sizeof(*items));
	size_t n = 0;

	if (!items)
		return vt_fail(err, VT_STEP_COMMAND, ENOMEM, "find the program");
	for (size_t which = 0; which < 2; which++) {
		for (size_t i = 0; i < lists[which]->count; i++) {
			const struct vt_grant *grant = &lists[which]->items[i];
			bool in_place = strcmp(grant->from, grant->to) == 0;

			items[n++] = (struct vt_given){ grant->from, which == 1, in_place };
		}
	}
	*ret_givens = (struct vt_givens){ items, n };
	return 0;
}

/* The value of a variable; NULL: there is none. */
static const char *find_variable(char *const *environment, const char *name)
{
	size_t len = strlen(name);

	for (; environment && *environment; environment++)
		if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
			return *environment + len + 1;
	return NULL;
}

int vt_lookup_command_for(const struct vt_caller *caller, struct vt_arena *arena, const char *name,
			  const struct vt_policy *policy, struct vt_command *ret_command,
			  struct vt_err *err)
{
	char buffer[PATH_MAX];
	char *const *environment = caller ? caller->environ : environ;
	struct vt_lookup lookup = {
		.search_path = find_variable(environment, "PATH"),
		.cwd = caller ? caller->cwd : getcwd(buffer, sizeof(buffer)),
		.home = find_variable(environment, "HOME"),
		.pyenv_version = find_variable(environment, "PYENV_VERSION"),
	};
	int r = list_givens(policy, arena, &lookup.givens, err);

	return r < 0 ? r : vt_command_find(arena, name, &lookup, ret_command, err);
}

int vt_lookup_command(struct vt_arena *arena, const char *name, const struct vt_policy *policy,
		      struct vt_command *ret_command, struct vt_err *err)
{
	return vt_lookup_command_for(NULL, arena, name, policy, ret_command, err);
}

int vt_lookup_interpreter_for(const struct vt_caller *caller, struct vt_arena *arena,
			      const char *name, const struct vt_policy *policy,
			      struct vt_command *ret_command, struct vt_err *err)
{
	char place[PATH_MAX];
	struct vt_givens givens;
	struct vt_command command;
	int r = vt_lookup_command_for(caller, arena, name, policy, &command, err);

	if (r < 0)
		return r;
	r = list_givens(policy, arena, &givens, err);
	if (r < 0)
		return r;
	if (vt_altered_interpreter(&givens, command.path, place))
		return vt_fail(err, VT_STEP_PLAN, EPERM,
			       "refused: the interpreter '%s' is started outside of cells, and "
			       "files.write "
			       "lets calls change '%s': keep it outside of what calls may write "
			       "(python3 -m venv elsewhere), or grant folders beside it",
			       command.path, place);
	*ret_command = command;
	return 0;
}

int vt_lookup_object(struct vt_arena *arena, const char *path, const struct vt_policy *policy,
		     struct vt_command *ret_command, struct vt_err *err)
{
	struct vt_need *need = vt_arena_alloc(arena, sizeof(*need));
	char *real = vt_arena_alloc(arena, PATH_MAX);
	struct vt_givens givens;
	struct stat st;

	if (!need || !real)
		return vt_fail(err, VT_STEP_COMMAND, ENOMEM, "find the object");
	if (!realpath(path, real) || stat(real, &st) < 0)
		return vt_fail(err, VT_STEP_COMMAND, errno, "cannot load '%s': %s", path,
			       strerror(errno));
	if (!S_ISREG(st.st_mode))
		return vt_fail(err, VT_STEP_COMMAND, ENOEXEC, "cannot load '%s': it is no file",
			       path);
	/* What root starts is nobody in its cells. */
	if (geteuid() == 0 && !(st.st_mode & S_IROTH))
		return vt_fail(err, VT_STEP_COMMAND, EACCES,
			       "cannot load '%s': it must be readable by everyone: chmod a+r it",
			       path);
	if (access(real, R_OK) < 0)
		return vt_fail(err, VT_STEP_COMMAND, errno, "cannot load '%s': %s", path,
			       strerror(errno));
	int r = list_givens(policy, arena, &givens, err);

	if (r < 0)
		return r;
	*need = (struct vt_need){ real, st.st_dev, st.st_ino };
	*ret_command = (struct vt_command){
		.path = real,
		.prefixes = need,
		.prefix_count = !vt_runtime_covers(real) && !vt_trust_is_shown(&givens, real),
	};
	return 0;
}
