/* SPDX-License-Identifier: Apache-2.0 */
/* Which program holds the tools of a pool ready, and what it is told. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/helper.h"
#include "plan/sources.h"
#include "serve/cells.h"

/*
 * A program that is replaced or removed while the client runs stays what it was. It is held as a
 * path alone: who closes a file asks its file system, and so would every process that has a copy.
 */
static void pin_program(struct vt_cells *cells, int known_fd)
{
	AUTO_CLOSE int fd = known_fd >= 0 ? fcntl(known_fd, F_DUPFD_CLOEXEC, 3)
					  : open(cells->program, O_PATH | O_CLOEXEC);
	struct stat st;

	/* A fifo is no program. */
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		cells->program_fd = vt_fd_take(&fd);
}

/* The interpreter itself, as it was named: Python finds its venv by that. */
static int choose_interpreter(struct vt_cells *cells, const struct vt_interpreter *interpreter,
			      const struct vt_command *command, struct vt_err *err)
{
	char script[PATH_MAX];
	int r = vt_interpreter_find(interpreter, script, err);

	/* Such cells are in the host's own folders, as users of whom these know nothing. */
	if (r == 0 && cells->plan->bare && cells->plan->own_ids)
		r = vt_interpreter_check_open(command->path, err);
	if (r < 0)
		return r;
	cells->program = strdup(command->path);
	cells->script = strdup(script);
	return cells->program && cells->script ? 0 : vt_cells_no_memory(err);
}

static int choose_object(struct vt_cells *cells, const struct vt_command *command,
			 struct vt_err *err)
{
	char helper[PATH_MAX];
	int r = vt_helper_find("vitro-object", helper, err);

	if (r < 0)
		return r;
	cells->program = strdup(helper);
	cells->object = strdup(command->path);
	return cells->program && cells->object ? 0 : vt_cells_no_memory(err);
}

static int arrange_interpreter(struct vt_cells *cells, const struct vt_cells_wish *wish,
			       const struct vt_interpreter *interpreter, struct vt_err *err)
{
	size_t n = 0;

	if (!cells->script)
		return vt_fail(err, VT_STEP_PLAN, EBADMSG, "find what an interpreter is to run");
	cells->interpreter = interpreter;
	cells->setup = strdup(wish->setup);
	if (interpreter->preloads && asprintf(&cells->preload, "LD_PRELOAD=%s", cells->script) < 0)
		cells->preload = NULL;
	if (!cells->setup || (interpreter->preloads && !cells->preload))
		return vt_cells_no_memory(err);
	cells->argv[n++] = cells->program;
	for (size_t i = 0; i < VT_INTERPRETER_FLAGS && interpreter->flags[i]; i++)
		cells->argv[n++] = (char *)interpreter->flags[i];
	cells->argv[n++] = cells->script;
	cells->argv[n] = cells->setup;
	return 0;
}

int vt_cells_arrange(struct vt_cells *cells, const struct vt_cells_wish *wish, struct vt_err *err)
{
	const struct vt_interpreter *interpreter = vt_cells_interpreter(wish);

	if (interpreter)
		return arrange_interpreter(cells, wish, interpreter, err);
	cells->argv[0] = wish->command ? (char *)"vitro-commands" : cells->program;
	cells->argv[1] = cells->object;
	return 0;
}

int vt_cells_choose_zygote(struct vt_cells *cells, const struct vt_cells_wish *wish,
			   const struct vt_command *command, struct vt_err *err)
{
	const struct vt_interpreter *interpreter = vt_cells_interpreter(wish);
	int r = 0;

	if (interpreter)
		r = choose_interpreter(cells, interpreter, command, err);
	else if (wish->object)
		r = choose_object(cells, command, err);
	else
		cells->program = strdup(wish->command ? "/proc/self/exe" : wish->program);
	if (r == 0 && !cells->program)
		r = vt_cells_no_memory(err);
	if (r < 0)
		return r;
	if (!wish->command)
		pin_program(cells, wish->program ? wish->program_fd : -1);
	return vt_cells_arrange(cells, wish, err);
}

enum { RUNS_MAX = 64 };

struct runs {
	struct vt_arena *arena;
	const char *paths[RUNS_MAX];
	size_t count;
};

static int add_run(void *arg, const char *path, struct vt_err *err)
{
	struct runs *runs = arg;
	const char *copy = vt_arena_dup(runs->arena, path);

	if (!copy)
		return vt_cells_no_memory(err);
	if (runs->count == RUNS_MAX)
		return vt_fail(err, VT_STEP_PLAN, E2BIG, "keep '%s' from calls: %s", path,
			       strerror(E2BIG));
	runs->paths[runs->count++] = copy;
	return 0;
}

static int check_grants(struct vt_cells *cells, struct vt_err *err)
{
	struct runs runs = { .arena = cells->plan->arena };
	int r = vt_interpreter_follow(add_run, &runs, err);

	if (r == 0)
		r = vt_helper_follow("vitro-object", add_run, &runs, err);
	const struct vt_strings paths = { runs.paths, runs.count };

	return r < 0 ? r
		     : vt_sources_check_run(cells->plan, cells->policy, cells->maker->host, &paths,
					    err);
}

/*
 * Who has a supervisor to himself may give vitro's own folder away, as that of a venv in a project,
 * for commands: while nothing but vitro's program is executed, which is the file that runs already.
 */
int vt_cells_check_run(struct vt_cells *cells, const struct vt_cells_wish *wish, struct vt_err *err)
{
	struct vt_cells_maker *maker = cells->maker;
	bool runs = vt_cells_interpreter(wish) || wish->object;
	struct vt_err why;
	int r = cells->policy->files.write.count ? check_grants(cells, &why) : 0;

	if (r == -EPERM && !runs && !maker->runs && !maker->shared) {
		maker->exposed = why;
		return 0;
	}
	if (r < 0) {
		*err = why;
		return r;
	}
	if (runs && maker->exposed.num)
		return vt_fail(err, VT_STEP_PLAN, EPERM, "%s (by a pool that was made before)",
			       maker->exposed.what);
	maker->runs |= runs;
	return 0;
}
