/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the spawner: everything but what `steps` lists, which a cell's new init runs. Init builds what
 * is the cell's own, tells the supervisor, gives up all it has, and waits to be killed. It reaps by
 * ignoring SIGCHLD. The kernel kills it, with its cell, when the spawner ends.
 */
#include "launch/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/beneath.h"
#include "kernel/caps.h"
#include "kernel/ns.h"
#include "kernel/overlay.h"
#include "kernel/pass.h"
#include "kernel/process.h"
#include "launch/guard.h"
#include "launch/image.h"
#include "launch/inside_private.h"

enum { CONTROL_FD = 3, STACK_NEEDED = 512, STACK_USED = 64 << 10 };

struct spawner {
	const struct vt_plan *plan;
	/* of each build with guards, in the plan's order, the folder; and what is at each guard */
	int *folders;
	struct vt_inode *seen;
	int networks[VT_PLACES]; /* which cells in each place get, one after the other; -1: none yet
				  */
};

/* ---- a cell's init ------------------------------------------------------------------------- */

static int await_ids(struct vt_building *b, struct vt_err *err)
{
	uint64_t go;

	if (read(b->ready_fd, &go, sizeof(go)) != sizeof(go))
		return vt_fail_at(err, VT_STEP_IDS, errno, "wait for the spawner", NULL);
	return vt_process_become(b->plan->inner_uid, b->plan->inner_gid, b->plan->own_ids, err);
}

/* clang-format off */
static const struct vt_inside_step steps[] = {
	{ "cgroup", vt_inside_join_cgroup },   /* before anything is allocated that should be counted */
	{ "ids",    await_ids },
	{ "counts", vt_inside_bound_counts },  /* through the hull's proc, before it is covered */
	{ "network", vt_inside_raise_loopback },
	{ "root",   vt_inside_finish_root },
};
/* clang-format on */

static void tell(const struct vt_note *note, const int *fds, size_t count)
{
	struct vt_err err;

	/* Without a supervisor everything ends. */
	if (vt_pass_send(CONTROL_FD, note, sizeof(*note), fds, count, &err) < 0)
		_exit(125);
}

/* One that cannot give it back keeps it. */
static void give_back(uintptr_t from, uintptr_t to)
{
	(void)syscall(SYS_madvise, from, to - from, MADV_DONTNEED);
}

/*
 * Until the end. An init waits for long, and there are many, so that the stack is given back: what
 * building the cell took, and whoever called this, to whom nothing returns. Not inline, so that its
 * frame ends where the stack does.
 */
static __attribute__((noinline)) _Noreturn void rest(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t low = (here - STACK_NEEDED) & ~(page - 1);
	uintptr_t high = (here + STACK_NEEDED + page) & ~(page - 1);
	uintptr_t top = (uintptr_t)environ & ~(page - 1);

	give_back(low - STACK_USED, low);
	if (high < top)
		give_back(high, top);
	for (;;)
		(void)pause();
}

static _Noreturn void live(const struct spawner *spawner, const struct vt_cgroup *cgroup, int go_fd,
			   uint64_t cell)
{
	const struct vt_inside inside = { .plan = spawner->plan, .cgroup = cgroup };
	struct vt_building b = vt_building_of(&inside);
	struct vt_note note = { .kind = VT_NOTE_BUILT, .cell = cell };
	struct vt_err *err = &note.err;

	b.ready_fd = go_fd;
	for (size_t i = 0; i < COUNT(steps) && note.kind == VT_NOTE_BUILT; i++)
		if (steps[i].take(&b, err) < 0)
			note.kind = VT_NOTE_FAILED;
	if (note.kind == VT_NOTE_BUILT && vt_caps_empty(err) < 0)
		note.kind = VT_NOTE_FAILED;
	const int fds[VT_BUILT_FDS] = {
		[VT_BUILT_ROOT_FD] = b.root_fd, [VT_BUILT_PROC_FD] = b.proc_fd
	};

	tell(&note, fds, note.kind == VT_NOTE_FAILED ? 0 : VT_BUILT_FDS - (b.proc_fd < 0));
	if (note.kind == VT_NOTE_FAILED || syscall(SYS_close_range, 0U, ~0U, 0) < 0)
		_exit(125);
	rest();
}

/* ---- the spawner --------------------------------------------------------------------------- */

/* Makes one, and is in it. */
static int make_network(int *ret_fd, struct vt_err *err)
{
	if (unshare(CLONE_NEWNET) < 0)
		return vt_fail(err, VT_STEP_NETWORK, errno, "make a network namespace");
	*ret_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (*ret_fd < 0)
		return vt_fail(err, VT_STEP_NETWORK, errno, "open a network namespace");
	return 0;
}

/*
 * A network namespace takes longer to make, and to take apart, than all else of a cell. So the cell
 * in a place gets that of the one before it, of which no process is left, and which had no power
 * over it and no sockets but unix ones. *ret_flag is CLONE_NEWNET for a cell that is to have a new
 * one: there are more than places, or the plan keeps none.
 */
static int choose_network(struct spawner *spawner, uint32_t place, uint64_t *ret_flag,
			  struct vt_err *err)
{
	const struct vt_plan *plan = spawner->plan;

	*ret_flag = 0;
	if (!plan->keeps_networks || place >= VT_PLACES) {
		*ret_flag = plan->own_network ? CLONE_NEWNET : 0;
		return 0;
	}
	if (spawner->networks[place] < 0)
		return make_network(&spawner->networks[place], err);
	if (setns(spawner->networks[place], CLONE_NEWNET) < 0)
		return vt_fail(err, VT_STEP_NETWORK, errno, "enter a network namespace");
	return 0;
}

/* Clones an init, maps its ids and lets it go on. Of one that cannot be mapped nothing is left. */
static int make(struct spawner *spawner, const struct vt_cgroup *cgroup,
		const struct vt_note *order, struct vt_err *err)
{
	const struct vt_plan *plan = spawner->plan;
	const uint64_t go = 1;
	struct vt_note made = { .kind = VT_NOTE_MADE, .cell = order->cell };
	uint64_t new_network;
	AUTO_CLOSE int init_fd = -1;
	AUTO_CLOSE int go_fd = eventfd(0, EFD_CLOEXEC); /* its ids are mapped */

	if (go_fd < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "make an eventfd");
	int r = choose_network(spawner, order->place, &new_network, err);

	if (r < 0)
		return r;
	/* SIGCHLD, which we ignore: the kernel reaps it at once. */
	pid_t pid = vt_ns_clone(plan->namespaces | new_network | SIGCHLD, -1, &init_fd, err);

	if (pid == 0)
		live(spawner, cgroup, go_fd, order->cell);
	if (pid < 0)
		return pid;
	/*
	 * Without ids for cells, the cell's user is the hull's root, whom nobody outside takes for
	 * more than he is.
	 */
	const uint32_t id = plan->pool_id_count ? 1 + order->slot % plan->pool_id_count : 0;

	r = vt_ns_map_ids(pid, plan->inner_uid, id, plan->inner_gid, id, plan->own_ids, err);

	if (r < 0) {
		/* By what it is: the kernel reaps at once, and its number may be another's by now.
		 */
		(void)syscall(SYS_pidfd_send_signal, init_fd, SIGKILL, NULL, 0U);
		return r;
	}
	tell(&made, &init_fd, 1);
	if (write(go_fd, &go, sizeof(go)) != sizeof(go))
		_exit(125);
	return 0;
}

static int refresh(const struct spawner *spawner, struct vt_err *err)
{
	int fd = VT_SPAWNER_VEILS, r = 0;

	for (size_t i = 0; r == 0 && i < spawner->plan->build_count; i++)
		if (spawner->plan->builds[i].veiled)
			r = vt_overlay_refresh(fd++, spawner->plan->builds[i].writable, err);
	return r;
}

/* ---- what is protected ----------------------------------------------------------------------- */

/* As it is mounted by now: whatever is another later was changed since. */
static int note_guards(struct spawner *spawner, struct vt_err *err)
{
	const struct vt_plan *plan = spawner->plan;
	size_t folders = plan->build_count * sizeof(*spawner->folders);
	size_t room = plan->guard_count * sizeof(*spawner->seen) + folders;
	AUTO_CLOSE int root = plan->guard_count ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	size_t at = 0, count = 0;

	if (!plan->guard_count)
		return 0;
	spawner->seen = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	if (root < 0 || spawner->seen == MAP_FAILED)
		return vt_fail(err, VT_STEP_MOUNTS, errno, "note what is protected");
	spawner->folders = (int *)(void *)(spawner->seen + plan->guard_count);
	for (size_t i = 0; i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (!build->guard_count || at + build->guard_count > plan->guard_count)
			continue;
		int fd = vt_beneath_open(root, build->to);

		if (fd < 0)
			return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open the grant", build->to);
		vt_guard_note(build, fd, spawner->seen + at);
		spawner->folders[count++] = fd;
		at += build->guard_count;
	}
	return 0;
}

static bool is_guarded(const struct spawner *spawner)
{
	const struct vt_plan *plan = spawner->plan;
	size_t at = 0, count = 0;

	for (size_t i = 0; at < plan->guard_count && i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (!build->guard_count)
			continue;
		if (!vt_guard_stands(build, spawner->folders[count++], spawner->seen + at))
			return false;
		at += build->guard_count;
	}
	return true;
}

/* What is told of a look, in a file that is made with the first of it. */
struct telling {
	size_t build, len;
	int fd; /* -1: nothing was told */
};

static void record(void *user, enum vt_guard_event event, const char *path, const char *to, int num)
{
	struct telling *telling = user;
	const struct vt_guard_record record = { event, (uint32_t)num, telling->build };
	const char *name = to ? to : "";
	size_t path_len = strlen(path) + 1, name_len = strlen(name) + 1;
	size_t len = sizeof(record) + path_len + name_len;

	if (telling->fd < 0)
		telling->fd = memfd_create("vitro-looked", MFD_CLOEXEC);
	if (telling->fd < 0 || telling->len + len > VT_GUARD_RECORDS_MAX)
		return;
	if (write(telling->fd, &record, sizeof(record)) == sizeof(record) &&
	    write(telling->fd, path, path_len) == (ssize_t)path_len &&
	    write(telling->fd, name, name_len) == (ssize_t)name_len)
		telling->len += len;
}

static void look(const struct spawner *spawner, struct vt_note *order)
{
	const struct vt_plan *plan = spawner->plan;
	struct telling telling = { .fd = -1 };
	const struct vt_guard_teller teller = { record, &telling };
	size_t at = 0, count = 0;

	order->err.what[sizeof(order->err.what) - 1] = '\0';
	for (size_t i = 0; at < plan->guard_count && i < plan->build_count; i++) {
		const struct vt_build *build = &plan->builds[i];

		if (!build->guard_count)
			continue;
		telling.build = i;
		vt_guard_judge(build, spawner->folders[count++], spawner->seen + at,
			       order->err.what, &teller);
		at += build->guard_count;
	}
	order->kind = VT_NOTE_LOOKED;
	tell(order, &telling.fd, telling.fd >= 0);
	vt_fd_close(&telling.fd);
}

/* Takes one order, and obeys. */
static void obey(struct spawner *spawner)
{
	struct vt_note order, failed = { .kind = VT_NOTE_FAILED };
	struct vt_cgroup cgroup;
	int fds[VT_NOTE_FDS];

	if (vt_pass_take(CONTROL_FD, &order, sizeof(order), fds, VT_NOTE_FDS, 0, &failed.err) < 0)
		_exit(0); /* the supervisor is gone */
	failed.cell = order.cell;
	vt_cgroup_from_joins(&cgroup, fds, order.joins);
	switch (order.kind) {
	case VT_NOTE_MAKE:
		if (make(spawner, &cgroup, &order, &failed.err) < 0)
			tell(&failed, NULL, 0);
		break;
	case VT_NOTE_REFRESH:
		order.kind = VT_NOTE_REFRESHED;
		failed.cell = 0; /* of the hull, which is of no use then */
		if (refresh(spawner, &failed.err) < 0) {
			tell(&failed, NULL, 0);
			_exit(125);
		}
		if (!is_guarded(spawner))
			order.kind = VT_NOTE_UNGUARDED;
		tell(&order, NULL, 0);
		break;
	case VT_NOTE_LOOK:
		look(spawner, &order);
		break;
	default:
		_exit(125);
	}
	for (size_t i = 0; i < VT_NOTE_FDS; i++)
		vt_fd_close(&fds[i]);
}

static int prepare(struct spawner *spawner, struct vt_err *err)
{
	struct vt_note order;
	int fds[VT_NOTE_FDS];

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return vt_fail(err, VT_STEP_IDS, errno, "become unreadable");
	if (signal(SIGCHLD, SIG_IGN) == SIG_ERR)
		return vt_fail(err, VT_STEP_SESSION, errno, "have children reaped");
	if (vt_pass_take(CONTROL_FD, &order, sizeof(order), fds, VT_NOTE_FDS, 0, err) < 0)
		_exit(0);
	if (order.kind != VT_NOTE_PLAN)
		return vt_fail(err, VT_STEP_CLONE, EBADMSG, "understand the first order");
	int r = vt_image_open(fds[0], &spawner->plan, err);

	vt_fd_close(&fds[0]);
	return r < 0 ? r : note_guards(spawner, err);
}

_Noreturn void vt_spawner_run(void)
{
	struct vt_note note = { .kind = VT_NOTE_READY };
	struct spawner spawner = { .plan = NULL };

	for (size_t i = 0; i < VT_PLACES; i++)
		spawner.networks[i] = -1;
	if (prepare(&spawner, &note.err) < 0)
		note.kind = VT_NOTE_FAILED;
	tell(&note, NULL, 0);
	while (note.kind == VT_NOTE_READY)
		obey(&spawner);
	_exit(125);
}
