/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. The supervisor clones init into the cell's new namespaces and maps its ids.
 * Init, which has every capability over the cell and none over the host, clones the occupant,
 * builds the root and enters it for both, gives up its capabilities, and reaps until the occupant
 * has ended. The occupant makes its network meanwhile, waits for the root, seals itself and execs
 * the command. Both tell the supervisor on the status socket what went wrong, and the cell ends
 * with init.
 *
 * Which process runs what: each part below says so. Neither runs a byte of the call before every
 * step has been taken.
 */
#include "launch/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/fd.h"
#include "kernel/caps.h"
#include "kernel/ns.h"
#include "kernel/pass.h"
#include "kernel/process.h"
#include "launch/cell.h"
#include "launch/inside_private.h"

/*
 * Inotify is counted per user of the whole machine; a cell gets a share of it. Through the host's
 * proc, where these files are those of the user namespace that opens them.
 */
static const struct {
	const char *path, *all;
	uint64_t of_cell;
} counts[] = {
	{ "/proc/sys/user/max_inotify_instances", "/proc/sys/fs/inotify/max_user_instances", 32 },
	{ "/proc/sys/user/max_inotify_watches", "/proc/sys/fs/inotify/max_user_watches", 8192 },
};

static int bound_count(const char *path, uint64_t most, struct vt_err *err)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
	char digits[VT_DECIMAL];
	size_t len = vt_decimal(digits, most);

	/* A kernel without inotify; a container whose sysctls are mounted read-only. */
	if (fd < 0 && (errno == ENOENT || errno == EROFS))
		return 0;
	if (fd < 0 || write(fd, digits, len) != (ssize_t)len)
		return vt_fail_at(err, VT_STEP_LIMITS, errno, "bound", path);
	return 0;
}

int vt_inside_bound_counts(struct vt_building *b, struct vt_err *err)
{
	int r = 0;

	(void)b;
	for (size_t i = 0; r == 0 && i < COUNT(counts); i++)
		r = bound_count(counts[i].path, counts[i].of_cell, err);
	return r;
}

/* A number that the kernel shows; 0: it cannot be read. */
static uint64_t read_number(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[VT_DECIMAL];
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text));
	uint64_t number = 0;

	for (ssize_t i = 0; i < len && text[i] >= '0' && text[i] <= '9'; i++)
		number = number * 10 + (uint64_t)(text[i] - '0');
	return number;
}

/* All cells of a pool together leave the caller's other programs a quarter, however many they are.
 */
int vt_inside_share_counts(struct vt_building *b, struct vt_err *err)
{
	int r = 0;

	(void)b;
	for (size_t i = 0; r == 0 && i < COUNT(counts); i++) {
		uint64_t all = read_number(counts[i].all);

		if (all) /* else nobody can say how many there are */
			r = bound_count(counts[i].path, all - all / 4, err);
	}
	return r;
}

/* First the cgroup, then the namespace: its root is where the process is when it is made. */
int vt_inside_join_cgroup(struct vt_building *b, struct vt_err *err)
{
	int r = vt_cgroup_join(b->in->cgroup, err);

	if (r == 0 && !b->plan->bare && unshare(CLONE_NEWCGROUP) < 0)
		return vt_fail_at(err, VT_STEP_CLONE, errno, "make a cgroup namespace", NULL);
	return r;
}

/* Blocks until the supervisor has mapped our ids; ends if it is gone. */
int vt_inside_await_ids(struct vt_building *b, struct vt_err *err)
{
	struct vt_note note;
	ssize_t len;

	do
		len = recv(b->in->status_fd, &note, sizeof(note), 0);
	while (len < 0 && errno == EINTR);
	if (len != sizeof(note) || note.kind != VT_NOTE_GO)
		return vt_fail_at(err, VT_STEP_IDS, EPIPE, "wait for the supervisor", NULL);
	return 0;
}

int vt_inside_become_user(struct vt_building *b, struct vt_err *err)
{
	const bool hull = b->plan->pooled;
	int r = vt_process_become(hull ? 0 : b->plan->inner_uid, hull ? 0 : b->plan->inner_gid,
				  b->plan->own_ids, err);

	if (r < 0)
		return r;
	/* Only after the ids: changing those clears it. If the supervisor dies, so does the cell.
	 */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return vt_fail_at(err, VT_STEP_IDS, errno, "ask to die with the supervisor", NULL);
	/* It may have died before that: then its end of the socket is closed. */
	struct pollfd supervisor = { .fd = b->in->status_fd };

	if (poll(&supervisor, 1, 0) != 0)
		return vt_fail_at(err, VT_STEP_IDS, EPIPE, "find the supervisor", NULL);
	return 0;
}

/*
 * Init's memory is a copy of the supervisor's. Nobody in the cell may look at it, and what they
 * would like best is not there.
 */
int vt_inside_hide_memory(struct vt_building *b, struct vt_err *err)
{
	/* A zygote's is the occupants' own, and may lie where nobody can write. */
	for (char **variable = environ; !b->plan->pooled && *variable; variable++)
		memset(*variable, 0, strlen(*variable));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return vt_fail_at(err, VT_STEP_IDS, errno, "become unreadable", NULL);
	return 0;
}

int vt_inside_name_host(struct vt_building *b, struct vt_err *err)
{
	(void)b;
	if (sethostname("vitro", 5) < 0 || setdomainname("", 0) < 0)
		return vt_fail_at(err, VT_STEP_CLONE, errno, "set the host name", NULL);
	return 0;
}

/* A caller may ignore SIGCHLD; init would never learn then how its occupant ended. */
int vt_inside_expect_children(struct vt_building *b, struct vt_err *err)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };

	(void)b;
	if (sigaction(SIGCHLD, &by_default, NULL) < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "expect children", NULL);
	return 0;
}

/* In the occupant. */
static _Noreturn void occupy(struct vt_building *b)
{
	const struct vt_plan *plan = b->plan;
	struct vt_err err;

	vt_seal(b);
	if (plan->rehearsal)
		_exit(0);
	(void)execve(plan->exec_path, plan->argv, plan->envp); /* returns only to fail */
	(void)vt_fail_at(&err, VT_STEP_EXEC, errno, "execute", plan->exec_path);
	vt_inside_fail(3, &err);
}

int vt_inside_fork_occupant(struct vt_building *b, struct vt_err *err)
{
	b->init = getpid();
	b->ready_fd = eventfd(0, EFD_CLOEXEC);
	if (b->ready_fd < 0)
		return vt_fail_at(err, VT_STEP_CLONE, errno, "make an eventfd", NULL);
	b->occupant = vt_ns_clone(0, -1, &b->occupant_fd, err);
	return b->occupant < 0 ? b->occupant : 0;
}

int vt_inside_start_occupant(struct vt_building *b, struct vt_err *err)
{
	int r = vt_inside_fork_occupant(b, err);

	if (r == 0 && b->occupant == 0)
		occupy(b);
	return r;
}

int vt_inside_tell_running(struct vt_building *b, struct vt_err *err)
{
	const uint64_t ready = 1;
	const struct vt_note note = { .kind = VT_NOTE_RUNNING,
				      .pid = b->plan->bare ? b->occupant : 0 };
	const int fds[VT_NOTE_RUNNING_FDS] = {
		[VT_NOTE_OCCUPANT_FD] = b->occupant_fd,
		[VT_NOTE_ROOT_FD] = b->root_fd,
		[VT_NOTE_PROC_FD] = b->proc_fd,
	};
	int r = vt_pass_send(b->in->status_fd, &note, sizeof(note), fds,
			     VT_NOTE_RUNNING_FDS - (b->proc_fd < 0), err);

	if (r < 0)
		return r;
	/* Not before: the supervisor's clock starts with the note. */
	if (write(b->ready_fd, &ready, sizeof(ready)) != sizeof(ready))
		return vt_fail_at(err, VT_STEP_WATCH, errno, "release the occupant", NULL);
	return 0;
}

/* Where init keeps its descriptors then. */
enum { OCCUPANT_FD = 0, STATUS_FD = 3 };

/* What is left of init needs no power, and no descriptor but these. */
static int give_up_powers(struct vt_building *b, struct vt_err *err)
{
	const int fd = b->in->status_fd;
	int r = vt_caps_empty(err);

	return r < 0 ? r : vt_process_descriptors(b->occupant_fd, fd, fd, fd, err);
}

/* The order is the security argument: what a step needs is there, and no later one undoes it. */
/* clang-format off */
static const struct vt_inside_step init_steps[] = {
	{ "cgroup",   vt_inside_join_cgroup },      /* before anything is allocated that should be counted */
	{ "counts",   vt_inside_bound_counts },
	{ "copies",   vt_inside_copy_mounts },      /* before the ids: as the caller, who may see these paths */
	{ "await",    vt_inside_await_ids },
	{ "ids",      vt_inside_become_user },
	{ "memory",   vt_inside_hide_memory },      /* before the occupant, which has a copy of it until exec */
	{ "children", vt_inside_expect_children },
	{ "occupant", vt_inside_start_occupant },
	{ "root",     vt_inside_attach_root },      /* after the ids: its folders belong to the cell's user */
	{ "mounts",   vt_inside_build_root },
	{ "names",    vt_inside_name_host },
	{ "running",  vt_inside_tell_running },
	{ "powers",   give_up_powers },   /* last: all of the above need them */
};
/* clang-format on */

static void child_ended(int number)
{
	(void)number; /* all that matters is that a wait was interrupted */
}

/* Reaps whatever has ended. Returns whether the occupant was among it, with its status. */
static bool reap(pid_t occupant, int *ret_status)
{
	bool ended = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL | WNOHANG)) > 0 || (pid < 0 && errno == EINTR)) {
		if (pid != occupant)
			continue;
		ended = true;
		*ret_status = status;
	}
	return ended;
}

enum vt_ending vt_inside_await_end(pid_t occupant, int occupant_fd, int status_fd, int *ret_status)
{
	const struct sigaction notice = { .sa_handler = child_ended };
	struct pollfd fds[] = { { .fd = occupant_fd, .events = POLLIN },
				{ .fd = status_fd, .events = POLLIN } };
	sigset_t all, but_children;

	(void)sigfillset(&all);
	(void)sigfillset(&but_children);
	(void)sigdelset(&but_children, SIGCHLD);
	/* Neither can fail: the arguments are valid. */
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)sigaction(SIGCHLD, &notice, NULL);
	for (;;) {
		/* EINTR: an orphan has ended, and its place is wanted. */
		if (ppoll(fds, COUNT(fds), NULL, &but_children) < 0) {
			if (errno != EINTR)
				return VT_ENDING_ORDERED;
			fds[0].revents = fds[1].revents = 0; /* an interrupted call leaves them */
		}
		if (reap(occupant, ret_status))
			return VT_ENDING_REAPED;
		if (fds[0].revents)
			return VT_ENDING_TRACED;
		if (fds[1].revents)
			return VT_ENDING_ORDERED;
	}
}

/* The occupant's end is the cell's. When nobody is left who could trace it, init is told of it. */
static _Noreturn void await_end(pid_t occupant, int occupant_fd, int status_fd)
{
	struct vt_note note = { .kind = VT_NOTE_ENDED };
	enum vt_ending how = vt_inside_await_end(occupant, occupant_fd, -1, &note.wait_status);
	pid_t pid = how == VT_ENDING_REAPED ? occupant : 0;

	if (how == VT_ENDING_TRACED)
		(void)kill(-1, SIGKILL); /* ESRCH: nobody is left already */
	while (pid != occupant) {
		pid = waitpid(-1, &note.wait_status, __WALL);
		if (pid < 0 && errno != EINTR)
			_exit(125);
	}
	/* Orphans are init's children at once: without any, the cell is empty. */
	note.empty = waitpid(-1, NULL, __WALL | WNOHANG) < 0 && errno == ECHILD &&
		     getrusage(RUSAGE_CHILDREN, &note.usage) == 0;
	(void)send(status_fd, &note, sizeof(note), MSG_NOSIGNAL); /* heard or not, we end */
	_exit(0);
}

_Noreturn void vt_inside_init(const struct vt_inside *inside)
{
	struct vt_building b = vt_building_of(inside);

	if (inside->plan->bare)
		vt_bare_init(&b);
	if (inside->plan->pooled)
		vt_hull_init(&b);
	vt_inside_take_steps(init_steps, COUNT(init_steps), &b, inside->status_fd);
	await_end(b.occupant, OCCUPANT_FD, STATUS_FD);
}
