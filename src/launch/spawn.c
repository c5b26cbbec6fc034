/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/caps.h"
#include "kernel/idmap.h"
#include "kernel/mount.h"
#include "kernel/ns.h"
#include "kernel/pass.h"
#include "kernel/process.h"
#include "kernel/scratch.h"
#include "kernel/sweep.h"

void vt_cell_init(struct vt_cell *cell)
{
	*cell = (struct vt_cell){ .init = -1, .init_fd = -1, .status_fd = -1, .maker_fd = -1 };
	vt_cgroup_init(&cell->cgroup);
}

struct vt_outer vt_spawn_ids(const struct vt_plan *plan)
{
	return vt_own_ids(plan, getpid());
}

static uint32_t first_slot(const struct vt_plan *plan, pid_t owner)
{
	return plan->pool_id_base + (uint32_t)owner * plan->pool_id_count;
}

struct vt_outer vt_spawn_slot_ids(const struct vt_plan *plan, uint32_t slot)
{
	uint32_t id = plan->pool_id_count ? first_slot(plan, getpid()) + slot % plan->pool_id_count
					  : 0;

	return plan->pool_id_count ? (struct vt_outer){ id, id } : vt_spawn_ids(plan);
}

/* Who launches, and what with. */
struct launch {
	const struct vt_plan *plan;
	struct vt_stdio stdio;
	pid_t owner;      /* the supervisor, whose child init is to be */
	bool hull;        /* then we are not the supervisor */
	int ours, theirs; /* the status socket */
	int spawner;      /* of a hull */
	/* descriptors */
	int *idmaps;              /* per map of the plan */
	int *mounts;              /* per build */
	struct vt_layers *layers; /* per work folder; the child's to fill, but for what is mapped */
	int *picked;              /* per veil of a hull; the same */
};

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		vt_fd_close(&fds[i]);
}

/* Mounts one grant with its owner mapped to the cell's user, and opens the layers of its veil. */
static int map_grant(const struct launch *launch, const struct vt_build *build,
		     const struct vt_work *works, struct vt_err *err)
{
	const struct vt_veil *veil = build->veil && build->veil->work >= 0 ? build->veil : NULL;
	/* What is around a grant may have mounts in it that take no map; they are not wanted. */
	AUTO_CLOSE int fd = veil ? vt_mount_copy_alone(AT_FDCWD, veil->base, err)
				 : vt_mount_copy(AT_FDCWD, build->from, err);
	const int idmap_fd = launch->idmaps[build->idmap];
	const struct vt_mount_traits traits = { .writable = build->writable, .idmap_fd = idmap_fd };

	if (fd < 0)
		return fd;
	/* Before the map: on it the caller is not the owner of what it closed to all others. */
	int r = veil ? vt_veil_open(build, fd, &works[veil->work], &launch->layers[veil->work], err)
		     : 0;

	if (r == 0)
		r = vt_mount_restrict(fd, &traits, build->from, err);
	return r < 0 ? r : vt_fd_take(&fd);
}

/*
 * The mounts that only root of the host can make: those with mapped ids. launch->mounts has a place
 * for each build; what stays -1 is the child's to make.
 */
static int map_grants(const struct launch *launch, struct vt_outer outer,
		      const struct vt_work *works, struct vt_err *err)
{
	const struct vt_plan *plan = launch->plan;

	for (size_t i = 0; i < plan->idmap_count; i++) {
		launch->idmaps[i] = vt_idmap_open(plan->idmaps[i].uid, outer.uid,
						  plan->idmaps[i].gid, outer.gid, err);
		if (launch->idmaps[i] < 0)
			return launch->idmaps[i];
	}
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (build->idmap < 0)
			continue;
		launch->mounts[i] = map_grant(launch, build, works, err);
		if (launch->mounts[i] < 0)
			return launch->mounts[i];
	}
	return 0;
}

/* Each for the user that the overlay writes as on disk. */
static int make_works(const struct vt_plan *plan, struct vt_outer outer, struct vt_cell *cell,
		      struct vt_err *err)
{
	cell->works = plan->work_count ? calloc(plan->work_count, sizeof(*cell->works)) : NULL;
	if (plan->work_count && !cell->works)
		return vt_fail(err, VT_STEP_MOUNTS, ENOMEM, "make room for the work folders");
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (!build->veil || build->veil->work < 0)
			continue;
		int r = vt_work_make(build->veil->work_parent,
				     build->idmap < 0 ? outer.uid : build->uid,
				     build->idmap < 0 ? outer.gid : build->gid,
				     &cell->works[cell->work_count], err);

		if (r < 0)
			return r;
		cell->work_count++;
	}
	return 0;
}

/* Whether the child has spoken; before it is released that can only be a failure. */
static bool has_failed(int status_fd)
{
	struct pollfd note = { .fd = status_fd, .events = POLLIN };

	return poll(&note, 1, 0) == 1;
}

static int map_ids(pid_t pid, const struct launch *launch, struct vt_outer outer,
		   struct vt_err *err)
{
	const struct vt_plan *plan = launch->plan;
	const bool hull = launch->hull;

	if (plan->bare)
		return 0;
	if (hull && plan->pool_id_count)
		return vt_ns_map_range(pid, outer.uid, outer.gid, first_slot(plan, launch->owner),
				       plan->pool_id_count, err);
	return vt_ns_map_ids(pid, hull ? 0 : plan->inner_uid, outer.uid, hull ? 0 : plan->inner_gid,
			     outer.gid, plan->own_ids, err);
}

static int release(const struct launch *launch, pid_t pid, struct vt_outer outer,
		   struct vt_err *err)
{
	const struct vt_note go = { .kind = VT_NOTE_GO };
	int r = map_ids(pid, launch, outer, err);

	/* Of a child that is gone nothing can be mapped; its note says what really happened. */
	if (r < 0)
		return !launch->hull && has_failed(launch->ours) ? 0 : r;
	/* EPIPE: the child has failed already, and its note says why. */
	if (send(launch->ours, &go, sizeof(go), MSG_NOSIGNAL) < 0 && errno != EPIPE)
		return vt_fail(err, VT_STEP_CLONE, errno, "release the cell's init");
	return 0;
}

/* Whose child it is knows of it before it can say anything itself. */
static int tell_born(const struct launch *launch, pid_t pid, int init_fd, struct vt_err *err)
{
	const struct vt_note note = { .kind = VT_NOTE_BORN, .pid = pid };

	return launch->hull ? vt_pass_send(launch->theirs, &note, sizeof(note), &init_fd, 1, err)
			    : 0;
}

static void kill_init(const struct launch *launch, pid_t pid, int init_fd)
{
	/* ESRCH: it has ended. */
	(void)syscall(SYS_pidfd_send_signal, init_fd, SIGKILL, NULL, 0);
	while (!launch->hull && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

/* Clones init and lets it go on. cell has its cgroup; on failure the child is gone again. */
static int start(const struct launch *launch, struct vt_outer outer, struct vt_cell *cell,
		 struct vt_err *err)
{
	const struct vt_plan *plan = launch->plan;
	AUTO_CLOSE int init_fd = -1;
	const struct vt_inside inside = {
		.plan = plan,
		.cgroup = &cell->cgroup,
		.stdio = launch->stdio,
		.status_fd = launch->theirs,
		.mounts = launch->mounts,
		.works = cell->works,
		.layers = launch->layers,
		.picked = launch->picked,
		.spawner_fd = launch->spawner,
		.uid = outer.uid,
		.gid = outer.gid,
	};
	pid_t pid = vt_ns_clone(plan->namespaces | (launch->hull ? CLONE_PARENT : 0),
				vt_cgroup_clone_fd(&cell->cgroup), &init_fd, err);

	if (pid < 0)
		return pid;
	if (pid == 0) {
		(void)close(launch->ours); /* or the child would keep its own socket open */
		vt_inside_init(&inside);
	}
	int r = tell_born(launch, pid, init_fd, err);

	if (r == 0)
		r = release(launch, pid, outer, err);
	if (r < 0) {
		kill_init(launch, pid, init_fd);
		return r;
	}
	cell->init = pid;
	cell->bare = plan->bare;
	cell->outer = outer;
	cell->init_fd = vt_fd_take(&init_fd);
	return 0;
}

/* The steps that can fail, with everything that start() needs in scope. */
static int prepare_and_start(const struct launch *launch, struct vt_cell *cell, struct vt_err *err)
{
	const struct vt_plan *plan = launch->plan;
	struct vt_outer outer = vt_own_ids(plan, launch->owner);
	int r = make_works(plan, outer, cell, err);

	if (r == 0)
		r = map_grants(launch, outer, cell->works, err);
	if (r < 0)
		return r;
	if (plan->cgroup_site.version != VT_CGROUP_NONE && !plan->pooled) {
		r = vt_cgroup_make(&plan->cgroup_site, &plan->cgroup, &cell->cgroup, err);
		if (r < 0)
			return r;
	}
	return start(launch, outer, cell, err);
}

/* On failure nothing is left behind. */
static int spawn(struct launch *launch, struct vt_cell *ret_cell, struct vt_err *err)
{
	const struct vt_plan *plan = launch->plan;
	size_t count = plan->idmap_count + plan->build_count + plan->veil_count;
	size_t size = count * sizeof(int) + (plan->work_count + 1) * sizeof(struct vt_layers);
	int *all = malloc(size);
	struct vt_cell cell;

	if (!all)
		return vt_fail(err, VT_STEP_CLONE, ENOMEM, "make room for the mounts");
	memset(all, -1, size); /* every descriptor is -1: all bits set */
	launch->idmaps = all;
	launch->mounts = all + plan->idmap_count;
	launch->picked = launch->hull ? all + plan->idmap_count + plan->build_count : NULL;
	launch->layers = (struct vt_layers *)(all + count);
	vt_cell_init(&cell);
	int r = prepare_and_start(launch, &cell, err);

	close_all(all, size / sizeof(int)); /* layers are two descriptors each */
	free(all);
	if (r < 0) {
		struct vt_err later;

		(void)vt_cell_done(&cell, &later); /* the first failure is the one to report */
		return r;
	}
	*ret_cell = cell;
	return 0;
}

static int make_status_socket(int *ret_ours, int *ret_theirs, struct vt_err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "make the status socket");
	*ret_ours = pair[0];
	*ret_theirs = pair[1];
	return 0;
}

int vt_spawn(const struct vt_plan *plan, const struct vt_stdio *stdio, struct vt_cell *ret_cell,
	     struct vt_err *err)
{
	AUTO_CLOSE int ours = -1, theirs = -1;
	int r = make_status_socket(&ours, &theirs, err);

	if (r < 0)
		return r;
	struct launch launch = { .plan = plan,
				 .stdio = *stdio,
				 .owner = getpid(),
				 .ours = ours,
				 .theirs = theirs,
				 .spawner = -1 };

	r = spawn(&launch, ret_cell, err);
	if (r == 0)
		ret_cell->status_fd = vt_fd_take(&ours);
	return r;
}

/* ---- the maker of a hull --------------------------------------------------------------------- */

static void sweep_works(const struct vt_plan *plan)
{
	for (size_t i = 0; plan->work_count && i < plan->build_count; i++) {
		const struct vt_veil *veil = plan->builds[i].veil;

		if (veil && veil->work >= 0)
			(void)vt_work_sweep(veil->work_parent); /* what stays is for the next one */
	}
}

/* The folders are of use as long as init lives. */
static void keep_works(struct vt_cell *cell)
{
	struct pollfd end = { .fd = cell->init_fd, .events = POLLIN };
	struct vt_err err;

	while (cell->work_count && poll(&end, 1, -1) < 0 && errno == EINTR)
		;
	(void)vt_cell_done(cell, &err); /* what will not go is swept by the next */
}

/* It has no descriptor of the supervisor's, whatever it comes to wait for. */
static _Noreturn void make_hull(struct launch *launch)
{
	enum { NULL_FD, SPAWNER_FD, OURS_FD, THEIRS_FD };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct vt_note failed = { .kind = VT_NOTE_FAILED };
	struct vt_cell cell;

	if (null < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    getppid() != launch->owner ||
	    vt_process_descriptors(null, launch->spawner, launch->ours, launch->theirs,
				   &failed.err) < 0)
		_exit(1);
	launch->stdio = (struct vt_stdio){ NULL_FD, NULL_FD, NULL_FD };
	launch->spawner = SPAWNER_FD;
	launch->ours = OURS_FD;
	launch->theirs = THEIRS_FD;
	sweep_works(launch->plan);
	int r = spawn(launch, &cell, &failed.err);

	if (r < 0)
		(void)vt_pass_send(THEIRS_FD, &failed, sizeof(failed), NULL, 0, &failed.err);
	/* From now on it is init's alone. */
	(void)close(OURS_FD);
	(void)close(THEIRS_FD);
	if (r == 0)
		keep_works(&cell);
	_exit(r < 0);
}

int vt_spawn_hull(const struct vt_plan *plan, int spawner_fd, struct vt_cell *ret_hull,
		  struct vt_err *err)
{
	AUTO_CLOSE int ours = -1, theirs = -1;
	int r = make_status_socket(&ours, &theirs, err);

	if (r < 0)
		return r;
	struct launch launch = { .plan = plan,
				 .owner = getpid(),
				 .hull = true,
				 .ours = ours,
				 .theirs = theirs,
				 .spawner = spawner_fd };
	struct vt_cell hull;

	vt_cell_init(&hull);
	pid_t pid = vt_ns_clone(0, -1, &hull.maker_fd, err);

	if (pid == 0)
		make_hull(&launch);
	if (pid < 0)
		return pid;
	hull.maker = pid;
	hull.status_fd = vt_fd_take(&ours);
	*ret_hull = hull;
	return 0;
}

void vt_spawn_sweep(const struct vt_plan *plan)
{
	(void)vt_cgroup_sweep(&plan->cgroup_site); /* best effort: what stays is for the next one */
	if (!plan->pooled)
		sweep_works(plan);
}

int vt_cell_note(const struct vt_cell *cell, struct vt_note *ret_note, int ret_fds[VT_NOTE_FDS],
		 struct vt_err *err)
{
	struct vt_note note;
	int r = vt_pass_take(cell->status_fd, &note, sizeof(note), ret_fds, VT_NOTE_FDS,
			     MSG_DONTWAIT, err);

	if (r <= 0)
		return r;
	note.err.what[sizeof(note.err.what) - 1] = '\0';
	*ret_note = note;
	return 1;
}

int vt_cell_kill(const struct vt_cell *cell, struct vt_err *err)
{
	/* A bare cell's init is the one who can end it, and does when nobody listens any more. */
	if (cell->bare && shutdown(cell->status_fd, SHUT_WR) < 0)
		return vt_fail(err, VT_STEP_WATCH, errno, "tell the cell's init to end it");
	/* Our own child, not yet reaped: the number is its. */
	if (!cell->bare && kill(cell->init, SIGKILL) < 0 && errno != ESRCH)
		return vt_fail(err, VT_STEP_WATCH, errno, "kill the cell");
	return 0;
}

bool vt_cell_can_bury(const struct vt_plan *plan)
{
	return plan->bare && plan->own_ids && plan->id_count >= VT_IDS_FOR_ALL;
}

/* All of the user's count for the limit, so with room for one more it tells whether there are any.
 */
static bool is_alone(void)
{
	const struct rlimit two = { 2, 2 };
	pid_t pid = setrlimit(RLIMIT_NPROC, &two) < 0 ? -1 : fork();

	if (pid == 0)
		_exit(0);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid > 0;
}

/*
 * Ends all of the user's, who must be nobody but the cell's. What kill() returns does not tell
 * whether there was anybody, as others whom it may not signal count too.
 */
static bool end_all_of(uid_t uid, int patience_ms)
{
	const struct timespec pause = { .tv_nsec = 5000000 };

	for (int ms = 0; ms <= patience_ms; ms += 5) {
		if (uid == 0 || getuid() != uid || geteuid() != uid)
			return false;
		(void)kill(-1, SIGKILL);
		if (is_alone())
			return true;
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

/* As the cell's user, who can do no harm to others: nothing else is his. */
static _Noreturn void bury(struct vt_outer outer, const char *scratch, int patience_ms)
{
	struct vt_err err;

	if (vt_process_become(outer.uid, outer.gid, true, &err) < 0 || vt_caps_empty(&err) < 0 ||
	    vt_sweep_prepare(VT_SWEEP_USER, &err) < 0)
		_exit(1);
	bool ended = end_all_of(outer.uid, patience_ms);

	_exit(vt_scratch_discard(scratch, outer.uid, true, 0) == 0 && ended ? 0 : 1);
}

pid_t vt_cell_bury_as(const struct vt_plan *plan, struct vt_outer outer, const char *scratch,
		      int patience_ms, int *ret_pidfd, struct vt_err *err)
{
	if (!vt_cell_can_bury(plan))
		return vt_fail(err, VT_STEP_WATCH, EPERM, "end a cell that has no id of its own");
	pid_t pid = vt_ns_clone(0, -1, ret_pidfd, err);

	if (pid == 0)
		bury(outer, scratch, patience_ms);
	return pid;
}

bool vt_cell_bury(const struct vt_plan *plan, int patience_ms)
{
	AUTO_CLOSE int pidfd = -1;
	struct vt_err err;
	int status;
	pid_t pid = vt_cell_bury_as(plan, vt_spawn_ids(plan), plan->scratch, patience_ms / 2,
				    &pidfd, &err);

	if (pid < 0)
		return false;
	struct pollfd done = { .fd = pidfd, .events = POLLIN };

	while (poll(&done, 1, patience_ms) < 0 && errno == EINTR)
		;
	/* Too much to remove: it goes on without us. */
	if (!done.revents)
		return false;
	while (waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return false;
	return status == 0;
}

int vt_cell_done(struct vt_cell *cell, struct vt_err *err)
{
	vt_fd_close(&cell->init_fd);
	vt_fd_close(&cell->maker_fd);
	vt_fd_close(&cell->status_fd);
	int r = vt_cgroup_remove(&cell->cgroup, err);

	for (size_t i = 0; i < cell->work_count; i++) {
		struct vt_err later;
		int removed = vt_work_remove(&cell->works[i], r < 0 ? &later : err);

		r = r < 0 ? r : removed;
	}
	free(cell->works);
	cell->works = NULL;
	cell->work_count = 0;
	return r;
}
