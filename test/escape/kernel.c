/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the kernel that a cell has no business with: large or dangerous interfaces, global
 * settings, foreign ABIs, terminals, keys. Where a call can be made harmlessly it is made for real;
 * where success would change the machine it gets arguments that fail behind the permission check.
 */
#include "escape.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int use_io_uring(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct io_uring_params params = { 0 };
	if (syscall(SYS_io_uring_setup, 4, &params) < 0)
		return gated(errno, "io_uring_setup");
	return reached("has a ring");
}

static int use_bpf(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1
	};
	if (syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)) < 0)
		return gated(errno, "bpf");
	return reached("has a map");
}

static int use_perf(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_PAGE_FAULTS,
					.exclude_kernel = 1,
					.exclude_hv = 1 };
	if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0)
		return gated(errno, "perf_event_open");
	return reached("has a counter");
}

static int use_userfaultfd(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */) < 0)
		return gated(errno, "userfaultfd");
	return reached("can stop the kernel in a copy");
}

/* A byte of memory in a pipe keeps the page that it lies on, and nobody counts it. */
static int use_vmsplice(int argc, char **argv)
{
	static char text[] = "x";
	int ends[2];
	(void)argc;
	(void)argv;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return broken("pipe");
	if (vmsplice(ends[1], &(struct iovec){ text, 1 }, 1, 0) < 0)
		return gated(errno, "vmsplice");
	return reached("a page of its own is in a pipe");
}

static int change_ldt(int argc, char **argv)
{
	(void)argc;
	(void)argv;
#ifdef SYS_modify_ldt
	char text[8];
	if (syscall(SYS_modify_ldt, 0, text, sizeof(text)) < 0)
		return gated(errno, "modify_ldt");
	return reached("reads its descriptor table");
#else
	return unclear("this machine has no modify_ldt");
#endif
}

/* argv: the personality */
static int change_personality(int argc, char **argv)
{
	(void)argc;
	if (personality((unsigned long)number(argv, 1)) < 0)
		return gated(errno, "personality");
	return reached("runs as another kind of process");
}

/* Runs call in a child, which a filter may kill. */
static int foreign(long (*call)(void), const char *what)
{
	int ends[2];
	long got = 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return broken("pipe");
	pid_t child = fork();
	if (child < 0)
		return broken("fork");
	if (child == 0) {
		got = call();
		_exit(write(ends[1], &got, sizeof(got)) != (ssize_t)sizeof(got));
	}
	int status = 0;
	(void)waitpid(child, &status, 0);
	close(ends[1]);
	if (WIFSIGNALED(status))
		return denied(0, "%s: killed by signal %d", what, WTERMSIG(status));
	if (read(ends[0], &got, sizeof(got)) != (ssize_t)sizeof(got))
		return unclear("%s: the child said nothing", what);
	return got > 0 ? reached("%s answers", what) : denied((int)-got, "%s", what);
}

#ifdef __x86_64__
static long i386_getpid(void)
{
	long got;
	__asm__ volatile("int $0x80" : "=a"(got) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return (int)got;
}

static long x32_getpid(void)
{
	long got = syscall(0x40000000L | SYS_getpid);
	return got < 0 ? -errno : got;
}
#else
static long i386_getpid(void)
{
	return -ENOSYS;
}

static long x32_getpid(void)
{
	return -ENOSYS;
}
#endif

static int call_i386(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return foreign(i386_getpid, "int 0x80");
}

static int call_x32(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return foreign(x32_getpid, "the x32 ABI");
}

#ifdef __aarch64__
/* A program for 32-bit ARM that ends with 7. Its end is a system call of that machine's. */
static int call_arm32(int argc, char **argv)
{
	static const struct {
		Elf32_Ehdr head;
		Elf32_Phdr load;
		uint32_t code[3];
	} program = {
		.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_ARM,
			  .e_version = EV_CURRENT,
			  .e_entry = 0x10000 + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
			  .e_phoff = sizeof(Elf32_Ehdr),
			  .e_flags = 0x05000000 /* EF_ARM_EABI_VER5 */,
			  .e_ehsize = sizeof(Elf32_Ehdr),
			  .e_phentsize = sizeof(Elf32_Phdr),
			  .e_phnum = 1 },
		.load = { .p_type = PT_LOAD,
			  .p_vaddr = 0x10000,
			  .p_filesz = sizeof(program),
			  .p_memsz = sizeof(program),
			  .p_flags = PF_R | PF_X,
			  .p_align = 0x10000 },
		.code = { 0xe3a07001 /* mov r7, #1, which is exit */, 0xe3a00007 /* mov r0, #7 */,
			  0xef000000 /* svc #0 */ },
	};
	int fd = memfd_create("arm32", MFD_CLOEXEC), status;

	(void)argc;
	(void)argv;
	if (fd < 0 || write(fd, &program, sizeof(program)) != (ssize_t)sizeof(program))
		return broken("a program in memory");
	pid_t child = fork();
	if (child < 0)
		return broken("fork");
	if (child == 0) {
		(void)fexecve(fd, (char *[]){ (char *)"arm32", NULL }, (char *[]){ NULL });
		_exit(errno);
	}
	if (waitpid(child, &status, 0) < 0)
		return broken("wait");
	if (WIFSIGNALED(status))
		return denied(0, "32-bit code: killed by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status) == 7 ? reached("32-bit code makes calls")
					: denied(WEXITSTATUS(status), "run a 32-bit program");
}
#else
static int call_arm32(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return denied(ENOEXEC, "run a program for ARM");
}
#endif

/*
 * argv: COMMAND ARGS. Not an act of its own: gives COMMAND a session keyring with a secret in it,
 * as a caller that keeps its credentials there would.
 */
static int with_key(int argc, char **argv)
{
	(void)argc;
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
		return broken("no session keyring");
	if (syscall(SYS_add_key, "user", "vitro-test", "secret", 6, KEY_SPEC_SESSION_KEYRING) < 0)
		return broken("add_key");
	execvp(argv[1], argv + 1);
	return broken("exec %s", argv[1]);
}

static int read_key(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	char text[16];
	long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user",
			   "vitro-test", 0);
	if (key < 0)
		return denied(errno, "keyctl search");
	if (syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof(text)) < 0)
		return denied(errno, "keyctl read");
	return reached("read the caller's key");
}

static int ask_for_key(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (syscall(SYS_request_key, "user", "vitro-test", NULL, 0) < 0)
		return denied(errno, "request_key");
	return reached("got the caller's key");
}

static int add_key(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	long key = syscall(SYS_add_key, "user", "vitro-planted", "x", 1, KEY_SPEC_PROCESS_KEYRING);
	if (key < 0)
		return gated(errno, "add_key");
	return reached("keeps data in the kernel");
}

static int push_input(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (ioctl(0, TIOCSTI, "x") < 0)
		return denied(errno, "TIOCSTI");
	return reached("typed on the caller's terminal");
}

static int open_terminal(int argc, char **argv)
{
	static const char *const names[] = { "/dev/tty", NULL };
	(void)argc;
	(void)argv;
	return open_any(names, O_RDWR);
}

static int write_terminal(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (int fd = 0; fd < 3; fd++)
		if (isatty(fd))
			return reached("descriptor %d is the caller's terminal", fd);
	return denied(ENOTTY, "no descriptor is a terminal");
}

static int open_core_pattern(int argc, char **argv)
{
	static const char *const names[] = { "/proc/sys/kernel/core_pattern",
					     "/proc/sys/kernel/modprobe", NULL };
	(void)argc;
	(void)argv;
	return open_any(names, O_WRONLY);
}

static int open_sysctl(int argc, char **argv)
{
	static const char *const names[] = {
		"/proc/sys/kernel/hostname",          "/proc/sys/vm/overcommit_memory",
		"/proc/sys/net/ipv4/ip_forward",      "/proc/sys/fs/mqueue/msg_max",
		"/proc/sys/user/max_user_namespaces", NULL
	};
	(void)argc;
	(void)argv;
	return open_any(names, O_WRONLY);
}

static int open_proc_global(int argc, char **argv)
{
	static const char *const names[] = { "/proc/kcore",      "/proc/kmsg",
					     "/proc/keys",       "/proc/kallsyms",
					     "/proc/timer_list", "/proc/iomem",
					     "/proc/kpagecount", NULL };
	(void)argc;
	(void)argv;
	return open_any(names, O_RDONLY);
}

static int open_sysrq(int argc, char **argv)
{
	static const char *const names[] = { "/proc/sysrq-trigger", NULL };
	(void)argc;
	(void)argv;
	return open_any(names, O_WRONLY);
}

static int open_cgroup(int argc, char **argv)
{
	static const char *const names[] = { "/sys/fs/cgroup/cgroup.procs",
					     "/sys/fs/cgroup/memory/cgroup.procs",
					     "/sys/fs/cgroup/memory/tasks",
					     "/sys/fs/cgroup/unified/cgroup.procs", NULL };
	(void)argc;
	(void)argv;
	return open_any(names, O_WRONLY);
}

static int set_hostname(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (sethostname("vitro-escape", 12) < 0)
		return gated(errno, "sethostname");
	return reached("renamed the machine");
}

/* Sets the clock's tick to what it is. */
static int set_clock(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct timex now = { 0 };
	if (adjtimex(&now) < 0)
		return denied(errno, "adjtimex");
	now.modes = ADJ_TICK;
	if (adjtimex(&now) < 0)
		return gated(errno, "adjtimex");
	return reached("can set the clock");
}

/* The magic numbers are wrong, so that it fails behind the permission check. */
static int restart_machine(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	(void)syscall(SYS_reboot, 0, 0, 0, NULL); /* cannot succeed: see above */
	return errno == EINVAL ? reached("only the numbers were wrong") : gated(errno, "reboot");
}

static int add_swap(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	(void)syscall(SYS_swapon, "/nowhere", 0); /* cannot succeed: there is no such file */
	return errno == ENOENT ? reached("only the file was missing") : gated(errno, "swapon");
}

static int load_module(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	(void)syscall(SYS_finit_module, -1, "", 0); /* cannot succeed: no such descriptor */
	return errno == EBADF ? reached("only the file was missing") : gated(errno, "finit_module");
}

static int read_kernel_log(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static char text[4096];
	if (syscall(SYS_syslog, 3 /* SYSLOG_ACTION_READ_ALL */, text, sizeof(text)) < 0)
		return gated(errno, "syslog");
	return reached("read the kernel's log");
}

static int use_ports(int argc, char **argv)
{
	(void)argc;
	(void)argv;
#ifdef SYS_ioperm
	if (syscall(SYS_ioperm, 0x80, 1, 1) < 0)
		return gated(errno, "ioperm");
	return reached("drives the hardware");
#else
	return unclear("this machine has no ports");
#endif
}

const struct act kernel_acts[] = {
	{ "use_io_uring", "io_uring_setup", "makes system calls that no filter sees",
	  use_io_uring },
	{ "use_bpf", "bpf", "loads programs into the kernel", use_bpf },
	{ "use_perf", "perf_event_open", "measures the kernel and others", use_perf },
	{ "use_userfaultfd", "userfaultfd", "stops the kernel where it is weak", use_userfaultfd },
	{ "use_vmsplice", "vmsplice", "holds memory where nobody counts it", use_vmsplice },
	{ "change_ldt", "modify_ldt", "reaches rarely used kernel code", change_ldt },
	{ "change_personality", "personality", "weakens its own hardening", change_personality },
	{ "call_i386", "int 0x80", "makes calls that a 64-bit filter misreads", call_i386 },
	{ "call_x32", "x32 calls", "makes calls under other numbers", call_x32 },
	{ "call_arm32", "32-bit ARM code", "makes calls that a 64-bit filter misreads",
	  call_arm32 },
	{ "with_key", "(helper)", "runs a command with a secret in its session keyring", with_key },
	{ "read_key", "session keyring", "reads the caller's keys", read_key },
	{ "ask_for_key", "request_key", "gets the caller's keys", ask_for_key },
	{ "add_key", "add_key", "keeps data in the kernel", add_key },
	{ "push_input", "TIOCSTI", "types commands on the caller's terminal", push_input },
	{ "open_terminal", "/dev/tty", "opens the caller's terminal", open_terminal },
	{ "write_terminal", "a terminal as standard stream", "controls the caller's terminal",
	  write_terminal },
	{ "open_core_pattern", "core_pattern and modprobe",
	  "makes the kernel run a program as root", open_core_pattern },
	{ "open_sysctl", "/proc/sys", "changes the kernel's settings", open_sysctl },
	{ "open_proc_global", "global files in /proc", "reads what the whole machine does",
	  open_proc_global },
	{ "open_sysrq", "/proc/sysrq-trigger", "reboots the machine", open_sysrq },
	{ "open_cgroup", "cgroup.procs", "leaves its cgroup", open_cgroup },
	{ "set_hostname", "sethostname", "renames the machine", set_hostname },
	{ "set_clock", "adjtimex", "sets the clock", set_clock },
	{ "restart_machine", "reboot", "reboots the machine", restart_machine },
	{ "add_swap", "swapon", "gives the kernel a file as memory", add_swap },
	{ "load_module", "finit_module", "loads code into the kernel", load_module },
	{ "read_kernel_log", "syslog", "reads the kernel's log", read_kernel_log },
	{ "use_ports", "ioperm", "drives the hardware", use_ports },
	{ NULL }
};
