/* SPDX-License-Identifier: Apache-2.0 */
#include "host/report.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "host/advice.h"
#include "host/try.h"
#include "kernel/caps.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/ns.h"
#include "kernel/overlay.h"
#include "kernel/seccomp.h"
#include "uapi/landlock.h"

const char *vt_state_name(enum vt_state state)
{
	static const char *const names[VT_STATES] = {
		[VT_STATE_WORKS] = "works",
		[VT_STATE_PARTLY] = "partly",
		[VT_STATE_NOT] = "not",
	};

	return (unsigned)state < VT_STATES ? names[state] : "?";
}

bool vt_report_ok(const struct vt_report *report)
{
	for (size_t i = 0; i < report->count; i++)
		if (report->findings[i].needed && report->findings[i].state == VT_STATE_NOT)
			return false;
	return true;
}

/* The next line of the report. The table of tries below is shorter than VT_REPORT_MAX. */
static struct vt_finding *add(struct vt_report *report, const char *name, bool needed)
{
	struct vt_finding *finding = &report->findings[report->count++];

	*finding = (struct vt_finding){ .name = name, .needed = needed };
	return finding;
}

static void say(struct vt_finding *finding, enum vt_state state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct vt_finding *finding, enum vt_state state, const char *fmt, ...)
{
	va_list args;

	finding->state = state;
	va_start(args, fmt);
	(void)vsnprintf(finding->why, sizeof(finding->why), fmt, args); /* cut: still a reason */
	va_end(args);
}

static void say_failed(struct vt_finding *finding, const struct vt_err *err)
{
	say(finding, VT_STATE_NOT, "%s: %s", err->what, strerror(err->num));
}

static void say_follows(struct vt_finding *finding, const char *cause)
{
	finding->follows = true;
	say(finding, VT_STATE_NOT, "not tried, for want of %s", cause);
}

static int act_nothing(struct vt_err *err)
{
	(void)err;
	return 0;
}

static int act_proc(struct vt_err *err)
{
	AUTO_CLOSE int fd = vt_mount_proc(false, err);

	return fd < 0 ? fd : 0;
}

static int act_tmpfs(struct vt_err *err)
{
	AUTO_CLOSE int fd = vt_mount_tmpfs(1 << 20, 64, err);

	return fd < 0 ? fd : 0;
}

/* As a cell is built: a copy of a host's folder, made read-only, attached in a new root. */
static int act_mounts(struct vt_err *err)
{
	const struct vt_mount_traits read_only = { .idmap_fd = -1 };
	AUTO_CLOSE int usr = vt_mount_copy(AT_FDCWD, "/usr", err);

	if (usr < 0)
		return usr;
	int r = vt_mount_restrict(usr, &read_only, "/usr", err);

	if (r < 0)
		return r;
	AUTO_CLOSE int root = vt_mount_new_root(1 << 20, 64, err);

	if (root < 0)
		return root;
	if (mkdirat(root, "usr", 0755) < 0)
		return vt_fail(err, VT_STEP_MOUNTS, errno, "make a folder in a tmpfs");
	return vt_mount_attach(usr, root, "usr", err);
}

/* Both kinds, as denies inside granted folders need them. */
static int act_overlay(struct vt_err *err)
{
	enum { MARKS, FOLDER, WORK, DIRS };
	static const char *const dirs[] = { "marks", "folder", "work" };
	int fds[DIRS]; /* they go with the process */
	AUTO_CLOSE int root = vt_mount_new_root(1 << 20, 64, err);

	if (root < 0)
		return root;
	for (size_t i = 0; i < DIRS; i++) {
		if (mkdirat(root, dirs[i], 0755) < 0)
			return vt_fail(err, VT_STEP_MOUNTS, errno, "make a folder in a tmpfs");
		fds[i] = openat(root, dirs[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fds[i] < 0)
			return vt_fail(err, VT_STEP_MOUNTS, errno, "open a folder in a tmpfs");
	}
	if (mknodat(fds[MARKS], "closed", S_IFCHR, 0) < 0)
		return vt_fail(err, VT_STEP_MOUNTS, errno, "make a whiteout");
	int r = vt_overlay_read(fds[MARKS], fds[FOLDER], "a folder", err);
	return r < 0 ? r : vt_overlay_write(fds[MARKS], fds[FOLDER], fds[WORK], "a folder", err);
}

/* A filter that is installed must also filter: getppid() gets an error that it never has. */
static int act_seccomp(struct vt_err *err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };
	int r = vt_caps_no_new_privs(err);

	if (r == 0)
		r = vt_seccomp_install(&filter, err);
	if (r < 0)
		return r;
	if (syscall(SYS_getppid) >= 0 || errno != EXDEV)
		return vt_fail(err, VT_STEP_SECCOMP, EIO,
			       "a filter was installed and does not filter");
	return 0;
}

static int act_landlock(struct vt_err *err)
{
	const struct vt_landlock_abi oldest = vt_landlock_rights(1);
	AUTO_CLOSE int ruleset = vt_landlock_new(&oldest, err);
	int r = ruleset < 0 ? ruleset : vt_caps_no_new_privs(err);

	if (r == 0)
		r = vt_landlock_enter(ruleset, err);
	if (r < 0)
		return r;
	AUTO_CLOSE int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 || errno != EACCES)
		return vt_fail(err, VT_STEP_LANDLOCK, EIO, "rules were entered and do not hold");
	return 0;
}

static int act_clone(struct vt_err *err)
{
	AUTO_CLOSE int pidfd = -1;
	pid_t pid = vt_ns_clone(0, -1, &pidfd, err);

	if (pid == 0)
		_exit(0);
	while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return pid < 0 ? vt_fail(err, VT_STEP_CLONE, -pid, "clone()") : 0;
}

static int act_pidfd(struct vt_err *err)
{
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "pidfd_open()");
	if (syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) < 0)
		return vt_fail(err, VT_STEP_CLONE, errno, "pidfd_send_signal()");
	return 0;
}

static int act_close_range(struct vt_err *err)
{
	int fd = open("/", O_PATH | O_CLOEXEC);

	if (fd < 0)
		return vt_fail(err, VT_STEP_DESCRIPTORS, errno, "open the root");
	if (syscall(SYS_close_range, fd, fd, 0) < 0)
		return vt_fail(err, VT_STEP_DESCRIPTORS, errno, "close_range()");
	if (fcntl(fd, F_GETFD) >= 0)
		return vt_fail(err, VT_STEP_DESCRIPTORS, EIO, "close_range() closed nothing");
	return 0;
}

static void report_proc(struct vt_report *report)
{
	struct vt_finding *finding = add(report, "/proc", true);
	struct stat st;

	if (stat("/proc/self/uid_map", &st) == 0)
		return;
	say(finding, VT_STATE_NOT, "/proc/self/uid_map: %s", strerror(errno));
	(void)snprintf(finding->advice, sizeof(finding->advice),
		       "Mount it: sudo mount -t proc proc /proc");
}

/* Plain system calls that every launch makes. Returns whether the first, clone, works. */
static bool report_calls(const struct vt_host *host, struct vt_report *report)
{
	static const struct {
		const char *name, *kernel;
		int (*act)(struct vt_err *err);
	} calls[] = {
		{ "clone", "5.3", act_clone },
		{ "pidfd", "5.3", act_pidfd },
		{ "close_range", "5.9", act_close_range },
	};
	const struct vt_finding *first = &report->findings[report->count];

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct vt_finding *finding = add(report, calls[i].name, true);
		struct vt_err err;

		if (vt_try(host, 0, calls[i].act, &err) == 0)
			continue;
		say_failed(finding, &err);
		vt_advice_call(calls[i].kernel, err.num, finding->advice, sizeof(finding->advice));
	}
	return first->state == VT_STATE_WORKS;
}

/* Returns whether the rest, all of which happens in one, is worth trying. */
static bool report_userns(const struct vt_host *host, bool clone, struct vt_report *report)
{
	struct vt_finding *finding = add(report, "user namespaces", true);
	struct vt_err err;

	if (host->userns.err != 0) {
		say(finding, VT_STATE_NOT, "%s: %s", host->userns.tried,
		    strerror(host->userns.err));
		vt_advice_userns(host, host->userns.err, finding->advice, sizeof(finding->advice));
	} else if (!clone) {
		say_follows(finding, "clone");
	} else if (vt_try(host, CLONE_NEWUSER, act_nothing, &err) < 0) {
		say_failed(finding, &err);
		vt_advice_userns(host, err.num, finding->advice, sizeof(finding->advice));
	}
	return finding->state == VT_STATE_WORKS;
}

/* Returns whether what happens in pid and mount namespaces is worth trying. */
static bool report_namespaces(const struct vt_host *host, bool userns, struct vt_report *report)
{
	static const struct {
		const char *name, *sysctl;
		uint64_t flag;
	} kinds[] = {
		{ "pid namespaces", "pid", CLONE_NEWPID },
		{ "mount namespaces", "mnt", CLONE_NEWNS },
		{ "ipc namespaces", "ipc", CLONE_NEWIPC },
		{ "uts namespaces", "uts", CLONE_NEWUTS },
		{ "net namespaces", "net", CLONE_NEWNET },
		{ "cgroup namespaces", "cgroup", CLONE_NEWCGROUP },
	};
	bool ready = userns;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct vt_finding *finding = add(report, kinds[i].name, true);
		struct vt_err err;

		if (!userns) {
			say_follows(finding, "user namespaces");
		} else if (vt_try(host, CLONE_NEWUSER | kinds[i].flag, act_nothing, &err) < 0) {
			ready = ready && !(kinds[i].flag & (CLONE_NEWPID | CLONE_NEWNS));
			say_failed(finding, &err);
			vt_advice_namespace(kinds[i].sysctl, err.num, finding->advice,
					    sizeof(finding->advice));
		}
	}
	return ready;
}

static void advise_mount(int num, char *buf, size_t size)
{
	vt_advice_call("5.12", num, buf, size);
}

static void advise_overlay(int num, char *buf, size_t size)
{
	(void)num;
	(void)snprintf(buf, size,
		       "Linux 5.11 or later has them, with the module overlay (modprobe overlay). "
		       "Without, files.deny inside a granted folder is refused.");
}

static void report_mounts(const struct vt_host *host, bool ready, struct vt_report *report)
{
	static const struct {
		const char *name;
		bool needed;
		int (*act)(struct vt_err *err);
		void (*advise)(int num, char *buf, size_t size);
	} tries[] = {
		{ "tmpfs in a cell", true, act_tmpfs, advise_mount },
		{ "mounts in a cell", true, act_mounts, advise_mount },
		{ "proc in a cell", false, act_proc, vt_advice_proc },
		{ "overlay in a cell", false, act_overlay, advise_overlay },
	};
	const uint64_t cell = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS;

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct vt_finding *finding = add(report, tries[i].name, tries[i].needed);
		struct vt_err err;

		if (!ready) {
			say_follows(finding, "namespaces");
		} else if (vt_try(host, cell, tries[i].act, &err) < 0) {
			say_failed(finding, &err);
			tries[i].advise(err.num, finding->advice, sizeof(finding->advice));
		}
	}
}

static void report_seccomp(const struct vt_host *host, struct vt_report *report)
{
	struct vt_finding *finding = add(report, "seccomp filters", true);
	struct vt_err err;

	if (host->seccomp.err != 0) {
		say(finding, VT_STATE_NOT, "%s: %s", host->seccomp.tried,
		    strerror(host->seccomp.err));
		vt_advice_seccomp(host->seccomp.err, finding->advice, sizeof(finding->advice));
	} else if (vt_try(host, 0, act_seccomp, &err) < 0) {
		say_failed(finding, &err);
		vt_advice_seccomp(err.num, finding->advice, sizeof(finding->advice));
	}
}

/* What a cell uses of the newest Landlock that this one does not have. */
static void name_lacks(int abi, char *buf, size_t size)
{
	static const struct {
		struct vt_landlock_abi uses;
		const char *name;
	} kinds[] = {
		{ { .fs = LANDLOCK_ACCESS_FS_REFER }, "renames between folders" },
		{ { .fs = LANDLOCK_ACCESS_FS_TRUNCATE }, "truncation" },
		{ { .fs = LANDLOCK_ACCESS_FS_IOCTL_DEV }, "device controls" },
		{ { .scoped = LANDLOCK_SCOPE_SIGNAL | LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET },
		  "signals and abstract sockets" },
	};
	const struct vt_landlock_abi has = vt_landlock_rights(abi);
	size_t len = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((kinds[i].uses.fs & ~has.fs) || (kinds[i].uses.scoped & ~has.scoped))
			len += (size_t)snprintf(buf + len, size - len, "%s%s", len > 0 ? ", " : "",
						kinds[i].name); /* all of them fit */
}

static void report_notify(const struct vt_host *host, struct vt_report *report)
{
	struct vt_finding *finding = add(report, "seccomp listeners", false);
	int num = host->notify.err;

	if (num == 0)
		return;
	/* Without a filter nothing denies what there is nobody to ask about. */
	say(finding, VT_STATE_NOT, "%s: %s%s", host->notify.tried, strerror(num),
	    host->seccomp.err ? "" : "; beside granted folders there are no AF_UNIX sockets");
	if (num == EBUSY)
		(void)snprintf(finding->advice, sizeof(finding->advice),
			       "Somebody answers for system calls of this process already (a "
			       "container manager, another sandbox): run vitro outside of that.");
	else
		vt_advice_call("5.9", num, finding->advice, sizeof(finding->advice));
}

static void report_landlock(const struct vt_host *host, struct vt_report *report)
{
	struct vt_finding *finding = add(report, "Landlock", false);
	char lacks[160];
	struct vt_err err;

	if (host->landlock_abi == 0) {
		say(finding, VT_STATE_NOT, "%s; the mount namespace alone holds the files",
		    strerror(host->landlock_err));
		vt_advice_landlock(host->landlock_err, finding->advice, sizeof(finding->advice));
		return;
	}
	if (vt_try(host, 0, act_landlock, &err) < 0) {
		say_failed(finding, &err);
		return;
	}
	name_lacks(host->landlock_abi, lacks, sizeof(lacks));
	if (lacks[0] == '\0') {
		say(finding, VT_STATE_WORKS, "ABI %d", host->landlock_abi);
		return;
	}
	say(finding, VT_STATE_PARTLY, "ABI %d; it does not cover: %s", host->landlock_abi, lacks);
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Linux 6.12 or later covers all; until then namespaces and filters hold alone.");
}

/* One controller: a cgroup with that limit and no other is made and removed. */
static void report_cgroup(const struct vt_host *host, const char *name, const char *folder,
			  const struct vt_cgroup_limits *limits, const char *instead,
			  struct vt_report *report)
{
	struct vt_finding *finding = add(report, name, false);
	struct vt_cgroup cgroup;
	struct vt_err err;
	int version = host->cgroup.version == VT_CGROUP_V2 ? 2 : 1;

	if (folder[0] == '\0') {
		say(finding, VT_STATE_NOT, "no such controller for us here; %s", instead);
		vt_advice_cgroup(host, finding->advice, sizeof(finding->advice));
		return;
	}
	vt_cgroup_init(&cgroup);
	int r = vt_cgroup_make(&host->cgroup, limits, &cgroup, &err);

	if (r == 0)
		r = vt_cgroup_remove(&cgroup, &err);
	if (r == 0) {
		say(finding, VT_STATE_WORKS, "v%d, in %s", version, folder);
		return;
	}
	say(finding, VT_STATE_NOT, "%s: %s; %s", err.what, strerror(err.num), instead);
	vt_advice_cgroup(host, finding->advice, sizeof(finding->advice));
}

static void report_cgroups(const struct vt_host *host, struct vt_report *report)
{
	if (host->cgroup.version == VT_CGROUP_NONE) {
		struct vt_finding *finding = add(report, "cgroups", false);

		say(finding, VT_STATE_NOT,
		    "%s; memory is watched by sampling instead, limits.cpus cannot be held",
		    host->cgroup.why);
		vt_advice_cgroup(host, finding->advice, sizeof(finding->advice));
		return;
	}
	report_cgroup(host, "cgroup memory", host->cgroup.memory,
		      &(struct vt_cgroup_limits){ .memory_bytes = 64 << 20 },
		      "memory is watched by sampling instead", report);
	report_cgroup(host, "cgroup pids", host->cgroup.pids,
		      &(struct vt_cgroup_limits){ .pids = 8 },
		      "a limit of the cell's user counts instead", report);
	report_cgroup(host, "cgroup cpu", host->cgroup.cpu,
		      &(struct vt_cgroup_limits){ .cpu_quota_us = 50000 },
		      "limits.cpus cannot be held", report);
}

static void report_own_ids(const struct vt_host *host, struct vt_report *report)
{
	struct vt_finding *finding = add(report, "host ids for cells", true);

	if (host->privileged && host->id_count > 0) {
		say(finding, VT_STATE_WORKS, "%u to %u", host->id_base,
		    host->id_base + host->id_count - 1);
		return;
	}
	say(finding, VT_STATE_NOT, "%s",
	    host->privileged ? "this user namespace maps none but its root"
			     : "root without CAP_SYS_ADMIN, CAP_SETUID or CAP_SETGID "
			       "cannot give a cell another id than its own");
	(void)snprintf(finding->advice, sizeof(finding->advice),
		       "Run vitro as an ordinary user: setpriv --reuid=USER "
		       "--regid=GROUP --init-groups vitro run ...; or map a range of ids "
		       "into this user namespace (unshare --map-auto, "
		       "/etc/subuid and /etc/subgid).");
}

/* An id map is a user namespace: without those there is none to try a file system with. */
static void report_idmap(const struct vt_host *host, bool userns, struct vt_report *report)
{
	struct vt_finding *finding = add(report, "id-mapped mounts", false);
	struct vt_path here;

	if (!userns) {
		say_follows(finding, "user namespaces");
	} else if (host->look(host, ".", &here) == 0 && here.idmap) {
		say(finding, VT_STATE_WORKS, "on the current folder's file system");
	} else {
		say(finding, VT_STATE_NOT,
		    "not on the current folder's file system: a cell "
		    "writes there only where any user may");
		(void)snprintf(finding->advice, sizeof(finding->advice),
			       "Grant folders on ext4, xfs, btrfs or tmpfs, with Linux 5.12 or "
			       "later (btrfs 5.15, tmpfs 6.3).");
	}
}

static void report_ids(const struct vt_host *host, bool userns, struct vt_report *report)
{
	if (host->uid == 0)
		report_own_ids(host, report);
	if (host->privileged && host->id_count > 0)
		report_idmap(host, userns, report);
}

static void report_groups(const struct vt_host *host, struct vt_report *report)
{
	struct vt_finding *finding = add(report, "dropping groups", false);

	if (host->privileged || host->supplementary_groups == 0)
		return;
	say(finding, VT_STATE_PARTLY,
	    "%u supplementary group%s cannot be dropped by an ordinary user: files that only a "
	    "group opens stay open where they are granted",
	    host->supplementary_groups, host->supplementary_groups == 1 ? "" : "s");
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Run vitro from an account with no more groups than its own, or as root, where "
		"each cell has an id of its own and no groups.");
}

static void report_core(struct vt_report *report)
{
	char pattern[128];

	if (vt_file_read(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof(pattern)) < 0 ||
	    pattern[0] != '|')
		return;
	pattern[strcspn(pattern, " \n")] = '\0';
	say(add(report, "core dumps", false), VT_STATE_WORKS,
	    "the host's handler, %s, is not started for crashes in a cell", pattern + 1);
}

void vt_report_make(const struct vt_host *host, struct vt_report *ret_report)
{
	memset(ret_report, 0, sizeof(*ret_report));
	ret_report->container = vt_advice_container();
	report_proc(ret_report);
	bool clone = report_calls(host, ret_report);
	bool userns = report_userns(host, clone, ret_report);
	bool ready = report_namespaces(host, userns, ret_report);

	report_mounts(host, ready, ret_report);
	report_seccomp(host, ret_report);
	report_notify(host, ret_report);
	report_landlock(host, ret_report);
	report_cgroups(host, ret_report);
	report_ids(host, userns, ret_report);
	report_groups(host, ret_report);
	report_core(ret_report);
}
