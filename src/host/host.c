/* SPDX-License-Identifier: Apache-2.0 */
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/stranger.h"
#include "host/idrange.h"
#include "host/paths.h"
#include "host/touch.h"
#include "kernel/mount.h"
#include "kernel/notify.h"
#include "kernel/overlay.h"
#include "uapi/landlock.h"

/* What a child that tries leaves in the memory that it shares with its parent. */
struct trial {
	int err;
	const char *tried;
};

/*
 * A namespace that gives no working capabilities is of no use: AppArmor on Ubuntu lets it be made
 * and then denies every capability in it.
 */
static int use_userns(void *arg)
{
	struct trial *trial = arg;

	trial->err = 0;
	if (unshare(CLONE_NEWUTS) < 0) {
		trial->err = errno;
		trial->tried = "unshare(CLONE_NEWUTS) in a new user namespace";
	} else if (sethostname("cell", 4) < 0) {
		trial->err = errno;
		trial->tried = "sethostname() in a new user namespace";
	}
	return 0;
}

/*
 * The child runs on a stack of its own in our memory while we are suspended, which costs a tenth of
 * a fork. Signals are blocked meanwhile: a handler of the caller's must not run in it. Without an
 * exit signal it never shows up in the caller's SIGCHLD handling.
 */
static void try_in_child(int (*act)(void *arg), int namespaces, struct trial *trial)
{
	_Alignas(16) char stack[16384];
	sigset_t all, old;

	(void)sigfillset(&all);                     /* cannot fail */
	(void)sigprocmask(SIG_SETMASK, &all, &old); /* cannot fail: both sets are valid */
	pid_t pid = clone(act, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | namespaces, trial);

	if (pid < 0)
		trial->err = errno;
	while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	(void)sigprocmask(SIG_SETMASK, &old, NULL); /* cannot fail: the set is valid */
}

static struct vt_fact try_userns(void)
{
	struct trial trial = { EIO, "clone(CLONE_NEWUSER)" };

	if (access("/proc/self/uid_map", F_OK) < 0)
		return (struct vt_fact){ errno, "map ids through /proc/self/uid_map" };
	try_in_child(use_userns, CLONE_NEWUSER, &trial);
	return (struct vt_fact){ trial.err, trial.tried };
}

static struct vt_fact try_seccomp(void)
{
	unsigned action = SECCOMP_RET_ERRNO;
	long r = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);

	return (struct vt_fact){ r < 0 ? errno : 0, "seccomp(SECCOMP_GET_ACTION_AVAIL)" };
}

static int listen_for_nothing(void *arg)
{
	struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog filter = { 1, &pass };
	struct trial *trial = arg;

	trial->err = 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		    &filter) < 0)
		trial->err = errno;
	return 0;
}

/*
 * Of all filters around a process only one can have a listener. Where there is no filter, there is
 * nothing to try, and most callers are spared the child.
 */
static struct vt_fact try_notify(enum vt_notify_use use)
{
	struct trial trial = { 0, NULL };

	trial.err = -vt_notify_probe(use, &trial.tried);
	if (trial.err == 0 && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0) {
		trial = (struct trial){ EIO, "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)" };
		try_in_child(listen_for_nothing, 0, &trial);
	}
	return (struct vt_fact){ trial.err, trial.tried };
}

static void probe_landlock(struct vt_host *host)
{
	int abi = sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (abi < 0)
		host->landlock_err = errno;
	else
		host->landlock_abi = abi;
}

static bool has_cap(cap_t caps, cap_value_t cap)
{
	cap_flag_value_t value;

	return cap_get_flag(caps, cap, CAP_EFFECTIVE, &value) == 0 && value == CAP_SET;
}

static int probe_caps(struct vt_host *host)
{
	cap_t caps = cap_get_proc();

	if (caps == NULL)
		return -errno;
	bool ids = has_cap(caps, CAP_SETUID) && has_cap(caps, CAP_SETGID);

	host->privileged = host->uid == 0 && ids && has_cap(caps, CAP_SYS_ADMIN);
	host->can_change_ids = host->uid == 0 && ids && has_cap(caps, CAP_CHOWN);
	(void)cap_free(caps); /* fails only for what is no cap_t */
	return 0;
}

static void probe_ids(struct vt_host *host)
{
	char uids[16384], gids[16384]; /* 340 lines, the most that a map has, are 12 KB */

	/* Unreadable ones are empty, and then no ids are offered. */
	if (vt_file_read(AT_FDCWD, "/proc/self/uid_map", uids, sizeof(uids)) < 0)
		uids[0] = '\0';
	if (vt_file_read(AT_FDCWD, "/proc/self/gid_map", gids, sizeof(gids)) < 0)
		gids[0] = '\0';
	struct vt_idrange range = vt_idrange_pick(uids, gids);

	host->id_base = range.base;
	host->id_count = range.count;
	host->pool_ids = vt_idrange_has_pools(uids, gids);
}

static int count_groups(gid_t own, unsigned *ret_count)
{
	int count = getgroups(0, NULL);
	unsigned others = 0;

	if (count <= 0) {
		*ret_count = 0;
		return 0;
	}
	gid_t *groups = calloc((size_t)count, sizeof(*groups));

	if (groups == NULL)
		return -ENOMEM;
	count = getgroups(count, groups);
	for (int i = 0; i < count; i++)
		others += groups[i] != own;
	free(groups);
	*ret_count = others;
	return 0;
}

static unsigned count_cpus(void)
{
	cpu_set_t sets[8]; /* 8192 CPUs; one set has room for 1024 */

	if (sched_getaffinity(0, sizeof(sets), sets) < 0)
		return 1;
	return (unsigned)CPU_COUNT_S(sizeof(sets), sets);
}

/* ---- what matters without user namespaces -------------------------------------------------- */

static void count_task(void *arg, const char *name)
{
	(void)name;
	++*(unsigned *)arg;
}

struct counting {
	const struct vt_host *host;
	unsigned tasks;
};

/* Adds the threads of one process, if it is the caller's. */
static void count_process(void *arg, const char *name)
{
	struct counting *counting = arg;
	char path[64];
	struct stat st;

	if (name[0] < '0' || name[0] > '9' || strlen(name) > 16)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%s/task", name); /* fits */
	if (stat(path, &st) == 0 && st.st_uid == counting->host->uid)
		(void)vt_paths_list(counting->host, path, count_task,
				    &counting->tasks); /* gone: none */
}

static unsigned count_tasks(const struct vt_host *host)
{
	struct counting counting = { .host = host };

	(void)vt_paths_list(host, "/proc", count_process,
			    &counting); /* what cannot be seen does not count */
	return counting.tasks;
}

/*
 * Whether a folder can be made there that nobody else can take away: it is sticky, or the caller's
 * own. A cell with a user of its own removes it as that user, who needs the place to be open to
 * all.
 */
static bool takes_scratch(const struct vt_host *host, const char *place)
{
	const mode_t for_all = S_ISVTX | S_IWOTH | S_IXOTH;
	struct stat st;

	if (place == NULL || place[0] != '/' || stat(place, &st) < 0 || !S_ISDIR(st.st_mode) ||
	    vt_file_access(AT_FDCWD, place, W_OK | X_OK) < 0)
		return false;
	if (host->can_change_ids)
		return (st.st_mode & for_all) == for_all;
	return st.st_mode & S_ISVTX || (st.st_uid == host->uid && !(st.st_mode & 022));
}

/* TMPDIR first: in a bare cell of vitro's /tmp looks open, and is not. */
static const char *find_scratch(const struct vt_host *host)
{
	const char *const places[] = { getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (takes_scratch(host, places[i]))
			return places[i];
	return NULL;
}

static void probe_bare(struct vt_host *host)
{
	host->scratch = find_scratch(host);
	host->modes = (struct vt_fact){ ENOENT, "/proc/self/fd" };
	if (host->can_change_ids || !host->proc)
		return;
	host->modes = try_notify(VT_NOTIFY_MODES);
	host->tasks = count_tasks(host);
}

/* Denied, or not there; all else may be different the next time. */
static bool is_lasting(int num)
{
	static const int lasting[] = { EPERM,  EACCES, ENOSYS, EOPNOTSUPP,
				       EINVAL, ENODEV, ENOSPC, EUSERS };

	for (size_t i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++)
		if (num == lasting[i])
			return true;
	return false;
}

static bool is_of_namespaces(const struct vt_err *failure)
{
	enum vt_step step = failure->step;

	if (strncmp(failure->what, VT_OVERLAY_FAILED, strlen(VT_OVERLAY_FAILED)) == 0)
		return false;
	/* The owner of a folder on the way has closed it: that is so for this policy alone. */
	if (failure->num == EACCES &&
	    strncmp(failure->what, VT_MOUNT_PLACE, strlen(VT_MOUNT_PLACE)) == 0)
		return false;
	return step == VT_STEP_CLONE || step == VT_STEP_IDS || step == VT_STEP_MOUNTS ||
	       step == VT_STEP_NETWORK;
}

bool vt_host_learn(struct vt_host *host, const struct vt_err *failure)
{
	int num = failure->num;

	if (failure->step == VT_STEP_LANDLOCK && host->landlock_abi &&
	    (num == EPERM || num == ENOSYS || num == EOPNOTSUPP)) {
		host->landlock_abi = 0;
		host->landlock_err = num;
		return true;
	}
	if (!is_of_namespaces(failure) || !is_lasting(num) || host->userns.err)
		return false;
	if (strcmp(failure->what, VT_MOUNT_PROC) == 0 && host->own_proc.err == 0) {
		host->own_proc = (struct vt_fact){ num, VT_MOUNT_PROC };
		return true;
	}
	(void)snprintf(host->learned, sizeof(host->learned), "%s", failure->what); /* cut is fine */
	host->userns = (struct vt_fact){ num, host->learned };
	probe_bare(host);
	return true;
}

/* A release that is no number is older than all. */
static void probe_kernel(struct vt_host *host)
{
	struct utsname name;

	if (uname(&name) < 0 ||
	    sscanf(name.release, "%u.%u", &host->kernel_major, &host->kernel_minor) != 2)
		host->kernel_major = host->kernel_minor = 0;
}

/* In units of so many; 0: there is none, or it is less than one of them. */
static int64_t hard_limit(__rlimit_resource_t resource, rlim_t unit)
{
	struct rlimit own;

	if (getrlimit(resource, &own) < 0 || own.rlim_max == RLIM_INFINITY)
		return 0;
	return (int64_t)(own.rlim_max / unit);
}

/* What is tried in a moment of shortage says nothing about the machine, and no cell is made weaker
 * for that. */
static int check_tries(const struct vt_host *host, struct vt_err *err)
{
	const struct vt_fact landlock = { host->landlock_err, "landlock_create_ruleset()" };
	const struct vt_fact cgroup = { host->cgroup.short_of, "the cgroups" };
	const struct vt_fact *const facts[] = { &host->userns, &host->seccomp, &host->notify,
						&host->modes,  &landlock,      &cgroup };

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if (vt_err_passes(facts[i]->err) || facts[i]->err == EIO) /* the try was killed */
			return vt_fail(err, VT_STEP_PLAN, facts[i]->err,
				       "find out what this machine can enforce: %s",
				       facts[i]->tried);
	return 0;
}

static bool try_bar(void)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && vt_stranger_bar(fd) == 0;
}

int vt_host_probe(struct vt_host *ret_host, struct vt_err *err)
{
	unsigned groups = 0;

	memset(ret_host, 0, sizeof(*ret_host));
	ret_host->uid = geteuid();
	ret_host->gid = getegid();
	if (probe_caps(ret_host) == -ENOMEM || count_groups(getegid(), &groups) == -ENOMEM ||
	    vt_paths_init(ret_host) < 0)
		return vt_fail(err, VT_STEP_PLAN, ENOMEM, "look at this machine");
	ret_host->supplementary_groups = groups;
	if (ret_host->privileged || ret_host->can_change_ids)
		probe_ids(ret_host);
	ret_host->proc = access("/proc/self/stat", R_OK) == 0;
	ret_host->proc_hides = ret_host->proc && access("/proc/1/stat", R_OK) < 0;
	ret_host->userns = try_userns();
	ret_host->seccomp = try_seccomp();
	ret_host->own_proc.tried = VT_MOUNT_PROC;
	ret_host->notify = try_notify(VT_NOTIFY_CONNECT);
	ret_host->bars_rights = try_bar();
	probe_landlock(ret_host);
	vt_cgroup_find(&ret_host->cgroup);
	ret_host->cpus = count_cpus();
	ret_host->touch = vt_touch_measure;
	ret_host->most_open_files = hard_limit(RLIMIT_NOFILE, 1);
	ret_host->most_file_kb = hard_limit(RLIMIT_FSIZE, 1024);
	probe_kernel(ret_host);
	if (ret_host->userns.err)
		probe_bare(ret_host);
	int r = check_tries(ret_host, err);

	if (r < 0)
		vt_host_done(ret_host);
	return r;
}

void vt_host_done(struct vt_host *host)
{
	vt_paths_done(host);
}
