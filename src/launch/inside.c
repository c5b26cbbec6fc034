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
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "kernel/caps.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/ns.h"
#include "kernel/process.h"
#include "kernel/seccomp.h"
#include "launch/cell.h"
#include "launch/inside_private.h"

/* Tells the supervisor, and ends. Without a supervisor there is nobody to tell. */
static _Noreturn void fail(int status_fd, const struct vt_err *err)
{
	struct vt_note note = { .kind = VT_NOTE_FAILED, .err = *err };

	(void)send(status_fd, &note, sizeof(note), MSG_NOSIGNAL); /* we end, heard or not */
	_exit(125);
}

/*
 * How many descriptors may be on their way is a count of the user's, and who sends one more is held
 * to his own limit of open files: another cell can have used up that, but not more than its own.
 */
static bool raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* A note to the supervisor with descriptors, VT_NOTE_FDS at the most. */
static int hand_over(int status_fd, enum vt_note_kind kind, const int *fds, size_t count,
		     struct vt_err *err)
{
	struct vt_note note = { .kind = kind };
	struct iovec iov = { .iov_base = &note, .iov_len = sizeof(note) };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(VT_NOTE_FDS * sizeof(int))];
	} control = { 0 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	ssize_t sent = sendmsg(status_fd, &message, MSG_NOSIGNAL);

	if (sent < 0 && errno == ETOOMANYREFS && raise_limit())
		sent = sendmsg(status_fd, &message, MSG_NOSIGNAL);
	if (sent < 0)
		return vt_fail_at(err, VT_STEP_WATCH, errno, "report to the supervisor", NULL);
	return 0;
}

void vt_inside_take_steps(const struct vt_inside_step *steps, size_t count, struct vt_building *b,
			  int status_fd)
{
	struct vt_err err;

	for (size_t i = 0; i < count; i++)
		if (steps[i].take(b, &err) < 0) {
			if (b->abandon)
				b->abandon(b);
			fail(status_fd, &err);
		}
}

/* ---- init ---------------------------------------------------------------------------------- */

/*
 * Inotify is counted per user of the whole machine; a cell gets a share of it. Through the host's
 * proc, where these files are those of the user namespace that opens them.
 */
static int bound_counts(struct vt_building *b, struct vt_err *err)
{
	static const struct {
		const char *path, *most;
	} counts[] = {
		{ "/proc/sys/user/max_inotify_instances", "32" },
		{ "/proc/sys/user/max_inotify_watches", "8192" },
	};

	(void)b;
	for (size_t i = 0; i < COUNT(counts); i++) {
		AUTO_CLOSE int fd = open(counts[i].path, O_WRONLY | O_CLOEXEC);
		size_t len = strlen(counts[i].most);

		/* A kernel without inotify; a container whose sysctls are mounted read-only. */
		if (fd < 0 && (errno == ENOENT || errno == EROFS))
			continue;
		if (fd < 0 || write(fd, counts[i].most, len) != (ssize_t)len)
			return vt_fail_at(err, VT_STEP_LIMITS, errno, "bound", counts[i].path);
	}
	return 0;
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

/* While still the caller's user, who can look into folders that the cell's user cannot. */
static int copy_mount(const struct vt_building *b, const struct vt_build *build, int *mount,
		      struct vt_err *err)
{
	int work = build->veil ? build->veil->work : -1;

	if (*mount < 0)
		*mount = vt_mount_copy(AT_FDCWD, work < 0 ? build->from : build->veil->base, err);
	if (*mount < 0)
		return *mount;
	if (work < 0)
		return vt_mount_check(*mount, build->dev, build->ino, build->from, err);
	return vt_veil_open(build, *mount, &b->in->works[work], &b->in->layers[work], err);
}

static int copy_mounts(struct vt_building *b, struct vt_err *err)
{
	const struct vt_plan *plan = b->plan;
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->build_count; i++)
		if (plan->builds[i].act == VT_ACT_BIND)
			r = copy_mount(b, &plan->builds[i], &b->in->mounts[i], err);
	return r;
}

static int become_cell_user(struct vt_building *b, struct vt_err *err)
{
	int r = vt_process_become(b->plan->inner_uid, b->plan->inner_gid, b->plan->own_ids, err);

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
	(void)b;
	for (char **variable = environ; *variable; variable++)
		memset(*variable, 0, strlen(*variable));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return vt_fail_at(err, VT_STEP_IDS, errno, "become unreadable", NULL);
	return 0;
}

static int attach_root(struct vt_building *b, struct vt_err *err)
{
	b->root_fd = vt_mount_tmpfs(b->plan->scratch_bytes, b->plan->scratch_inodes, err);
	if (b->root_fd < 0)
		return b->root_fd;
	AUTO_CLOSE int old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (old_root < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "open the old root", NULL);
	return vt_mount_attach(b->root_fd, old_root, ".", err);
}

static int make_file(int root_fd, const struct vt_build *build, struct vt_err *err)
{
	size_t len = strlen(build->from);

	/* Most are only the place that a file is mounted on: one call is enough. */
	if (mknodat(root_fd, build->to, S_IFREG | 0644, 0) < 0)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the file", build->to);
	if (len == 0)
		return 0;
	AUTO_CLOSE int fd = openat(root_fd, build->to, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, build->from, len) != (ssize_t)len)
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the file", build->to);
	return 0;
}

static int bind_mount(const struct vt_building *b, const struct vt_build *build, int mount_fd,
		      struct vt_err *err)
{
	/* The parent has restricted what it mapped: a map can be set only once. */
	if (build->idmap < 0) {
		const struct vt_mount_traits traits = {
			.writable = build->writable,
			.device = build->device,
			.idmap_fd = -1,
		};
		int r = vt_mount_restrict(mount_fd, &traits, build->from, err);

		if (r < 0)
			return r;
	}
	if (build->veil)
		return vt_veil_bind(build, b->stage_fd, mount_fd, b->in->layers, b->root_fd, err);
	return build->nested ? vt_mount_attach_nested(mount_fd, b->root_fd, build->to, err)
			     : vt_mount_attach(mount_fd, b->root_fd, build->to, err);
}

/* A folder of the root's own tmpfs, mounted on itself: it stays writable when the root is not. */
static int open_scratch(const struct vt_building *b, const struct vt_build *build,
			struct vt_err *err)
{
	AUTO_CLOSE int fd = vt_mount_copy(b->root_fd, build->to, err);

	return fd < 0 ? fd : vt_mount_attach(fd, b->root_fd, build->to, err);
}

static int mount_proc(struct vt_building *b, const struct vt_build *build, struct vt_err *err)
{
	b->proc_fd = vt_mount_proc(err);
	return b->proc_fd < 0 ? b->proc_fd
			      : vt_mount_attach(b->proc_fd, b->root_fd, build->to, err);
}

/* Covers a path with an empty file or folder of the root's, `from`. What is not there needs none.
 */
static int mask(const struct vt_building *b, const struct vt_build *build, struct vt_err *err)
{
	if (vt_file_access(b->root_fd, build->to, F_OK) < 0 && errno == ENOENT)
		return 0;
	AUTO_CLOSE int fd = vt_mount_copy(b->root_fd, build->from, err);
	const struct vt_mount_traits traits = { .idmap_fd = -1 };

	if (fd < 0)
		return fd;
	int r = vt_mount_restrict(fd, &traits, build->to, err);

	return r < 0 ? r : vt_mount_attach(fd, b->root_fd, build->to, err);
}

static int do_build(struct vt_building *b, size_t i, struct vt_err *err)
{
	const struct vt_build *build = &b->plan->builds[i];

	switch (build->act) {
	case VT_ACT_DIR:
		if (mkdirat(b->root_fd, build->to, build->mode) < 0)
			return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the folder", build->to);
		return 0;
	case VT_ACT_LINK:
		if (symlinkat(build->from, b->root_fd, build->to) < 0)
			return vt_fail_at(err, VT_STEP_MOUNTS, errno, "make the link", build->to);
		return 0;
	case VT_ACT_FILE:
		return make_file(b->root_fd, build, err);
	case VT_ACT_BIND:
		return bind_mount(b, build, b->in->mounts[i], err);
	case VT_ACT_SCRATCH:
		return open_scratch(b, build, err);
	case VT_ACT_PROC:
		return mount_proc(b, build, err);
	case VT_ACT_MASK:
		return mask(b, build, err);
	}
	return vt_fail_at(err, VT_STEP_MOUNTS, EINVAL, "understand the plan", NULL);
}

static int build_root(struct vt_building *b, struct vt_err *err)
{
	const struct vt_mount_traits read_only = { .here = true, .idmap_fd = -1 };
	const bool veils = b->plan->veil_count;
	int r = 0;

	(void)umask(0); /* modes are what the plan says; returns the old one, cannot fail */
	if (veils)
		r = b->stage_fd = vt_veil_stage(b->plan, b->root_fd, err);
	for (size_t i = 0; r >= 0 && i < b->plan->build_count; i++)
		r = do_build(b, i, err);
	/* With it goes what layers were found through: folders around those that were granted. */
	if (r >= 0 && veils)
		r = vt_veil_unstage(b->root_fd, err);
	if (r >= 0)
		r = vt_mount_restrict(b->root_fd, &read_only, "/", err);
	return r < 0 ? r : vt_mount_enter_root(b->root_fd, err);
}

static int name_host(struct vt_building *b, struct vt_err *err)
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

/* ---- the occupant -------------------------------------------------------------------------- */

/*
 * Making a network namespace takes as long as building the root, so the occupant makes it
 * meanwhile. Init stays in the supervisor's; it opens no socket, and nobody in the cell can reach
 * into it.
 */
static int enter_network(struct vt_building *b, struct vt_err *err)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	if (b->plan->own_network && unshare(CLONE_NEWNET) < 0)
		return vt_fail_at(err, VT_STEP_NETWORK, errno, "make a network namespace", NULL);
	if (!b->plan->loopback_up)
		return 0;
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return vt_fail_at(err, VT_STEP_NETWORK, errno, "raise the loopback", NULL);
	return 0;
}

/* Init enters the new root for both: the kernel moves whoever stands in the old one. */
static int await_root(struct vt_building *b, struct vt_err *err)
{
	uint64_t ready;
	ssize_t len;

	do
		len = read(b->ready_fd, &ready, sizeof(ready));
	while (len < 0 && errno == EINTR);
	if (len != sizeof(ready))
		return vt_fail_at(err, VT_STEP_MOUNTS, errno, "wait for the root", NULL);
	return 0;
}

/* Before the descriptors: the rules were made by init, as the caller. */
static int enter_domain(struct vt_building *b, struct vt_err *err)
{
	return b->plan->bare ? vt_bare_enter_domain(b, err) : 0;
}

static int enter_descriptors(struct vt_building *b, struct vt_err *err)
{
	const struct vt_inside *in = b->in;

	return vt_process_descriptors(in->stdio.in, in->stdio.out, in->stdio.err, in->status_fd,
				      err);
}

static int enter_session(struct vt_building *b, struct vt_err *err)
{
	int r = b->plan->bare ? vt_bare_follow_init(b, err) : 0;

	return r < 0 ? r : vt_process_detach(err);
}

/* Before the descriptors: a bare cell's may be one of them. */
static int enter_bare_folder(struct vt_building *b, struct vt_err *err)
{
	return b->plan->bare ? vt_bare_enter_folder(b, err) : 0;
}

static int enter_folder(struct vt_building *b, struct vt_err *err)
{
	if (b->plan->bare)
		return 0; /* entered early */
	if (chdir(b->plan->cwd) < 0)
		return vt_fail_at(err, VT_STEP_SESSION, errno, "enter the working directory",
				  b->plan->cwd);
	return 0;
}

/* That of open files, or all others. */
static int set_limits(const struct vt_plan *plan, bool open_files, struct vt_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->rlimit_count; i++)
		if ((plan->rlimits[i].resource == RLIMIT_NOFILE) == open_files)
			r = vt_process_limit(&plan->rlimits[i], 1, err);
	return r;
}

/*
 * Who hands over a listener is held to his limit of open files, of which another cell of the same
 * user can have used up as many as this one gets: it comes after that.
 */
static int enter_limits(struct vt_building *b, struct vt_err *err)
{
	int r = set_limits(b->plan, false, err);

	return r < 0 || b->plan->broker.on ? r : set_limits(b->plan, true, err);
}

static int enter_powerless(struct vt_building *b, struct vt_err *err)
{
	/* A bare cell's init has dropped them for both. */
	int r = b->plan->bare ? vt_caps_empty(err) : vt_caps_drop(err);

	return r < 0 ? r : vt_caps_no_new_privs(err);
}

static int enter_landlock(struct vt_building *b, struct vt_err *err)
{
	const struct vt_plan *plan = b->plan;
	const struct vt_landlock_abi handled = {
		.fs = plan->landlock_fs,
		.scoped = plan->landlock_scoped,
	};

	if (plan->bare || !handled.fs)
		return 0; /* a bare cell's is entered early */
	AUTO_CLOSE int ruleset = vt_landlock_new(&handled, err);
	AUTO_CLOSE int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (ruleset < 0)
		return ruleset;
	if (root_fd < 0)
		return vt_fail_at(err, VT_STEP_LANDLOCK, errno, "open the root", NULL);
	for (size_t i = 0; i < plan->landlock_rule_count; i++) {
		const struct vt_landlock_rule *rule = &plan->landlock_rules[i];
		int r = vt_landlock_allow(ruleset, root_fd, rule->to, rule->rights, err);

		if (r < 0)
			return r;
	}
	return vt_landlock_enter(ruleset, err);
}

/*
 * On the status socket, at 3 by now. Nobody but the supervisor has the listener after exec. All
 * filters with a listener let a process narrow its own limits.
 */
static int install_brokered(const struct vt_plan *plan, struct vt_err *err)
{
	AUTO_CLOSE int listener = vt_seccomp_listen(plan->filters[0], err);
	int r = listener < 0 ? listener : hand_over(3, VT_NOTE_LISTENER, &listener, 1, err);

	return r < 0 ? r : set_limits(plan, true, err);
}

static int enter_seccomp(struct vt_building *b, struct vt_err *err)
{
	const struct vt_plan *plan = b->plan;

	for (size_t i = 0; i < plan->filter_count; i++) {
		int r = i == 0 && plan->broker.on ? install_brokered(plan, err)
						  : vt_seccomp_install(plan->filters[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * The order is the security argument, as it is for init's. What comes before "root" is done while
 * init builds it.
 */
/* clang-format off */
static const struct vt_inside_step early_steps[] = {
	{ "network",     enter_network },    /* before the powers go: it needs them */
	{ "session",     enter_session },
	{ "powerless",   enter_powerless },
	{ "root",        await_root },
	{ "domain",      enter_domain },     /* a bare cell's Landlock: its rules are a descriptor yet */
	{ "bare folder", enter_bare_folder },
	{ "descriptors", enter_descriptors },
};
static const struct vt_inside_step late_steps[] = {
	{ "folder",      enter_folder },
	{ "limits",      enter_limits },     /* after the descriptors: there are more than it allows */
	{ "landlock",    enter_landlock },   /* needs no_new_privs, and the paths of the new root */
	{ "seccomp",     enter_seccomp },    /* last: it forbids what the steps above need */
};
/* clang-format on */

/* Once its descriptors are in place, the occupant's status descriptor is 3, and exec closes it. */
static _Noreturn void occupy(struct vt_building *b)
{
	const struct vt_plan *plan = b->plan;
	struct vt_err err;

	b->abandon = NULL; /* that is init's to do */
	vt_inside_take_steps(early_steps, COUNT(early_steps), b, b->in->status_fd);
	vt_inside_take_steps(late_steps, COUNT(late_steps), b, 3);
	if (plan->rehearsal)
		_exit(0);
	(void)execve(plan->exec_path, plan->argv, plan->envp); /* returns only to fail */
	(void)vt_fail_at(&err, VT_STEP_EXEC, errno, "execute", plan->exec_path);
	fail(3, &err);
}

/* ---- init, with its occupant --------------------------------------------------------------- */

int vt_inside_start_occupant(struct vt_building *b, struct vt_err *err)
{
	b->init = getpid();
	b->ready_fd = eventfd(0, EFD_CLOEXEC);
	if (b->ready_fd < 0)
		return vt_fail_at(err, VT_STEP_CLONE, errno, "make an eventfd", NULL);
	b->occupant = vt_ns_clone(0, -1, &b->occupant_fd, err);
	if (b->occupant == 0)
		occupy(b);
	return b->occupant < 0 ? b->occupant : 0;
}

int vt_inside_tell_running(struct vt_building *b, struct vt_err *err)
{
	const uint64_t ready = 1;
	const int fds[VT_NOTE_FDS] = {
		[VT_NOTE_OCCUPANT_FD] = b->occupant_fd,
		[VT_NOTE_ROOT_FD] = b->root_fd,
		[VT_NOTE_PROC_FD] = b->proc_fd,
	};
	int r = hand_over(b->in->status_fd, VT_NOTE_RUNNING, fds, VT_NOTE_FDS - (b->proc_fd < 0),
			  err);

	if (r < 0)
		return r;
	/* Not before: the supervisor's clock starts with the note. */
	if (write(b->ready_fd, &ready, sizeof(ready)) != sizeof(ready))
		return vt_fail_at(err, VT_STEP_WATCH, errno, "release the occupant", NULL);
	return 0;
}

/* What is left of init needs no power and no descriptor but the status socket, at 3. */
static int give_up_powers(struct vt_building *b, struct vt_err *err)
{
	const int fd = b->in->status_fd;
	int r = vt_caps_empty(err);

	return r < 0 ? r : vt_process_descriptors(fd, fd, fd, fd, err);
}

/* The order is the security argument: what a step needs is there, and no later one undoes it. */
/* clang-format off */
static const struct vt_inside_step init_steps[] = {
	{ "cgroup",   vt_inside_join_cgroup },      /* before anything is allocated that should be counted */
	{ "counts",   bound_counts },
	{ "copies",   copy_mounts },      /* before the ids: as the caller, who may see these paths */
	{ "await",    vt_inside_await_ids },
	{ "ids",      become_cell_user },
	{ "memory",   vt_inside_hide_memory },      /* before the occupant, which has a copy of it until exec */
	{ "children", vt_inside_expect_children },
	{ "occupant", vt_inside_start_occupant },
	{ "root",     attach_root },      /* after the ids: its folders belong to the cell's user */
	{ "mounts",   build_root },
	{ "names",    name_host },
	{ "running",  vt_inside_tell_running },
	{ "powers",   give_up_powers },   /* last: all of the above need them */
};
/* clang-format on */

/* Reaps whatever ends up here; the occupant's end is the cell's. */
static _Noreturn void reap(pid_t occupant, int status_fd)
{
	struct vt_note note = { .kind = VT_NOTE_ENDED };

	for (;;) {
		pid_t pid = waitpid(-1, &note.wait_status, __WALL);

		if (pid == occupant)
			break;
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
	struct vt_building b = {
		.in = inside,
		.plan = inside->plan,
		.root_fd = -1,
		.place_fd = -1,
		.stage_fd = -1,
		.proc_fd = -1,
		.ruleset_fd = -1,
		.ready_fd = -1,
		.occupant_fd = -1,
	};

	if (inside->plan->bare)
		vt_bare_init(&b);
	vt_inside_take_steps(init_steps, COUNT(init_steps), &b, inside->status_fd);
	reap(b.occupant, 3);
}
