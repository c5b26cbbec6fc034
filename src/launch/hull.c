/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hull: the namespaces that all cells of a pool live under, and the root that they start from.
 * Its init builds that as a cell's init does, hands its namespaces to the supervisor for the
 * zygotes, and becomes the spawner by exec. The exec matters: the kernel then takes the process,
 * and all inits that it forks, as belonging to the hull's user namespace, so that a zygote which is
 * root there may enter cells whose init nobody else can look at.
 *
 * Child side, as all that inside.c uses.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/process.h"
#include "launch/cell.h"
#include "launch/inside_private.h"
#include "launch/spawner.h"

/* Empty, and down: what is in the hull itself needs none. Unless cells are to have the host's. */
static int leave_network(struct vt_building *b, struct vt_err *err)
{
	if (b->plan->own_network && unshare(CLONE_NEWNET) < 0)
		return vt_fail_at(err, VT_STEP_NETWORK, errno, "make a network namespace", NULL);
	return 0;
}

static int tell_hull(struct vt_building *b, struct vt_err *err)
{
	static const char *const names[VT_HULL_FDS] = {
		[VT_HULL_USER_FD] = "/proc/self/ns/user", [VT_HULL_MOUNT_FD] = "/proc/self/ns/mnt",
		[VT_HULL_IPC_FD] = "/proc/self/ns/ipc",   [VT_HULL_UTS_FD] = "/proc/self/ns/uts",
		[VT_HULL_NET_FD] = "/proc/self/ns/net",   [VT_HULL_PID_FD] = "/proc/self/ns/pid",
	};
	int fds[VT_HULL_FDS];
	int r = 0;

	for (size_t i = 0; i < VT_HULL_FDS; i++) {
		fds[i] = open(names[i], O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0)
			return vt_fail_at(err, VT_STEP_CLONE, errno, "open", names[i]);
	}
	r = vt_inside_hand_over(b->in->status_fd, VT_NOTE_HULL, fds, VT_HULL_FDS, err);
	for (size_t i = 0; i < VT_HULL_FDS; i++)
		vt_fd_close(&fds[i]);
	return r;
}

/* The status socket is at 3 then, veils follow it, and nothing is above them. */
static int place_descriptors(struct vt_building *b, int *ret_program, struct vt_err *err)
{
	const struct vt_stdio *stdio = &b->in->stdio;
	const int above = VT_SPAWNER_VEILS + (int)b->veils;
	int wanted[4] = { stdio->in, stdio->out, stdio->err, b->in->status_fd };
	bool ok = true;

	/* Out of the way of each other first. */
	for (size_t i = 0; i < COUNT(wanted); i++)
		ok = ok && (wanted[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, above)) >= 0;
	for (size_t i = 0; i < b->veils; i++)
		ok = ok &&
		     (b->in->picked[i] = fcntl(b->in->picked[i], F_DUPFD_CLOEXEC, above)) >= 0;
	*ret_program = fcntl(b->in->spawner_fd, F_DUPFD_CLOEXEC, above);
	ok = ok && *ret_program >= 0;
	for (int i = 0; i < (int)COUNT(wanted); i++)
		ok = ok && dup2(wanted[i], i) >= 0;
	for (int i = 0; i < (int)b->veils; i++)
		ok = ok && dup2(b->in->picked[i], VT_SPAWNER_VEILS + i) >= 0;
	ok = ok && (*ret_program == above ||
		    syscall(SYS_close_range, (unsigned)above, (unsigned)*ret_program - 1, 0) == 0);
	ok = ok && syscall(SYS_close_range, (unsigned)*ret_program + 1, ~0U, 0) == 0;
	return ok ? 0 : vt_fail_at(err, VT_STEP_DESCRIPTORS, errno, "place the descriptors", NULL);
}

static int become_spawner(struct vt_building *b, struct vt_err *err)
{
	char name[] = "vitro-spawner";
	char *const argv[] = { name, NULL }, *const envp[] = { NULL };
	int program, r = place_descriptors(b, &program, err);

	if (r < 0)
		return r;
	(void)syscall(SYS_execveat, program, "", argv, envp, AT_EMPTY_PATH); /* returns to fail */
	return vt_fail_at(err, VT_STEP_EXEC, errno, "execute the spawner", NULL);
}

/* clang-format off */
static const struct vt_inside_step steps[] = {
	{ "counts",  vt_inside_share_counts },
	{ "copies",  vt_inside_copy_mounts },  /* before the ids: as the caller, who may see these paths */
	{ "await",   vt_inside_await_ids },
	{ "ids",     vt_inside_become_user },
	{ "memory",  vt_inside_hide_memory },
	{ "network", leave_network },
	{ "root",    vt_inside_attach_root },
	{ "mounts",  vt_inside_build_root },
	{ "names",   vt_inside_name_host },
	{ "tell",    tell_hull },              /* through the hull's own proc */
	{ "spawner", become_spawner },
};
/* clang-format on */

_Noreturn void vt_hull_init(struct vt_building *b)
{
	vt_inside_take_steps(steps, COUNT(steps), b, b->in->status_fd);
	_exit(125); /* the last step does not return */
}
