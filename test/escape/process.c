/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes: init (pid 1), the caller, and a process of the host whose number the test gives;
 * and namespaces, capabilities and limits of one's own.
 */
#include "escape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif

static void pause_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* In what follows argv[1] is the pid to try. */
static int trace(int argc, char **argv)
{
	(void)argc;
	if (ptrace(PTRACE_SEIZE, number(argv, 1), NULL, NULL) < 0)
		return denied(errno, "ptrace of %s", argv[1]);
	return reached("traces %s", argv[1]);
}

/* The program's text starts at the same place in two runs of one static program: its own address.
 */
static int read_memory(int argc, char **argv)
{
	(void)argc;
	char maps[64], line[256], text[16];
	unsigned long start = 0x400000;

	snprintf(maps, sizeof(maps), "/proc/%s/maps", argv[1]);
	FILE *list = fopen(maps, "re");
	if (list) {
		if (fgets(line, sizeof(line), list))
			start = strtoul(line, NULL, 16);
		fclose(list);
	}
	struct iovec mine = { text, sizeof(text) }, theirs = { (void *)start, sizeof(text) };
	if (process_vm_readv((pid_t)number(argv, 1), &mine, 1, &theirs, 1, 0) < 0)
		return denied(errno, "process_vm_readv of %s", argv[1]);
	return reached("read the memory of %s", argv[1]);
}

static int open_proc_file(const char *pid, const char *name, int flags)
{
	char path[64], text[16];
	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	int fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return denied(errno, "open %s", path);
	if (strcmp(name, "mem") == 0)
		return reached("opened %s", path);
	ssize_t got = read(fd, text, sizeof(text));
	if (got < 0)
		return denied(errno, "read %s", path);
	return got > 0 ? reached("read %s", path) : denied(0, "%s is empty", path);
}

static int read_environ(int argc, char **argv)
{
	(void)argc;
	return open_proc_file(argv[1], "environ", O_RDONLY);
}

static int read_maps(int argc, char **argv)
{
	(void)argc;
	return open_proc_file(argv[1], "maps", O_RDONLY);
}

static int open_mem(int argc, char **argv)
{
	(void)argc;
	return open_proc_file(argv[1], "mem", O_RDWR);
}

static int list_descriptors(int argc, char **argv)
{
	(void)argc;
	char path[64];
	snprintf(path, sizeof(path), "/proc/%s/fd", argv[1]);
	DIR *dir = opendir(path);
	if (!dir)
		return denied(errno, "open %s", path);
	errno = 0;
	struct dirent *entry = readdir(dir);
	int err = errno;
	closedir(dir);
	return entry ? reached("listed %s", path) : denied(err, "list %s", path);
}

static int send_signal(int argc, char **argv)
{
	(void)argc;
	if (kill((pid_t)number(argv, 1), SIGWINCH) < 0)
		return denied(errno, "kill %s", argv[1]);
	return reached("sent a signal to %s", argv[1]);
}

static int signal_group(int argc, char **argv)
{
	(void)argc;
	if (kill((pid_t)-number(argv, 1), SIGWINCH) < 0)
		return denied(errno, "kill -%s", argv[1]);
	return reached("sent a signal to the group of %s", argv[1]);
}

static int open_pidfd(int argc, char **argv)
{
	(void)argc;
	int fd = (int)syscall(SYS_pidfd_open, number(argv, 1), 0);
	if (fd < 0)
		return denied(errno, "pidfd_open %s", argv[1]);
	return reached("holds %s by a pidfd", argv[1]);
}

/* Kills its parent: a shell outside; init, which must not die of what its cell does, inside. */
static int kill_parent(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const int signals[] = { SIGTERM, SIGSTOP, SIGSEGV, SIGKILL };
	pid_t parent = getppid();
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (kill(parent, signals[i]) < 0 && errno != ESRCH)
			return denied(errno, "kill %d", (int)parent);
	for (int i = 0; i < 30; i++) {
		if (getppid() != parent)
			return reached("killed %d", (int)parent);
		pause_ms(10);
	}
	return denied(0, "%d lives on", (int)parent);
}

/* argv: a word to be seen by. Not an act of its own: a process of the host for others to reach for.
 */
static _Noreturn int idle(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (;;)
		pause();
}

/*
 * It is to outlive whoever looks, and nobody's machine: not even one who stops it keeps it, where
 * whoever started it is killed.
 */
static int live_for(time_t seconds)
{
	struct sigevent end = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	const struct itimerspec when = { .it_value.tv_sec = seconds };
	timer_t timer;

	return timer_create(CLOCK_MONOTONIC, &end, &timer) < 0 ||
			       timer_settime(timer, 0, &when, NULL) < 0
		       ? errno
		       : 0;
}

/* Locks the file, tells, and stops: whoever holds the lock lives. */
static _Noreturn void hold_lock(int lock, int told)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int err = fcntl(lock, F_SETLK, &whole) < 0 ? errno : live_for(5);
	for (int fd = 0; fd < 3; fd++)
		close(fd); /* nobody waits for its output */
	if (write(told, &err, sizeof(err)) != (ssize_t)sizeof(err) || err)
		_exit(1);
	for (;;)
		raise(SIGSTOP);
}

/*
 * argv: a folder that may be written. The grandchild has a session of its own and is stopped, so
 * that neither a hangup nor a signal it could handle ends it. It is told from the lock on the file
 * "lock" whether it outlived the call.
 */
static int stay_behind(int argc, char **argv)
{
	int told[2], err = EPIPE;
	(void)argc;
	int lock = open(join(argv[1], "lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0 || pipe2(told, O_CLOEXEC) < 0)
		return broken("make %s/lock", argv[1]);
	pid_t child = fork();
	if (child < 0)
		return broken("fork");
	if (child == 0) {
		if (setsid() < 0 || fork() != 0)
			_exit(0);
		hold_lock(lock, told[1]);
	}
	(void)waitpid(child, NULL, 0);
	close(told[1]);
	if (read(told[0], &err, sizeof(err)) != (ssize_t)sizeof(err) || err)
		return unclear("nobody holds the lock: %s", strerrorname_np(err));
	return reached("a grandchild stays behind");
}

/* The same, and then the keeper is killed, who would end the grandchild. */
static int stay_unkept(int argc, char **argv)
{
	int code = stay_behind(argc, argv);
	pid_t parent = getppid();
	if (code == 0 && kill(parent, SIGKILL) < 0)
		return denied(errno, "kill %d", (int)parent);
	pause_ms(100);
	return code == 0 && getppid() == parent ? denied(0, "%d lives on", (int)parent) : code;
}

/* argv: a word that stands in the command line of a process of the host */
static int see_processes(int argc, char **argv)
{
	(void)argc;
	char path[300], line[512];
	int seen = 0;
	DIR *dir = opendir("/proc");
	if (!dir)
		return denied(errno, "open /proc");
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (atoi(entry->d_name) == 0 || atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t got = fd < 0 ? 0 : read(fd, line, sizeof(line));
		close(fd);
		seen++;
		if (got > 0 && memmem(line, (size_t)got, argv[1], strlen(argv[1])))
			return reached("sees process %s", entry->d_name);
	}
	closedir(dir);
	return denied(0, "%d other processes are seen", seen);
}

/* argv: the secret's text */
static int find_secret(int argc, char **argv)
{
	(void)argc;
	static char text[1 << 17];
	char path[300];
	const char *key = "VITRO_TEST_SECRET=";
	DIR *dir = opendir("/proc");
	if (!dir)
		return getenv("VITRO_TEST_SECRET") ? reached("its own environment has it")
						   : denied(errno, "open /proc");
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (atoi(entry->d_name) == 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%s/environ", entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		ssize_t got = read(fd, text, sizeof(text));
		close(fd);
		char *found = got > 0 ? memmem(text, (size_t)got, key, strlen(key)) : NULL;
		if (found && strncmp(found + strlen(key), argv[1], strlen(argv[1])) == 0)
			return reached("the environment of %s has it", entry->d_name);
	}
	closedir(dir);
	if (getenv("VITRO_TEST_SECRET"))
		return reached("its own environment has it");
	return denied(0, "no environment has it");
}

/* argv: a pid, and how many files it may open, if not as many as before */
static int change_limits(int argc, char **argv)
{
	struct rlimit limit;
	if (prlimit((pid_t)number(argv, 1), RLIMIT_NOFILE, NULL, &limit) < 0)
		return denied(errno, "prlimit of %s", argv[1]);
	if (argc > 2)
		limit.rlim_cur = (rlim_t)number(argv, 2);
	if (prlimit((pid_t)number(argv, 1), RLIMIT_NOFILE, &limit, NULL) < 0)
		return denied(errno, "prlimit of %s", argv[1]);
	return reached("changed the limits of %s", argv[1]);
}

static int change_priority(int argc, char **argv)
{
	(void)argc;
	if (setpriority(PRIO_PROCESS, (id_t)number(argv, 1), 1) < 0)
		return denied(errno, "setpriority of %s", argv[1]);
	return reached("changed the priority of %s", argv[1]);
}

static int change_affinity(int argc, char **argv)
{
	(void)argc;
	cpu_set_t set;
	pid_t pid = (pid_t)number(argv, 1);
	if (sched_getaffinity(pid, sizeof(set), &set) < 0 ||
	    sched_setaffinity(pid, sizeof(set), &set) < 0)
		return denied(errno, "sched_setaffinity of %s", argv[1]);
	return reached("changed the CPUs of %s", argv[1]);
}

/* argv: a pid, and the call, if not sched_setscheduler */
static int change_scheduler(int argc, char **argv)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attributes = { .size = sizeof(attributes), .policy = SCHED_IDLE };
	const char *call = argc > 2 ? argv[2] : "sched_setscheduler";
	struct sched_param param = { 0 };
	pid_t pid = (pid_t)number(argv, 1);
	int r = strcmp(call, "sched_setattr") == 0
			? (int)syscall(SYS_sched_setattr, pid, &attributes, 0)
		: strcmp(call, "sched_setparam") == 0 ? sched_setparam(pid, &param)
						      : sched_setscheduler(pid, SCHED_IDLE, &param);

	return r < 0 ? denied(errno, "%s of %s", call, argv[1])
		     : reached("changed how %s is scheduled", argv[1]);
}

/* argv: the number, and of what: 1 a process, 2 a group, 3 a user */
static int change_io_priority(int argc, char **argv)
{
	(void)argc;
	const int idle = 3 << 13;
	if (syscall(SYS_ioprio_set, number(argv, 2), number(argv, 1), idle) < 0)
		return denied(errno, "ioprio_set of %s", argv[1]);
	return reached("%s reads only when nobody else does", argv[1]);
}

/* argv: the user, 0 for its own. All that runs for them and that it can see: init is among them. */
static int change_user_priority(int argc, char **argv)
{
	(void)argc;
	if (setpriority(PRIO_USER, (id_t)number(argv, 1), 19) < 0)
		return denied(errno, "setpriority of a user");
	return reached("slowed all that its user runs");
}

static int change_group_priority(int argc, char **argv)
{
	(void)argc;
	if (setpriority(PRIO_PGRP, (id_t)number(argv, 1), 19) < 0)
		return denied(errno, "setpriority of group %s", argv[1]);
	return reached("slowed the group of %s", argv[1]);
}

/*
 * Its share of the CPU, its name, its end when memory runs out. (timerslack_ns opens for everybody,
 * and asks only at the write.)
 */
static int tune_by_proc(int argc, char **argv)
{
	static const char *const names[] = { "autogroup", "sched",           "oom_score_adj",
					     "comm",      "coredump_filter", "clear_refs",
					     "setgroups" };
	int err = ENOENT;
	(void)argc;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%s/%s", argv[1], names[i]);
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			close(fd);
			return reached("may write %s", path);
		}
		err = errno == ENOENT ? err : errno;
	}
	return denied(err, "no file of %s may be written", argv[1]);
}

static int steal_descriptor(int argc, char **argv)
{
	(void)argc;
	int pidfd = (int)syscall(SYS_pidfd_open, number(argv, 1), 0);
	if (pidfd < 0)
		return denied(errno, "pidfd_open %s", argv[1]);
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, 0, 0);
	if (fd < 0)
		return gated(errno, "pidfd_getfd");
	return reached("took descriptor 0 of %s", argv[1]);
}

static int compare_processes(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (syscall(SYS_kcmp, getpid(), getpid(), 0 /* KCMP_FILE */, 1, 2) < 0)
		return gated(errno, "kcmp");
	return reached("compared kernel addresses");
}

static int enter_namespace(int argc, char **argv)
{
	static const char *const names[] = { "uts", "mnt", "net", "ipc", "cgroup", "user" };
	int err = 0;
	(void)argc;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%s/ns/%s", argv[1], names[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			err = err ? err : errno;
			continue;
		}
		if (setns(fd, 0) == 0)
			return reached("entered the %s namespace of %s", names[i], argv[1]);
		err = errno;
		close(fd);
	}
	return denied(err, "no namespace of %s can be entered", argv[1]);
}

static int enter_by_pidfd(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (pidfd < 0)
		return gated(errno, "pidfd_open of itself");
	if (setns(pidfd, CLONE_NEWUTS) < 0)
		return gated(errno, "setns");
	return reached("entered a namespace");
}

static int unshare_user(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (unshare(CLONE_NEWUSER) < 0)
		return gated(errno, "unshare");
	return reached("is root of a user namespace");
}

static int unshare_others(int argc, char **argv)
{
	static const int flags[] = { CLONE_NEWNS,  CLONE_NEWNET, CLONE_NEWUTS,
				     CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWCGROUP };
	(void)argc;
	(void)argv;
	int err = 0;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (unshare(flags[i]) == 0)
			return reached("unshared %#x", (unsigned)flags[i]);
		err = errno;
	}
	return gated(err, "unshare");
}

static int clone_user(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child < 0)
		return gated(errno, "clone");
	if (child == 0)
		_exit(0);
	(void)waitpid((pid_t)child, NULL, 0);
	return reached("a child is root of a user namespace");
}

static int clone_sister(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	long child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child < 0)
		return gated(errno, "clone");
	if (child == 0)
		_exit(0);
	return reached("our parent has a child that it never started");
}

static int clone3_user(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	long child = syscall(SYS_clone3, &args, sizeof(args));
	if (child < 0)
		return gated(errno, "clone3");
	if (child == 0)
		_exit(0);
	(void)waitpid((pid_t)child, NULL, 0);
	return reached("a child is root of a user namespace");
}

/* One by one, since all at once fails for the lack of one. */
static int raise_capabilities(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	/* No further: a set without a single capability that the kernel knows is no gain. */
	for (int bit = 0; bit <= CAP_LAST_CAP; bit++) {
		memset(data, 0, sizeof(data));
		data[bit / 32].permitted = data[bit / 32].effective = 1U << bit % 32;
		if (syscall(SYS_capset, &head, data) == 0)
			return reached("has capability %d", bit);
	}
	return denied(errno, "no capability can be raised");
}

static int raise_ambient(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return broken("capget");
	data[0].inheritable |= data[0].permitted;
	data[1].inheritable |= data[1].permitted;
	(void)syscall(SYS_capset, &head, data); /* what follows fails without it */
	for (int bit = 0; bit < 41; bit++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, bit, 0, 0) == 0)
			return reached("its programs get capability %d", bit);
	return denied(errno, "no capability can be passed on");
}

static int become_root(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (syscall(SYS_setresuid, 0, 0, 0) < 0)
		return denied(errno, "setresuid");
	if (setpriority(PRIO_PROCESS, 0, 0) == 0 && chroot("/") == 0)
		return reached("is root, with its powers");
	return denied(errno, "user 0 without powers");
}

static int raise_open_files(int argc, char **argv)
{
	(void)argc;
	rlim_t wanted = (rlim_t)number(argv, 1);
	struct rlimit limit = { wanted, wanted };
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return denied(errno, "setrlimit");
	return reached("may open %ld files", (long)wanted);
}

static int raise_core(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct rlimit limit = { 1 << 20, 1 << 20 };
	if (setrlimit(RLIMIT_CORE, &limit) < 0)
		return denied(errno, "setrlimit");
	return reached("may dump core");
}

static int raise_priority(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (setpriority(PRIO_PROCESS, 0, -5) < 0)
		return denied(errno, "setpriority");
	return reached("runs before others");
}

static int become_realtime(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct sched_param param = { .sched_priority = 1 };
	if (sched_setscheduler(0, SCHED_FIFO, &param) < 0)
		return denied(errno, "sched_setscheduler");
	return reached("runs before all others");
}

const struct act process_acts[] = {
	{ "trace", "ptrace", "traces a process", trace },
	{ "read_memory", "process_vm_readv", "reads a process's memory", read_memory },
	{ "read_environ", "/proc/PID/environ", "reads a process's environment", read_environ },
	{ "read_maps", "/proc/PID/maps", "learns a process's addresses", read_maps },
	{ "open_mem", "/proc/PID/mem", "writes a process's memory", open_mem },
	{ "list_descriptors", "/proc/PID/fd", "reaches a process's open files", list_descriptors },
	{ "send_signal", "kill", "signals a process of the host", send_signal },
	{ "signal_group", "kill of a group", "signals a process group of the host", signal_group },
	{ "open_pidfd", "pidfd_open", "holds a process of the host", open_pidfd },
	{ "kill_parent", "kill of init", "ends the cell's keeper, to outlive it", kill_parent },
	{ "idle", "(helper)", "waits to be reached for", idle },
	{ "stay_behind", "a stopped grandchild in its own session", "outlives its call",
	  stay_behind },
	{ "stay_unkept", "a grandchild of a cell whose init is killed", "outlives its call",
	  stay_unkept },
	{ "see_processes", "the list in /proc", "sees the host's processes", see_processes },
	{ "find_secret", "environment of any process", "reads the caller's secrets", find_secret },
	{ "change_limits", "prlimit", "changes the limits of a process", change_limits },
	{ "change_priority", "setpriority of another", "slows a process of the host",
	  change_priority },
	{ "change_affinity", "sched_setaffinity of another", "moves a process of the host",
	  change_affinity },
	{ "change_scheduler", "sched_setscheduler of another", "starves a process",
	  change_scheduler },
	{ "change_io_priority", "ioprio_set", "starves what a process reads", change_io_priority },
	{ "change_user_priority", "setpriority of a user", "slows all of a user's processes",
	  change_user_priority },
	{ "change_group_priority", "setpriority of a group", "slows a process by its group",
	  change_group_priority },
	{ "tune_by_proc", "settings in /proc/PID", "starves or endangers a process", tune_by_proc },
	{ "steal_descriptor", "pidfd_getfd", "takes a descriptor from a process",
	  steal_descriptor },
	{ "compare_processes", "kcmp", "learns the order of kernel addresses", compare_processes },
	{ "enter_namespace", "setns to /proc/PID/ns", "goes where another process is",
	  enter_namespace },
	{ "enter_by_pidfd", "setns by pidfd", "goes where another process is", enter_by_pidfd },
	{ "unshare_user", "unshare of a user namespace", "gets capabilities to attack the kernel",
	  unshare_user },
	{ "unshare_others", "unshare of other namespaces", "leaves the cell's namespaces",
	  unshare_others },
	{ "clone_user", "clone with CLONE_NEWUSER", "gets capabilities to attack the kernel",
	  clone_user },
	{ "clone_sister", "clone with CLONE_PARENT", "leaves its parent a child to reap",
	  clone_sister },
	{ "clone3_user", "clone3 with CLONE_NEWUSER", "the same behind a pointer", clone3_user },
	{ "raise_capabilities", "capset", "gets a capability", raise_capabilities },
	{ "raise_ambient", "ambient capabilities", "passes a capability on", raise_ambient },
	{ "become_root", "setresuid", "becomes root", become_root },
	{ "raise_open_files", "setrlimit of open files", "lifts a limit", raise_open_files },
	{ "raise_core", "setrlimit of core dumps", "leaves memory dumps on the host", raise_core },
	{ "raise_priority", "negative nice", "takes the CPU from others", raise_priority },
	{ "become_realtime", "SCHED_FIFO", "takes the CPU from everybody", become_realtime },
	{ NULL }
};
