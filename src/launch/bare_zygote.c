/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell of a pool without namespaces. There is no hull for it to be made in ahead: the zygote's
 * fork is the cell's init, a child of the supervisor's, which does what the init of any bare cell
 * does, and starts the occupant by one more fork. The occupant does not exec. It seals itself, and
 * goes on as the zygote's program.
 *
 * What each cell has for itself cannot stand in the plan, which is the pool's: its user id follows
 * from init's pid, and its private folder from its number. Variables that name the folder have room
 * for the number, and are written to where they are.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/pass.h"
#include "launch/cell.h"
#include "launch/heeded.h"
#include "launch/inside_private.h"

/*
 * Before all else, and by its own hand: if the zygote is killed now, the supervisor has a child
 * that nobody else told it of.
 */
static int tell_born(struct vt_building *b, struct vt_err *err)
{
	const struct vt_note note = { .kind = VT_NOTE_BORN, .pid = b->init };
	AUTO_CLOSE int self = (int)syscall(SYS_pidfd_open, b->init, 0);

	if (self < 0)
		return vt_fail_at(err, VT_STEP_CLONE, errno, "get a handle of init", NULL);
	return vt_pass_send(b->in->status_fd, &note, sizeof(note), &self, 1, err);
}

/* Between clone and exec for good: the occupant alone may do what its program does. */
/* clang-format off */
static const struct vt_inside_step first_steps[] = {
	{ "born", tell_born },
};
static const struct vt_inside_step start_steps[] = {
	{ "occupant", vt_inside_fork_occupant },
};
/* clang-format on */

/* Those variables whose value is the folder of the plan. */
static void name_in_environment(const char *planned, const char *scratch)
{
	size_t len = strlen(planned);

	for (char **variable = environ; variable && *variable; variable++) {
		char *value = *variable;

		while (*value && *value != '=')
			value++;
		if (*value && strcmp(value + 1, planned) == 0)
			memcpy(value + 1, scratch, len);
	}
}

void vt_bare_enter(const struct vt_plan *plan, const struct vt_cgroup *cgroup, const int *fds,
		   uint64_t cell)
{
	const pid_t self = getpid();
	const struct vt_outer outer = vt_own_ids(plan, self);
	const struct vt_inside init = {
		.plan = plan,
		.cgroup = cgroup,
		.stdio = { -1, fds[VT_ENTER_OUT_FD], fds[VT_ENTER_ERR_FD] },
		.status_fd = fds[VT_ENTER_INIT_FD],
		.uid = outer.uid,
		.gid = outer.gid,
	};
	struct vt_inside occupant = init;
	char scratch[PATH_MAX];
	struct vt_building b = vt_building_of(&init);

	b.scratch = scratch;
	b.init = self;
	occupant.status_fd = fds[VT_ENTER_CALL_FD];
	vt_own_scratch(plan, cell, scratch);
	vt_inside_take_steps(first_steps, COUNT(first_steps), &b, init.status_fd);
	vt_bare_build(&b);
	vt_inside_take_steps(start_steps, COUNT(start_steps), &b, init.status_fd);
	if (b.occupant > 0)
		vt_bare_live(&b);
	b.in = &occupant;
	name_in_environment(plan->scratch, scratch);
	vt_seal(&b);
	vt_heeded_show(environ);
}
