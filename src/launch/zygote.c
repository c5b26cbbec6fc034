/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/zygote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/ns.h"
#include "kernel/pass.h"
#include "kernel/process.h"
#include "launch/cover.h"
#include "launch/heeded.h"
#include "launch/image.h"
#include "launch/inside_private.h"
#include "launch/shared.h"

/* Whether a thread waits for something: 'S' is what follows its name, which may have anything in
 * it. */
static bool is_asleep(int tasks, const char *tid)
{
	char path[NAME_MAX + 8], stat[256];

	(void)snprintf(path, sizeof(path), "%s/stat", tid); /* fits */
	AUTO_CLOSE int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);

	if (got <= 0)
		return false;
	stat[got] = '\0';
	const char *end = strrchr(stat, ')');

	return end && end[1] == ' ' && end[2] == 'S';
}

/* How many threads are asleep; a failure where more than this one are not. */
static int count_sleepers(const struct vt_zygote *zygote)
{
	int fd = openat(zygote->tasks_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
	int count = 0, awake = 0;
	const struct dirent *entry;

	if (!tasks) {
		vt_fd_close(&fd);
		return -EIO;
	}
	while ((entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			*(is_asleep(dirfd(tasks), entry->d_name) ? &count : &awake) += 1;
	(void)closedir(tasks); /* it was only read */
	return awake > 1 ? -EBUSY : count;
}

/*
 * One that sleeps holds no lock that a fork could need: it waits for work, which this thread alone
 * gives, and does not while it forks. Seen twice, so that none was woken by another that was still
 * awake at the first look.
 */
static int insist_on_sleep(const struct vt_zygote *zygote, struct vt_err *err)
{
	const struct timespec moment = { .tv_nsec = 200 * 1000 };
	int seen = 0, count = 0;

	for (int i = 0; i < 500 && seen < 2; i++) {
		count = count_sleepers(zygote);
		seen = count == zygote->helpers ? seen + 1 : 0;
		if (!seen)
			(void)nanosleep(&moment, NULL); /* shorter is as good */
	}
	return seen == 2 ? 0
			 : vt_fail(err, VT_STEP_CLONE, EBUSY,
				   "fork a program of which %d threads sleep, and not %d", count,
				   zygote->helpers);
}

/* Whose fork would come with locks that a thread held which it does not have. */
static int insist_on_one_thread(const struct vt_zygote *zygote, struct vt_err *err)
{
	struct stat st;

	if (zygote->helpers)
		return insist_on_sleep(zygote, err);
	/* A folder has a link for itself, one from its parent, and one for each below it. */
	if (fstat(zygote->tasks_fd, &st) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "count the zygote's threads");
	if (st.st_nlink != 3)
		return vt_fail(err, VT_STEP_CLONE, EBUSY,
			       "fork a program that has %d threads: nothing may start one before "
			       "its tools are ready",
			       (int)st.st_nlink - 2);
	return 0;
}

/* One who was started without power over mounts is in it, and nobody can enter where he is. */
static bool is_in_user(int ns_fd)
{
	struct stat own, other;

	return stat("/proc/self/ns/user", &own) == 0 && fstat(ns_fd, &other) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/*
 * The user namespace first: it gives the power over the others. But not over the host's network,
 * where a zygote is already if the hull is.
 */
static int join_hull(const struct vt_zygote *zygote, const int hull[VT_HULL_FDS],
		     struct vt_err *err)
{
	for (size_t i = is_in_user(hull[VT_HULL_USER_FD]); i < VT_HULL_PID_FD; i++)
		if ((i != VT_HULL_NET_FD || zygote->plan->own_network) && setns(hull[i], 0) < 0)
			return vt_fail(err, VT_STEP_CLONE, errno, "join the hull");
	return vt_process_become(0, 0, zygote->plan->own_ids, err);
}

/* Where cells are bare there is no hull, and each becomes its user by itself. */
static int join(const struct vt_zygote *zygote, const int hull[VT_HULL_FDS], struct vt_err *err)
{
	int r = zygote->plan->bare ? 0 : join_hull(zygote, hull, err);

	if (r == 0)
		r = vt_process_leave_keys(err);
	/* What was loaded, and which addresses it has, is nobody's business in a cell. */
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = vt_fail(err, VT_STEP_IDS, errno, "become unreadable");
	/* The change of ids has cleared it. One who died before that is missed on the socket. */
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		r = vt_fail(err, VT_STEP_IDS, errno, "ask to die with the supervisor");
	return r;
}

static int prepare(struct vt_zygote *zygote, struct vt_err *err)
{
	struct vt_note order;
	int fds[VT_NOTE_FDS];
	int r = vt_pass_take(zygote->control_fd, &order, sizeof(order), fds, VT_NOTE_FDS, 0, err);

	if (r == 0)
		return vt_fail(err, VT_STEP_WATCH, EAGAIN, "wait for the plan");
	if (r < 0)
		return r;
	if (order.kind != VT_NOTE_PLAN)
		r = vt_fail(err, VT_STEP_CLONE, EBADMSG, "understand the first order");
	if (r > 0)
		r = vt_image_open(fds[0], &zygote->plan, err);
	if (r == 0) {
		zygote->tasks_fd = open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = zygote->tasks_fd < 0
			    ? vt_fail(err, VT_STEP_CLONE, errno,
				      "open '/proc/self/task', to see that the program has one "
				      "thread")
			    : insist_on_one_thread(zygote, err);
	}
	if (r == 0)
		r = join(zygote, fds + 1, err);
	if (r == 0)
		zygote->home_fd = vt_fd_take(&fds[1 + VT_HULL_PID_FD]);
	for (size_t i = 0; i < VT_NOTE_FDS; i++)
		vt_fd_close(&fds[i]);
	return r;
}

static int tell(const struct vt_zygote *zygote, const struct vt_note *note, const int *fds,
		size_t count, struct vt_err *err)
{
	return vt_pass_send(zygote->control_fd, note, sizeof(*note), fds, count, err);
}

void vt_zygote_fail(struct vt_zygote *zygote, const struct vt_err *why)
{
	const struct vt_note note = { .kind = VT_NOTE_FAILED, .err = *why };
	struct vt_err unheard;

	(void)tell(zygote, &note, NULL, 0, &unheard); /* there may be nobody to tell */
	vt_fd_close(&zygote->tasks_fd);
	vt_fd_close(&zygote->home_fd);
	vt_fd_close(&zygote->control_fd);
}

int vt_zygote_join(struct vt_zygote *zygote, int control_fd, struct vt_err *err)
{
	*zygote = (struct vt_zygote){ .control_fd = control_fd, .tasks_fd = -1, .home_fd = -1 };
	/* The supervisor listens to it no longer. Where it is closed, there is nothing to turn
	 * away. */
	(void)dup2(1, 2);
	int r = prepare(zygote, err);

	if (r < 0)
		vt_zygote_fail(zygote, err);
	return r;
}

/* ---- the occupant -------------------------------------------------------------------------- */

static int enter_cgroup(struct vt_building *b, struct vt_err *err)
{
	return vt_cgroup_join(b->in->cgroup, err);
}

static int enter_cell(struct vt_building *b, struct vt_err *err)
{
	const int all = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
			CLONE_NEWCGROUP | (b->plan->own_network ? CLONE_NEWNET : 0);

	if (setns(b->occupant_fd, all) < 0)
		return vt_fail_at(err, VT_STEP_CLONE, errno, "enter the cell", NULL);
	return vt_process_become(b->plan->inner_uid, b->plan->inner_gid, b->plan->own_ids, err);
}

/* A change of ids hides a process from its own user, who may look at himself. */
static int show_itself(struct vt_building *b, struct vt_err *err)
{
	(void)b;
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return vt_fail_at(err, VT_STEP_IDS, errno, "become readable", NULL);
	return 0;
}

/* clang-format off */
static const struct vt_inside_step steps[] = {
	{ "cgroup", enter_cgroup },  /* before its namespace, in which there is no other */
	{ "cell",   enter_cell },
	{ "shown",  show_itself },
};
/* clang-format on */

static void occupy(const struct vt_plan *plan, const struct vt_cgroup *cgroup, const int *fds)
{
	const struct vt_inside inside = {
		.plan = plan,
		.cgroup = cgroup,
		.stdio = { -1, fds[VT_ENTER_OUT_FD], fds[VT_ENTER_ERR_FD] },
		.status_fd = fds[VT_ENTER_CALL_FD],
	};
	struct vt_building b = vt_building_of(&inside);

	b.occupant_fd = fds[VT_ENTER_INIT_FD];
	vt_inside_take_steps(steps, COUNT(steps), &b, inside.status_fd);
	vt_seal_entered(&b);
	vt_heeded_show(environ);
}

/* ---- the zygote ---------------------------------------------------------------------------- */

/* Returns init's pid, 0 in the occupant that init started, or a failure. */
static pid_t fork_bare(const struct vt_zygote *zygote, const struct vt_cgroup *cgroup,
		       const struct vt_note *order, const int *fds, int *ret_pidfd,
		       struct vt_err *err)
{
	pid_t pid = vt_ns_clone(CLONE_PARENT, order->unified ? fds[VT_ENTER_FDS] : -1, ret_pidfd,
				err);

	if (pid == 0)
		vt_bare_enter(zygote->plan, cgroup, fds, order->cell);
	return pid;
}

/* Returns the occupant's pid, 0 in the occupant, or a failure. */
static pid_t fork_into(const struct vt_zygote *zygote, const struct vt_cgroup *cgroup,
		       const struct vt_note *order, const int *fds, int *ret_pidfd,
		       struct vt_err *err)
{
	int r = insist_on_one_thread(zygote, err);

	if (r < 0)
		return r;
	if (zygote->plan->bare)
		return fork_bare(zygote, cgroup, order, fds, ret_pidfd, err);
	/* Of the next children; it moves on with the next order. */
	if (setns(fds[VT_ENTER_INIT_FD], CLONE_NEWPID) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "turn to the cell");
	pid_t pid = vt_ns_clone(CLONE_PARENT, -1, ret_pidfd, err);

	if (pid == 0)
		occupy(zygote->plan, cgroup, fds);
	return pid;
}

static void close_order(struct vt_zygote_order *order)
{
	for (size_t i = 0; i < VT_NOTE_FDS; i++)
		vt_fd_close(&order->fds[i]);
}

int vt_zygote_take(struct vt_zygote *zygote, struct vt_zygote_order *ret_order, struct vt_err *err)
{
	struct vt_zygote_order order;
	int r = vt_pass_take(zygote->control_fd, &order.note, sizeof(order.note), order.fds,
			     VT_NOTE_FDS, 0, err);

	if (r == 0)
		return vt_fail(err, VT_STEP_WATCH, EAGAIN, "wait for an order");
	if (r < 0)
		return r;
	if (order.note.kind != VT_NOTE_ENTER && order.note.kind != VT_NOTE_LEARN) {
		close_order(&order);
		return vt_fail(err, VT_STEP_WATCH, EBADMSG, "understand an order");
	}
	order.note.err.what[sizeof(order.note.err.what) - 1] = '\0';
	*ret_order = order;
	return 0;
}

int vt_zygote_enter(struct vt_zygote *zygote, struct vt_zygote_order *order, struct vt_err *err)
{
	struct vt_note note = { .kind = VT_NOTE_ENTERED, .cell = order->note.cell };
	struct vt_cgroup cgroup;
	AUTO_CLOSE int pidfd = -1;

	if (order->note.kind != VT_NOTE_ENTER)
		return vt_fail(err, VT_STEP_WATCH, EBADMSG, "understand an order");
	/* One of v2 is not joined: it is what the fork is born in. */
	vt_cgroup_from_joins(&cgroup, order->fds + VT_ENTER_FDS,
			     order->note.unified ? 0 : order->note.joins);
	note.pid = fork_into(zygote, &cgroup, &order->note, order->fds, &pidfd, &note.err);
	if (note.pid == 0)
		return 0;
	if (note.pid < 0)
		note.kind = VT_NOTE_FAILED;
	/* A bare cell's init tells for itself. */
	int r = note.pid > 0 && zygote->plan->bare
			? 0
			: tell(zygote, &note, &pidfd, note.kind == VT_NOTE_ENTERED, err);

	/* Only now: that nobody has them tells less than the note does. */
	close_order(order);
	return r < 0 ? r : 1;
}

/* The first of them, if one is wanted. */
static int keep_first(void *user, const struct vt_shared *piece)
{
	struct vt_shared *first = user;

	if (first && !first->to)
		*first = *piece;
	return 0;
}

static int find_shared(const struct vt_zygote *zygote, struct vt_shared *ret_first)
{
	AUTO_CLOSE int proc = openat(zygote->tasks_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return proc < 0 ? -errno : vt_shared_each(proc, keep_first, ret_first);
}

int vt_zygote_shared(const struct vt_zygote *zygote)
{
	return find_shared(zygote, NULL);
}

/*
 * Once, for all forks. What runs between them is the program's own: what it learns, which is looked
 * at, too, and of Python what its modules have done around each fork.
 */
static int insist_on_own_memory(const struct vt_zygote *zygote, struct vt_err *err)
{
	struct vt_shared first = { 0 };
	int count = find_shared(zygote, &first);

	if (count < 0)
		return vt_fail(err, VT_STEP_CLONE, -count,
			       "look for memory that calls would share");
	if (count > 0)
		return vt_fail(err, VT_STEP_CLONE, EBUSY,
			       "fork a program with memory that all calls would share, of '%.60s': "
			       "nothing may map that before its tools are ready",
			       first.name);
	return 0;
}

int vt_zygote_ready(struct vt_zygote *zygote, struct vt_err *err)
{
	const struct vt_note ready = { .kind = VT_NOTE_READY };
	int r = insist_on_own_memory(zygote, err);

	if (r < 0) {
		vt_zygote_fail(zygote, err);
		return r;
	}
	return tell(zygote, &ready, NULL, 0, err);
}

int vt_zygote_serve(struct vt_zygote *zygote, struct vt_err *err)
{
	struct vt_zygote_order order;
	int r = vt_zygote_ready(zygote, err);

	do {
		if (r >= 0)
			r = vt_zygote_take(zygote, &order, err);
		if (r >= 0)
			r = vt_zygote_enter(zygote, &order, err);
	} while (r > 0);
	return r;
}

int vt_zygote_tell(struct vt_zygote *zygote, enum vt_note_kind kind, int num, const char *text,
		   struct vt_err *err)
{
	struct vt_note note = { .kind = kind };

	if (num || *text)
		(void)vt_fail(&note.err, VT_STEP_COMMAND, num ? num : EIO, "%s",
			      text); /* as it is */
	note.err.num = num;
	return tell(zygote, &note, NULL, 0, err);
}

int vt_zygote_threads(const struct vt_zygote *zygote)
{
	struct stat st;

	return fstat(zygote->tasks_fd, &st) < 0 ? -errno : (int)st.st_nlink - 2;
}

/*
 * By the same acts as the init of a cell, on mounts that are the zygote's alone. A proc it has no
 * power to mount, and without one there is nothing to mask.
 */
int vt_zygote_furnish(struct vt_zygote *zygote, struct vt_err *err)
{
	const struct vt_inside inside = { .plan = zygote->plan };
	struct vt_building b = vt_building_of(&inside);
	const mode_t usual = umask(0);
	int r = 0;

	(void)umask(usual); /* it was only asked for */
	if (zygote->plan->bare)
		return 0;
	if (unshare(CLONE_NEWNS) < 0)
		return vt_fail(err, VT_STEP_MOUNTS, errno, "have mounts of the zygote's own");
	r = vt_inside_furnish_root(&b, err);
	vt_fd_close(&b.root_fd);
	(void)umask(usual); /* returns the old one, cannot fail */
	/* The one that was entered is on the mount below. */
	if (r == 0 && chdir("/") < 0)
		r = vt_fail(err, VT_STEP_MOUNTS, errno, "enter the root");
	return r;
}

/* A call, or the host, may have moved or removed what is to be covered. */
int vt_zygote_cover(struct vt_zygote *zygote, struct vt_err *err)
{
	struct vt_err why;

	if (!zygote->plan->loads_ahead)
		return 0;
	zygote->loads_ahead = zygote->plan->bare || vt_cover_written(zygote->plan, &why) == 0;
	if (zygote->loads_ahead)
		return 0;
	char text[sizeof(why.what) + 64];

	(void)snprintf(text, sizeof(text), "what calls can write cannot be covered: cannot %s: %s",
		       why.what, strerror(why.num)); /* cut, at worst */
	return vt_zygote_tell(zygote, VT_NOTE_TOLD, why.num, text, err);
}

int vt_zygote_turn_home(const struct vt_zygote *zygote, struct vt_err *err)
{
	if (zygote->home_fd >= 0 && setns(zygote->home_fd, CLONE_NEWPID) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "turn to the hull");
	return 0;
}

/* The supervisor's child, as occupants are: unreaped it would keep the hull from its end. */
int vt_zygote_fork_apart(struct vt_zygote *zygote, int *ret_pidfd, struct vt_err *err)
{
	const pid_t parent = getppid();
	int r = insist_on_one_thread(zygote, err);

	if (r == 0)
		r = vt_zygote_turn_home(zygote, err);
	if (r < 0)
		return r;
	pid_t pid = vt_ns_clone(CLONE_PARENT, -1, ret_pidfd, err);

	if (pid != 0)
		return pid < 0 ? pid : 1;
	/* Without namespaces he can be seen; in the hull, its end is everybody's. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    (zygote->home_fd < 0 && getppid() != parent))
		_exit(125);
	vt_fd_close(&zygote->control_fd);
	vt_fd_close(&zygote->tasks_fd);
	zygote->tasks_fd = open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

int vt_zygote_park(struct vt_err *err)
{
	const struct vt_note note = { .kind = VT_NOTE_PARKED };

	return vt_pass_send(VT_OCCUPANT_CALL_FD, &note, sizeof(note), NULL, 0, err);
}
