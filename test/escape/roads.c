/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other roads to places that are closed: the same calls said differently, what newer kernels offer,
 * and what a caller hands down without knowing.
 */
#include "escape.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the kernel drops of an argument that is an int to it. A filter that looks at it is led
 * astray. */
#define GARBAGE 0xdeadbeef00000000ul

/* ---- the same calls said differently ------------------------------------------------------- */

/* argv: which call, and a file that is one's own */
static int widen_argument(int argc, char **argv)
{
	const char *which = argv[1];
	long r = -1;

	(void)argc;
	if (strcmp(which, "fcntl") == 0) {
		int fd = open(argv[2], O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -1 : syscall(SYS_fcntl, fd, GARBAGE | F_SETLEASE, F_RDLCK);
	} else if (strcmp(which, "personality") == 0) {
		r = syscall(SYS_personality, GARBAGE | READ_IMPLIES_EXEC);
	} else if (strcmp(which, "socket") == 0) {
		r = syscall(SYS_socket, GARBAGE | AF_NETLINK, GARBAGE | SOCK_RAW, GARBAGE);
	} else if (strcmp(which, "fchmodat") == 0) {
		r = syscall(SYS_fchmodat, AT_FDCWD, argv[2], GARBAGE | 0x10000 | S_ISUID | 0755);
		if (r == 0 && chmod(argv[2], 0644) < 0)
			return broken("chmod %s", argv[2]);
	} else if (strcmp(which, "clone") == 0) {
		r = syscall(SYS_clone, GARBAGE | CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
		if (r == 0)
			_exit(0);
	} else {
		return unclear("no such call: %s", which);
	}
	return r < 0 ? denied(errno, "%s with bits above the 32nd", which)
		     : reached("%s passed with bits above the 32nd", which);
}

/* ---- a tracer ------------------------------------------------------------------------------ */

/* The calls whose first argument a filter may look at, and one that it lets through. */
static const struct {
	const char *name;
	long nr;
	unsigned long harmless;
} looked_at[] = {
	{ "clone", SYS_clone, SIGCHLD },
	{ "ioprio_set", SYS_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */ },
	{ "kill", SYS_kill, 0 },
	{ "personality", SYS_personality, 0 },
	{ "prctl", SYS_prctl, PR_GET_DUMPABLE },
	{ "prlimit64", SYS_prlimit64, 0 },
	{ "ptrace", SYS_ptrace, PTRACE_GETREGSET },
	{ "sched_setaffinity", SYS_sched_setaffinity, 0 },
	{ "sched_setattr", SYS_sched_setattr, 0 },
	{ "sched_setparam", SYS_sched_setparam, 0 },
	{ "sched_setscheduler", SYS_sched_setscheduler, 0 },
	{ "setpriority", SYS_setpriority, PRIO_PROCESS },
	{ "socket", SYS_socket, AF_UNIX },
	{ "socketpair", SYS_socketpair, AF_UNIX },
};

#ifdef __x86_64__
#define NUMBER(at) ((at).orig_rax)
#define FIRST(at)  ((at).rdi)

/* At the end of a call that was skipped: back to the instruction that asked for it. */
static void ask_again(struct user_regs_struct *regs, long nr)
{
	regs->rip -= 2; /* syscall */
	regs->rax = (unsigned long)nr;
}

static long set_number(pid_t child, struct user_regs_struct *regs, long nr)
{
	(void)child;
	regs->orig_rax = (unsigned long)nr;
	return 0;
}
#else
#define NUMBER(at) ((at).regs[8])
#define FIRST(at)  ((at).regs[0])

static void ask_again(struct user_regs_struct *regs, long nr)
{
	regs->pc -= 4; /* svc */
	regs->regs[8] = (unsigned long)nr;
}

/* The kernel has copied it from its register already. */
static long set_number(pid_t child, struct user_regs_struct *regs, long nr)
{
	int number = (int)nr;
	struct iovec part = { &number, sizeof(number) };

	regs->regs[8] = (unsigned long)nr;
	return ptrace(PTRACE_SETREGSET, child, (void *)0x404 /* NT_ARM_SYSTEM_CALL */, &part);
}
#endif

static long get_registers(pid_t child, struct user_regs_struct *ret_regs)
{
	struct iovec part = { ret_regs, sizeof(*ret_regs) };

	return ptrace(PTRACE_GETREGSET, child, (void *)NT_PRSTATUS, &part);
}

static long set_registers(pid_t child, struct user_regs_struct *regs)
{
	struct iovec part = { regs, sizeof(*regs) };

	return ptrace(PTRACE_SETREGSET, child, (void *)NT_PRSTATUS, &part);
}

/*
 * Has each call of this number begin as another one, with an argument that filters let pass, and
 * become what it was when the kernel has told the tracer of it: the call is skipped, and its
 * instruction run again. Returns how often, or -1.
 */
static int rewrite_all(pid_t child, long nr, unsigned long harmless, int *ret_status)
{
	enum { AWAITED, SKIPPED, ASKED_AGAIN } stage = AWAITED;
	struct user_regs_struct regs, wanted = { 0 };
	int status, signal = 0, count = 0;
	bool inside = false; /* a call, and not at its end */

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, child, NULL, (long)signal) < 0 ||
		    waitpid(child, &status, __WALL) < 0)
			return -1;
		*ret_status = status;
		if (!WIFSTOPPED(status))
			return count;
		signal = WSTOPSIG(status);
		if (signal != (SIGTRAP | 0x80))
			continue;
		signal = 0;
		inside = !inside;
		if (get_registers(child, &regs) < 0)
			return -1;
		if (stage == AWAITED && inside && (long)NUMBER(regs) == nr) {
			wanted = regs;
			if (set_number(child, &regs, -1) < 0 || set_registers(child, &regs) < 0)
				return -1;
			stage = SKIPPED;
		} else if (stage == SKIPPED && !inside) {
			regs = wanted;
			ask_again(&regs, SYS_getppid);
			FIRST(regs) = harmless;
			if (set_registers(child, &regs) < 0)
				return -1;
			stage = ASKED_AGAIN;
		} else if (stage == ASKED_AGAIN && inside) {
			FIRST(regs) = FIRST(wanted);
			if (set_number(child, &regs, nr) < 0 || set_registers(child, &regs) < 0)
				return -1;
			stage = AWAITED;
			count++;
		}
	}
}

/*
 * argv: a call, and an act that makes it, with its arguments. A tracer rewrites the call, after
 * filters could have looked at it.
 */
static int rewrite_call(int argc, char **argv)
{
	const struct act *act = argc > 2 ? find_act(argv[2]) : NULL;
	size_t i = 0;
	int status;

	while (i < sizeof(looked_at) / sizeof(*looked_at) &&
	       strcmp(looked_at[i].name, argv[1]) != 0)
		i++;
	if (!act || i == sizeof(looked_at) / sizeof(*looked_at))
		return unclear("no such call or act");
	pid_t child = fork();
	if (child < 0)
		return broken("fork");
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(denied(errno, "be traced"));
		raise(SIGSTOP);
		_exit(act->attempt(argc - 2, argv + 2));
	}
	if (waitpid(child, &status, __WALL) < 0)
		return broken("wait");
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	int count = ptrace(PTRACE_SETOPTIONS, child, NULL,
			   PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0
			    ? -1
			    : rewrite_all(child, looked_at[i].nr, looked_at[i].harmless, &status);
	if (count < 0) {
		int err = errno;

		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, __WALL);
		return denied(err, "write the registers of a child");
	}
	if (count == 0)
		return unclear("%s did not call %s", argv[2], argv[1]);
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : unclear("%s ended with status %#x", argv[2], (unsigned)status);
}

/* ---- another machine's code ---------------------------------------------------------------- */

#ifdef __x86_64__
/*
 * A far jump to the kernel's segment for 32-bit code, where "int $0x80" is the native call. The
 * code lies below 4 GB, and so does its stack.
 */
static void jump_to_32_bits(char *low)
{
	static const unsigned char code[] = {
		0xb8, 20,   0, 0, 0,             /* mov $getpid, %eax */
		0xcd, 0x80,                      /* int $0x80 */
		0xb8, 1,    0, 0, 0, 0x31, 0xdb, /* mov $exit, %eax; xor %ebx, %ebx */
		0xcd, 0x80,                      /* int $0x80 */
	};
	static struct { /* static: not found by the stack, which changes first */
		uint32_t at;
		uint16_t segment;
	} __attribute__((packed)) far;

	memcpy(low, code, sizeof(code));
	far.at = (uint32_t)(uintptr_t)low;
	far.segment = 0x23;
	__asm__ volatile("mov %0, %%rsp\n\tljmp *%1" : : "r"(low + 8192), "m"(far) : "memory");
}

static int far_call(int argc, char **argv)
{
	int status;

	(void)argc;
	(void)argv;
	char *low = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low == MAP_FAILED)
		return broken("mmap below 4 GB");
	pid_t child = fork();
	if (child < 0)
		return broken("fork");
	if (child == 0) {
		jump_to_32_bits(low);
		_exit(1);
	}
	if (waitpid(child, &status, 0) < 0)
		return broken("wait");
	return WIFEXITED(status) && WEXITSTATUS(status) == 0
		       ? reached("made calls as a 32-bit program")
		       : denied(0, "32-bit code ended with status %#x", (unsigned)status);
}
#else
static int far_call(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return unclear("there is no such segment");
}
#endif

/* ---- other processes ----------------------------------------------------------------------- */

/* Signal 0 harms nobody, and tells whether there is anybody. */
static int signal_all(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (kill(-1, 0) < 0)
		return denied(errno, "kill -1");
	return reached("could signal every process that it may");
}

/* argv: a pid. The kernel would signal it when the pipe can be read. */
static int signal_by_descriptor(int argc, char **argv)
{
	int ends[2];

	(void)argc;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return broken("pipe");
	if (fcntl(ends[0], F_SETOWN, (int)number(argv, 1)) < 0)
		return denied(errno, "F_SETOWN %s", argv[1]);
	return reached("%s is signalled for a pipe of ours", argv[1]);
}

/* argv: a pid. A folder of proc was a pidfd before there were others. */
static int signal_by_proc(int argc, char **argv)
{
	(void)argc;
	int fd = open(join("/proc", argv[1]), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return denied(errno, "open /proc/%s", argv[1]);
	if (syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) < 0)
		return denied(errno, "signal by /proc/%s", argv[1]);
	return reached("signalled %s by its folder", argv[1]);
}

/* argv: a pid. Calls that only ask, and that no filter denies. */
static int ask_about(int argc, char **argv)
{
	pid_t pid = (pid_t)number(argv, 1);
	void *list;
	size_t len;
	cpu_set_t cpus;

	(void)argc;
	errno = 0;
	if (getpgid(pid) >= 0 || getsid(pid) >= 0 || sched_getscheduler(pid) >= 0 ||
	    sched_getaffinity(pid, sizeof(cpus), &cpus) >= 0 ||
	    syscall(SYS_ioprio_get, 1, pid) >= 0 ||
	    syscall(SYS_get_robust_list, pid, &list, &len) == 0)
		return reached("learned of %s", argv[1]);
	return denied(errno, "nobody tells of %s", argv[1]);
}

/* argv: a pid. Where its pages are, without a pointer to any. */
static int ask_pages(int argc, char **argv)
{
	(void)argc;
	if (syscall(SYS_move_pages, number(argv, 1), 0, NULL, NULL, NULL, 0) < 0)
		return denied(errno, "move_pages of %s", argv[1]);
	return reached("could ask for the pages of %s", argv[1]);
}

/* argv: a pid. Since Linux 6.11 a pidfd opens namespaces. */
static int take_namespace(int argc, char **argv)
{
	const unsigned long get_network = 0xff04; /* PIDFD_GET_NET_NAMESPACE */

	(void)argc;
	int fd = (int)syscall(SYS_pidfd_open, number(argv, 1), 0);
	if (fd < 0)
		return denied(errno, "pidfd_open %s", argv[1]);
	if (ioctl(fd, get_network, 0) < 0)
		return denied(errno, "the network namespace of %s", argv[1]);
	return reached("holds the network namespace of %s", argv[1]);
}

/* Since Linux 6.14 a pidfd can be opened by its number alone. */
static int open_pid_handle(int argc, char **argv)
{
	union {
		struct file_handle head;
		char room[sizeof(struct file_handle) + 128];
	} handle = { .head.handle_bytes = 128 };
	int mount;

	(void)argc;
	(void)argv;
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (fd < 0)
		return broken("pidfd_open");
	if (name_to_handle_at(fd, "", &handle.head, &mount, AT_EMPTY_PATH) < 0)
		return denied(errno, "name_to_handle_at of a pidfd");
	if (open_by_handle_at(fd, &handle.head, O_CLOEXEC) < 0)
		return denied(errno, "open_by_handle_at of a pidfd");
	return reached("opened a process by its number");
}

/* ---- files --------------------------------------------------------------------------------- */

/* argv: a folder. Who opens what in it is told to whoever watches. */
static int watch_folder(int argc, char **argv)
{
	(void)argc;
	int fd = inotify_init1(IN_CLOEXEC);
	if (fd < 0)
		return denied(errno, "inotify");
	if (inotify_add_watch(fd, argv[1], IN_OPEN) < 0)
		return denied(errno, "watch %s", argv[1]);
	return reached("watches %s", argv[1]);
}

/* argv: a folder. The same by the call before inotify. */
static int watch_folder_by_signal(int argc, char **argv)
{
	(void)argc;
	int fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return denied(errno, "open %s", argv[1]);
	if (fcntl(fd, F_NOTIFY, DN_ACCESS) < 0)
		return denied(errno, "F_NOTIFY of %s", argv[1]);
	return reached("is signalled what happens in %s", argv[1]);
}

static int ask_quota(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (quotactl(QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL) < 0)
		return gated(errno, "quotactl");
	return reached("had all quotas written out");
}

/* Of pages of a file in memory: what is wished for each of them stays with the file, where nobody
 * counts it. */
static int place_pages(int argc, char **argv)
{
	const long size = sysconf(_SC_PAGESIZE);
	int fd = memfd_create("placed", MFD_CLOEXEC);

	(void)argc;
	(void)argv;
	if (fd < 0 || ftruncate(fd, size) < 0)
		return broken("memfd_create");
	void *page = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return broken("mmap");
	if (syscall(SYS_mbind, page, size, 0 /* MPOL_DEFAULT */, NULL, 0, 0) < 0)
		return gated(errno, "mbind");
	return reached("has a wish for where a page lies");
}

/* ---- what is the machine's ----------------------------------------------------------------- */

/* argv: "map" or "file". Pages that the host has set aside; that there are none is no denial. */
static int take_huge(int argc, char **argv)
{
	enum { HUGE = 2 << 20, FILE_HUGE = 4 /* MFD_HUGETLB */ };

	(void)argc;
	if (strcmp(argv[1], "file") == 0) {
		if (syscall(SYS_memfd_create, "huge", FILE_HUGE) < 0)
			return gated(errno, "a file of huge pages");
		return reached("a file can be made of the host's huge pages");
	}
	void *page = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (page == MAP_FAILED && errno != ENOMEM)
		return gated(errno, "map a huge page");
	return reached("only huge pages that are free may be missing");
}

/* An alarm that wakes a machine which sleeps. */
static int set_alarm(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (timerfd_create(CLOCK_BOOTTIME_ALARM, TFD_CLOEXEC) < 0)
		return denied(errno, "an alarm timer");
	return reached("has an alarm that wakes the machine");
}

/* Interfaces of the network that a pair of sockets was made in. */
static int ask_interfaces(int argc, char **argv)
{
	char names[4096];
	struct ifconf all = { .ifc_len = sizeof(names), .ifc_buf = names };
	int ends[2];

	(void)argc;
	(void)argv;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return broken("socketpair");
	if (ioctl(ends[0], SIOCGIFCONF, &all) < 0)
		return denied(errno, "SIOCGIFCONF");
	return all.ifc_len > 0 ? reached("learned of %s and its address", all.ifc_req->ifr_name)
			       : denied(0, "there is no interface");
}

/* ---- what a caller hands down -------------------------------------------------------------- */

static int see_personality(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int now = personality(UINT32_MAX);
	if (now < 0)
		return denied(errno, "personality");
	return now ? reached("is of personality %#x", (unsigned)now) : denied(0, "it is plain");
}

static int see_disk_class(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	long priority = syscall(SYS_ioprio_get, 1, 0);
	if (priority < 0)
		return denied(errno, "ioprio_get");
	return priority >> 13 == 1 ? reached("reads disks before everybody else")
				   : denied(0, "its class is %ld", priority >> 13);
}

const struct act road_acts[] = {
	{ "widen_argument", "bits that the kernel drops", "has a filter misread an argument",
	  widen_argument },
	{ "rewrite_call", "a call changed by a tracer", "makes a call that no filter saw",
	  rewrite_call },
	{ "far_call", "a jump to 32-bit code", "makes calls that a 64-bit filter misreads",
	  far_call },
	{ "signal_all", "kill of all", "signals processes of the host", signal_all },
	{ "signal_by_descriptor", "F_SETOWN", "has the kernel signal a process",
	  signal_by_descriptor },
	{ "signal_by_proc", "a folder of proc as a pidfd", "signals a process of the host",
	  signal_by_proc },
	{ "ask_about", "calls that ask about a pid", "learns of a process of the host", ask_about },
	{ "ask_pages", "move_pages", "learns where a process's memory is", ask_pages },
	{ "take_namespace", "a namespace by pidfd", "holds where another process is",
	  take_namespace },
	{ "open_pid_handle", "a handle of a pidfd", "opens processes by number", open_pid_handle },
	{ "watch_folder", "inotify", "sees what others do with files", watch_folder },
	{ "watch_folder_by_signal", "dnotify", "sees what others do with files",
	  watch_folder_by_signal },
	{ "place_pages", "mbind", "keeps kernel memory that nobody counts", place_pages },
	{ "ask_quota", "quotactl", "makes everybody wait for the disks", ask_quota },
	{ "take_huge", "huge pages that are set aside", "takes memory that nobody counts",
	  take_huge },
	{ "set_alarm", "alarm timers", "wakes a machine that sleeps", set_alarm },
	{ "ask_interfaces", "SIOCGIFCONF of a pair", "learns the host's addresses",
	  ask_interfaces },
	{ "see_personality", "an inherited personality", "runs without protections",
	  see_personality },
	{ "see_disk_class", "an inherited class of disks", "takes the disks from others",
	  see_disk_class },
	{ NULL }
};
