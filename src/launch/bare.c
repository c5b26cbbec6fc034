/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell without namespaces. Its init is a plain process beside the supervisor's, with the cell's
 * user id, no capability, and no way to signal anybody but the cell. All that the occupant starts
 * comes to init as an orphan sooner or later, and nothing that it started is left when init has no
 * child any more: that is how it knows that the cell is empty.
 *
 * Init ends the cell when the occupant has ended, and when the supervisor closes its side of the
 * status socket or dies. Then it removes the private folder. It blocks every signal, and has a
 * session of its own, so that only SIGKILL from outside can come between.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/caps.h"
#include "kernel/landlock.h"
#include "kernel/process.h"
#include "kernel/scratch.h"
#include "kernel/sweep.h"
#include "launch/cell.h"
#include "launch/inside_private.h"

/* Where init keeps its descriptors once the occupant runs. */
enum { OCCUPANT_FD, SCRATCH_FD, PLACE_FD, STATUS_FD };

static int stand_apart(struct vt_building *b, struct vt_err *err)
{
	sigset_t all;

	(void)b;
	(void)sigfillset(&all); /* cannot fail */
	if (setsid() < 0 || sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "stand apart from the caller", NULL);
	return 0;
}

static int make_scratch(struct vt_building *b, struct vt_err *err)
{
	b->root_fd = vt_scratch_make(b->scratch, b->in->uid, b->in->gid, &b->place_fd, err);
	return b->root_fd < 0 ? b->root_fd : 0;
}

/* As the caller, who can look into folders that the cell's user cannot. */
static int make_ruleset(struct vt_building *b, struct vt_err *err)
{
	const struct vt_plan *plan = b->plan;
	const struct vt_landlock_abi handled = {
		.fs = plan->landlock_fs,
		.net = plan->landlock_net,
		.scoped = plan->landlock_scoped,
	};

	if (!handled.fs && !handled.net && !handled.scoped)
		return 0;
	b->ruleset_fd = vt_landlock_new(&handled, err);
	if (b->ruleset_fd < 0)
		return b->ruleset_fd;
	for (size_t i = 0; i < plan->landlock_rule_count; i++) {
		const struct vt_landlock_rule *rule = &plan->landlock_rules[i];
		/* The private folder is what was made, whatever has its name by now. */
		int r = rule->scratch ? vt_landlock_allow_fd(b->ruleset_fd, b->root_fd,
							     rule->rights, rule->to, err)
				      : vt_landlock_allow_inode(b->ruleset_fd, rule->to, rule->dev,
								rule->ino, rule->rights, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int become_user(struct vt_building *b, struct vt_err *err)
{
	int r = vt_caps_bound(err); /* while there may be the power to */

	if (r == 0 && b->plan->own_ids)
		r = vt_process_become(b->in->uid, b->in->gid, true, err);
	if (r == 0)
		r = vt_caps_empty(err);
	/*
	 * A change of ids hides a process from its own user, who will look at what the occupant
	 * uses without any power over it. In the cell there is nobody to look before the command.
	 */
	if (r == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		r = vt_fail_at(err, VT_STEP_IDS, errno, "become readable", NULL);
	return r < 0 ? r : vt_caps_no_new_privs(err);
}

static int confine_signals(struct vt_building *b, struct vt_err *err)
{
	return vt_sweep_prepare(b->plan->sweep, err);
}

/* The order is the security argument, as it is for the other init. */
/* clang-format off */
static const struct vt_inside_step steps[] = {
	{ "apart",    stand_apart },
	{ "cgroup",   vt_inside_join_cgroup },    /* before anything that should be counted */
	{ "await",    vt_inside_await_ids },
	{ "scratch",  make_scratch },             /* before the ids: giving it away takes the caller's */
	{ "ruleset",  make_ruleset },             /* after the private folder, which has a rule too */
	{ "ids",      become_user },
	{ "signals",  confine_signals },          /* before the occupant, which is under it too */
	{ "children", vt_inside_expect_children },
};
static const struct vt_inside_step start_steps[] = {
	{ "occupant", vt_inside_start_occupant },
};
static const struct vt_inside_step last_steps[] = {
	{ "memory",   vt_inside_hide_memory },    /* not the occupant's, which is looked at */
	{ "running",  vt_inside_tell_running },
};
/* clang-format on */

/* The occupant, if there is one, waits for a word that never comes, and dies with us. */
static void abandon(const struct vt_building *b)
{
	if (b->root_fd >= 0)
		vt_scratch_remove(b->root_fd, b->place_fd, b->scratch);
}

void vt_bare_build(struct vt_building *b)
{
	b->abandon = abandon;
	vt_inside_take_steps(steps, COUNT(steps), b, b->in->status_fd);
}

_Noreturn void vt_bare_init(struct vt_building *b)
{
	vt_bare_build(b);
	vt_inside_take_steps(start_steps, COUNT(start_steps), b, b->in->status_fd);
	vt_bare_live(b);
}

_Noreturn void vt_bare_live(struct vt_building *b)
{
	struct vt_note note = { .kind = VT_NOTE_ENDED, .empty = true };
	struct vt_err err;

	vt_inside_take_steps(last_steps, COUNT(last_steps), b, b->in->status_fd);
	if (vt_process_descriptors(b->occupant_fd, b->root_fd, b->place_fd, b->in->status_fd,
				   &err) < 0) {
		/* the occupant runs already, and may not be alone */
		vt_sweep(b->plan->sweep, b->occupant, &note.wait_status);
		abandon(b);
		_exit(125);
	}
	enum vt_ending how = vt_inside_await_end(b->occupant, OCCUPANT_FD, STATUS_FD,
						 &note.wait_status);

	/* The sweep has the status of one that is traced. */
	vt_sweep(b->plan->sweep, b->occupant, &note.wait_status);
	if (how == VT_ENDING_ORDERED)
		note.kind = VT_NOTE_EMPTY;
	if (getrusage(RUSAGE_CHILDREN, &note.usage) == 0)
		(void)send(STATUS_FD, &note, sizeof(note), MSG_NOSIGNAL); /* heard or not, we end */
	/* Only now: the cell would be in that domain too. Without it there is one wall less. */
	(void)vt_scratch_confine(SCRATCH_FD, PLACE_FD, b->plan->landlock_fs, &err);
	vt_scratch_remove(SCRATCH_FD, PLACE_FD, b->scratch);
	_exit(0);
}

/* ---- the occupant -------------------------------------------------------------------------- */

/*
 * Where memory runs out, the kernel kills whoever has most of what it counts, which a cell can make
 * be init: and nobody would end the cell then. This has all others of it go first. Landlock keeps
 * them from taking it back. Without a /proc there is no say in it.
 */
static void die_before_init(void)
{
	AUTO_CLOSE int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1000", 4) < 0)
		return; /* as without a /proc */
}

int vt_bare_follow_init(struct vt_building *b, struct vt_err *err)
{
	die_before_init();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "ask to die with init", NULL);
	/* It may have died before that. */
	if (getppid() != b->init)
		return vt_fail_at(err, VT_STEP_SESSION, ESRCH, "find init", NULL);
	return 0;
}

/*
 * Before the descriptors go. The private folder is entered as what was made, and any other as what
 * the plan saw: a name may lead elsewhere by now.
 */
int vt_bare_enter_folder(struct vt_building *b, struct vt_err *err)
{
	const struct vt_plan *plan = b->plan;
	AUTO_CLOSE int other = plan->cwd_private
				       ? -1
				       : open(plan->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int fd = plan->cwd_private ? b->root_fd : other;
	struct stat st;

	if (fd < 0 || fchdir(fd) < 0 || fstat(fd, &st) < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "enter the working directory",
				  plan->cwd);
	if (!plan->cwd_private && (st.st_dev != plan->cwd_dev || st.st_ino != plan->cwd_ino))
		return vt_fail_at(err, VT_STEP_SESSION, ESTALE, "find what was there before at",
				  plan->cwd);
	return 0;
}

/*
 * What a process may read about itself; the rest of its folder tells of the host's mounts and
 * connections. Only the occupant's own: its children have none.
 */
static const char *const own_proc[] = {
	"auxv", "cmdline", "comm",         "fd",   "fdinfo", "io",     "limits",
	"maps", "smaps",   "smaps_rollup", "stat", "statm",  "status",
};

static int allow_own_proc(int ruleset, struct vt_err *err)
{
	AUTO_CLOSE int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; self >= 0 && i < COUNT(own_proc); i++) {
		AUTO_CLOSE int fd = openat(self, own_proc[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
		int r = fd < 0 ? 0
			       : vt_landlock_allow_fd(ruleset, fd, vt_landlock_read(), own_proc[i],
						      err);

		if (r < 0)
			return r;
	}
	return 0;
}

int vt_bare_enter_domain(struct vt_building *b, struct vt_err *err)
{
	if (b->ruleset_fd < 0)
		return 0;
	int r = b->plan->landlock_fs ? allow_own_proc(b->ruleset_fd, err) : 0;

	return r < 0 ? r : vt_landlock_enter(b->ruleset_fd, err);
}
