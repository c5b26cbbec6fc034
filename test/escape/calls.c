/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that the kernel gives to everybody, and that a cell does without: only the filter
 * stops them. Each is made so that success changes nothing.
 */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Debian 12's headers end before these. */
#define NR_MEMFD_SECRET 447
#define NR_CACHESTAT    451
#define NR_LISTMOUNT    458
#define NR_GETXATTRAT   464

/* reached if the call went well, else gated. */
static int judge(long result, const char *what)
{
	return result < 0 ? gated(errno, what) : reached("%s", what);
}

static int trace_child(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int hold[2];
	if (pipe2(hold, O_CLOEXEC) < 0)
		return broken("pipe");
	pid_t child = fork();
	if (child < 0)
		return broken("fork");
	if (child == 0) {
		char none;
		close(hold[1]);
		_exit(read(hold[0], &none, 1) != 0);
	}
	long code = ptrace(PTRACE_SEIZE, child, NULL, NULL);
	int err = errno;
	close(hold[1]); /* ends it where no signal may be sent, too */
	(void)waitpid(child, NULL, 0);
	errno = err;
	return judge(code, "ptrace of a child");
}

static int keep_capabilities(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return judge(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "PR_SET_KEEPCAPS");
}

/* argv: a file that may be read */
static int name_handle(int argc, char **argv)
{
	(void)argc;
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = { .head.handle_bytes = MAX_HANDLE_SZ };
	int mount_id;
	return judge(name_to_handle_at(AT_FDCWD, argv[1], &handle.head, &mount_id, 0),
		     "name_to_handle_at");
}

static int use_fanotify(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return judge(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_CLOEXEC, O_RDONLY),
		     "fanotify_init");
}

static int use_aio(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	aio_context_t context = 0;
	return judge(syscall(SYS_io_setup, 1, &context), "io_setup");
}

/* What the clock's discipline is; changes nothing. */
static int ask_clock(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct timex now = { 0 };
	return judge(syscall(SYS_adjtimex, &now), "adjtimex"); /* libc's is another call */
}

/* Without the flag that makes a copy it needs no capability. */
static int open_tree_plain(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return judge(syscall(SYS_open_tree, AT_FDCWD, "/", O_CLOEXEC), "open_tree");
}

static int list_mounts(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct {
		uint32_t size, spare;
		uint64_t id, param;
	} request = { sizeof(request), 0, UINT64_MAX /* the root's */, 0 };
	uint64_t ids[8];
	return judge(syscall(NR_LISTMOUNT, &request, ids, 8, 0), "listmount");
}

/* argv: a file that may be read */
static int spy_on_cache(int argc, char **argv)
{
	(void)argc;
	uint64_t range[2] = { 0, 4096 }, stat[5];
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return broken("open %s", argv[1]);
	return judge(syscall(NR_CACHESTAT, fd, range, stat, 0), "cachestat");
}

static int hide_memory(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return judge(syscall(NR_MEMFD_SECRET, O_CLOEXEC), "memfd_secret");
}

/* argv: the request. A pipe is no terminal: ENOTTY says that only that was missing. */
static int ask_terminal(int argc, char **argv)
{
	(void)argc;
	int ends[2], line = 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return broken("pipe");
	if (ioctl(ends[0], (unsigned long)number(argv, 1), &line) == 0 || errno == ENOTTY)
		return reached("only the terminal was missing");
	return gated(errno, "ioctl");
}

/*
 * An encrypted file system's request without what it needs: that of any other is missing
 * altogether. argv: a folder that may be read, the request
 */
static int ask_encryption(int argc, char **argv)
{
	(void)argc;
	int fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return broken("open %s", argv[1]);
	(void)ioctl(fd, (unsigned long)number(argv, 2), NULL); /* cannot succeed: see above */
	if (errno == EFAULT || errno == EOPNOTSUPP || errno == ENOTTY || errno == EINVAL)
		return reached("only the argument was missing");
	return gated(errno, "ioctl");
}

static int attach_filter(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct sock_filter code[] = { { BPF_RET | BPF_K, 0, 0, UINT32_MAX } };
	struct sock_fprog program = { 1, code };
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return broken("socketpair");
	return judge(setsockopt(ends[0], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
		     "SO_ATTACH_FILTER");
}

/* argv: an option that attaches a program, which is none */
static int ask_socket(int argc, char **argv)
{
	(void)argc;
	int ends[2], none = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return broken("socketpair");
	if (setsockopt(ends[0], SOL_SOCKET, (int)number(argv, 1), &none, sizeof(none)) == 0)
		return unclear("no program was attached");
	return errno == EBADF || errno == EINVAL ? reached("only the program was missing")
						 : gated(errno, "setsockopt");
}

/* argv: the option. EINVAL and ENODEV come from a kernel that was built without it. */
static int ask_prctl(int argc, char **argv)
{
	(void)argc;
	uint64_t answer = 0;
	int option = (int)number(argv, 1);
	long code = option == PR_SET_MM ? prctl(option, PR_SET_MM_MAP_SIZE, &answer, 0, 0)
					: prctl(option, 0, 0, 0, &answer);
	if (code < 0 && errno == ENODEV)
		return reached("only the CPUs' siblings were missing");
	return judge(code, "prctl");
}

/* A filter that lets all pass, with somebody to ask. */
static int listen_to_filter(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct sock_filter code[] = { { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } };
	struct sock_fprog program = { 1, code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return broken("no_new_privs");
	return judge(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			     &program),
		     "seccomp with a listener");
}

/* A call that is newer than this filter's tables. */
static int call_unknown(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	(void)syscall(NR_GETXATTRAT, -1, "nowhere", 0, "user.x", NULL, 0); /* cannot succeed */
	return errno == ENOSYS || errno == EPERM ? denied(errno, "getxattrat")
						 : reached("only the arguments were wrong");
}

/* argv: the name of a queue of the host's */
static int open_queue(int argc, char **argv)
{
	(void)argc;
	return mq_open(argv[1], O_RDONLY) == (mqd_t)-1 ? denied(errno, "mq_open %s", argv[1])
						       : reached("opened %s", argv[1]);
}

/* Landlock does not let a queue be made; that one is missing tells that the door is open. */
static int drop_queue(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (mq_unlink("/vitro-nowhere") == 0 || errno == ENOENT)
		return reached("only the queue was missing");
	return gated(errno, "mq_unlink");
}

static int flush_disks(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* nothing to flush there */
	return fd < 0 ? broken("open /dev/null") : judge(syncfs(fd), "syncfs");
}

static int place_memory(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return judge(syscall(SYS_set_mempolicy, 0 /* MPOL_DEFAULT */, NULL, 0), "set_mempolicy");
}

const struct act call_acts[] = {
	{ "trace_child", "ptrace of a child", "reaches the kernel's tracing code", trace_child },
	{ "keep_capabilities", "PR_SET_KEEPCAPS", "loosens how capabilities go",
	  keep_capabilities },
	{ "name_handle", "name_to_handle_at", "learns the numbers that open files", name_handle },
	{ "use_fanotify", "fanotify", "sees what others do with files", use_fanotify },
	{ "use_aio", "io_setup", "takes what the host has of it", use_aio },
	{ "ask_clock", "adjtimex without a change", "reaches the clock's door", ask_clock },
	{ "open_tree_plain", "open_tree without a copy", "reaches the mount calls' door",
	  open_tree_plain },
	{ "list_mounts", "listmount", "learns the mounts around it", list_mounts },
	{ "spy_on_cache", "cachestat", "sees which files others read", spy_on_cache },
	{ "hide_memory", "memfd_secret", "holds memory that nobody can look at", hide_memory },
	{ "ask_terminal", "a terminal's request", "steers a terminal that was left to it",
	  ask_terminal },
	{ "ask_encryption", "fscrypt's requests", "locks encrypted files of the caller's",
	  ask_encryption },
	{ "attach_filter", "SO_ATTACH_FILTER", "takes memory that nobody counts", attach_filter },
	{ "ask_socket", "programs on sockets", "takes memory that nobody counts", ask_socket },
	{ "ask_prctl", "rare options of prctl", "reaches code that is not for it", ask_prctl },
	{ "listen_to_filter", "a filter with a listener", "answers system calls of others",
	  listen_to_filter },
	{ "call_unknown", "a call that is newer than the filter", "does what nobody thought of",
	  call_unknown },
	{ "open_queue", "a message queue of the host", "reads the host's messages", open_queue },
	{ "drop_queue", "mq_unlink", "reaches the message queues' door", drop_queue },
	{ "flush_disks", "syncfs", "makes everybody wait for the disks", flush_disks },
	{ "place_memory", "set_mempolicy", "reaches rarely used kernel code", place_memory },
	{ NULL }
};
