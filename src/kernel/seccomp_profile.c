/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three thoughts behind the tables. What an honest program of today needs passes, since a tight
 * list rots with the next libc. What is new or obsolete gets ENOSYS, since every libc has a way
 * round a kernel that lacks it. What is known and reaches beyond the cell, or is a large and rarely
 * needed piece of kernel, gets EPERM, as it would for an ordinary user of a careful host.
 *
 * Rows that are `promised` hold under a profile of the user's as well. The question that makes a
 * row one of them: if a profile allowed this call, would a promise about files, network, memory,
 * pids or processes fall? What the kernel refuses to a process without capabilities (mounts,
 * modules, clocks) need not be promised, nor what reaches no further than the cell's own dumpable
 * processes, as init is none: a user who allows such a call takes its risk for the kernel, not for
 * the promises.
 *
 * The constants below have the same values on x86-64 and aarch64, so those of the building machine
 * serve both.
 */
#include "kernel/seccomp_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/ioprio.h>
#include <linux/prctl.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define PASS 0

/* clang-format off */
const struct vt_seccomp_group vt_seccomp_groups[] = {
	/* Reading, writing and waiting on descriptors that one has. */
	{ { PASS, PASS },
	  "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek close "
	  "dup dup2 dup3 flock fsync fdatasync sync_file_range ftruncate fallocate "
	  "fadvise64 readahead sendfile splice copy_file_range pipe pipe2 poll ppoll select pselect6 "
	  "epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2 "
	  "signalfd signalfd4 timerfd_create timerfd_gettime timerfd_settime inotify_init "
	  "inotify_init1 inotify_add_watch inotify_rm_watch" },

	/* Names, folders and attributes: mounts, Landlock and ids decide about these. */
	{ { PASS, PASS },
	  "stat lstat fstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink "
	  "readlinkat getdents getdents64 getcwd chdir fchdir mkdir mkdirat rmdir unlink unlinkat "
	  "rename renameat link linkat symlink symlinkat truncate chown fchown lchown "
	  "fchownat utime utimes utimensat futimesat umask getxattr lgetxattr fgetxattr listxattr "
	  "llistxattr flistxattr" },

	/*
	 * Files: labels, by which a host's mandatory access control lets others in, are attributes of
	 * the file's owner as others are, and which one is meant lies behind a pointer. Programs take
	 * this errno for a file system without attributes, and set a mode where they would have set a
	 * list.
	 */
	{ { EOPNOTSUPP, EOPNOTSUPP },
	  "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr "
	  "removexattrat", .promised = true },

	/* Memory of one's own. */
	{ { PASS, PASS },
	  "brk munmap mremap mprotect msync madvise mincore mlock mlock2 mlockall munlock "
	  "munlockall mseal pkey_alloc pkey_free pkey_mprotect map_shadow_stack membarrier "
	  "get_mempolicy" },

	/* Processes, threads and signals: the pid namespace bounds whom they reach. */
	{ { PASS, PASS },
	  "fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill pidfd_open "
	  "pidfd_send_signal rt_sigaction rt_sigprocmask rt_sigpending rt_sigqueueinfo "
	  "rt_tgsigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait sigaltstack pause "
	  "restart_syscall getpid getppid gettid getpgid getpgrp setpgid getsid setsid "
	  "set_tid_address set_robust_list get_robust_list futex futex_waitv futex_wait futex_wake "
	  "futex_requeue rseq arch_prctl" },

	/* Called by the kernel's own trampoline when the host traces with uprobes; else a SIGILL. */
	{ { PASS, PASS }, "uretprobe uprobe" },

	/* Ids and limits: without capabilities they narrow, or get the kernel's own EPERM. */
	{ { PASS, PASS },
	  "getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid "
	  "setregid setresuid setresgid setfsuid setfsgid setgroups capget capset getrlimit setrlimit "
	  "getrusage getpriority ioprio_get" },

	/* A program may narrow itself further; a filter of its own never overrides an errno of ours. */
	{ { PASS, PASS }, "landlock_create_ruleset landlock_add_rule landlock_restrict_self" },

	/* Time, sleep and facts about the machine. */
	{ { PASS, PASS },
	  "time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep alarm getitimer "
	  "setitimer timer_create timer_delete timer_getoverrun timer_gettime timer_settime times "
	  "uname sysinfo getcpu getrandom" },

	/* Which CPU, and when; affinity counts only inside the cpuset that the cell has. */
	{ { PASS, PASS },
	  "sched_yield sched_getparam sched_getscheduler sched_get_priority_max "
	  "sched_get_priority_min sched_rr_get_interval sched_getattr sched_getaffinity" },

	/* Traffic on sockets that one has; what makes and sets them is in the other table. */
	{ { PASS, PASS },
	  "sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown getsockname getpeername "
	  "getsockopt" },

	/* Message queues: bounded by RLIMIT_MSGQUEUE. */
	{ { PASS, ENOSYS },
	  "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr" },

	/* Where one's own memory lies on a NUMA machine: only the JVM and libnuma ask. */
	{ { PASS, ENOSYS }, "set_mempolicy" },

	/*
	 * The same page by page: each page of a file in memory can have a wish of its own, which stays
	 * with the file, and which no cgroup counts.
	 */
	{ { ENOSYS, ENOSYS }, "mbind set_mempolicy_home_node", .promised = true },

	/* Odd ways to move or map pages, and flushing the whole host's disks. */
	{ { PASS, ENOSYS }, "tee remap_file_pages sync syncfs" },

	/* Memory: a byte of a huge page in a pipe holds all of it, where nobody counts it. */
	{ { ENOSYS, ENOSYS }, "vmsplice", .promised = true },

	/*
	 * Memory: 64 GB of System V ipc fit into a fresh ipc namespace, which no rlimit counts and
	 * which no process shows, so without cgroups nothing would bound them.
	 */
	{ { ENOSYS, ENOSYS },
	  "shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl",
	  .promised = true },

	/*
	 * Memory: kernel AIO holds it where no look sees it, and what one cell takes of fs.aio-max-nr,
	 * the whole host lacks.
	 */
	{ { ENOSYS, ENOSYS },
	  "io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents", .promised = true },

	/* Memory: pages of a secret file that is not mapped are in no count that a look adds up. */
	{ { ENOSYS, ENOSYS }, "memfd_secret", .promised = true },

	/*
	 * Files, processes: flags and modes behind a pointer, where no filter can look, and fchmodat2,
	 * whose like libc does itself. What is denied in clone, openat and fchmodat is so in these.
	 */
	{ { ENOSYS, ENOSYS }, "clone3 openat2 fchmodat2", .promised = true },

	/* New; named to be found here: page cache spying, the list of mounts. */
	{ { ENOSYS, ENOSYS }, "cachestat statmount listmount" },

	/*
	 * All promises: in a user namespace of its own a process has every capability again, and with
	 * it mounts, sockets of any kind, and a fresh count of processes.
	 */
	{ { EPERM, EPERM }, "setns unshare", .promised = true },

	/* Mounts and roots: what the cell is made of. Without capabilities the kernel says no too. */
	{ { EPERM, EPERM },
	  "chroot pivot_root mount umount2 open_tree open_tree_attr move_mount fsopen "
	  "fsconfig fsmount fspick mount_setattr" },

	/* Reaching into other processes past what signals and tracing allow. */
	{ { EPERM, EPERM },
	  "pidfd_getfd process_vm_readv process_vm_writev process_madvise process_mrelease kcmp "
	  "migrate_pages move_pages" },

	/* Large pieces of kernel that attackers love and honest programs can do without. */
	{ { EPERM, EPERM },
	  "userfaultfd modify_ldt" },

	/* Processes: on a careless host, samples of what every CPU does show everybody's memory. */
	{ { EPERM, EPERM }, "perf_event_open", .promised = true },

	/* Files, network: a ring opens files and makes sockets in the kernel, where no filter looks. */
	{ { EPERM, EPERM }, "io_uring_setup io_uring_enter io_uring_register", .promised = true },

	/* Memory: maps of bpf are nobody's, and outlive the process. */
	{ { EPERM, EPERM }, "bpf", .promised = true },

	/* Files: keys are secrets of the user's that no mount hides, and asking runs a host program. */
	{ { EPERM, EPERM }, "keyctl add_key request_key", .promised = true },

	/* Files: by handle one passes over every folder's permissions, and over every mount. */
	{ { EPERM, EPERM }, "open_by_handle_at", .promised = true },

	/* How handles are had; fanotify sees whole mounts. */
	{ { EPERM, EPERM }, "name_to_handle_at fanotify_init fanotify_mark lookup_dcookie" },

	/* The machine itself. */
	{ { EPERM, EPERM },
	  "reboot kexec_load kexec_file_load create_module init_module finit_module delete_module "
	  "get_kernel_syms query_module swapon swapoff "
	  "acct quotactl quotactl_fd syslog settimeofday clock_settime clock_adjtime adjtimex "
	  "sethostname setdomainname iopl ioperm vhangup nfsservctl" },

	{ { 0 }, NULL },
};

/*
 * Files: one with these bits on a granted folder is a root shell on the host. The kernel cuts modes to 16
 * bits and looks at these two among them, so testing the two is exact.
 */
#define SETID (S_ISUID | S_ISGID)

/* Only with one of these does the kernel look at the mode; else it is whatever the register held. */
enum { CREATES = O_CREAT | 020000000 /* __O_TMPFILE, which glibc offers only with O_DIRECTORY */ };

/*
 * 0x80, a time namespace, is among the bits that clone takes as a signal number, so it makes none
 * there; but no signal has it either, and thus it costs nothing to refuse.
 */
#define NAMESPACES                                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWTIME)

/* What the kernel takes as the type; the rest are SOCK_CLOEXEC and SOCK_NONBLOCK. */
enum { SOCK_TYPE = 0xf };

/* Not in Debian 12's headers for programs. */
enum { PROTO_L2TP = 115, PROTO_SMC = 256 };

enum { TRACE_SET_CALL = 0x4212 }; /* PTRACE_SET_SYSCALL_INFO, of Linux 6.16 */

/* Requests of fscrypt by letter and number. How much they carry is in the bits above. */
enum { SET_POLICY = 19, ADD_KEY = 23, REMOVE_KEY = 24, REMOVE_KEY_ALL_USERS = 25 };
#define FSCRYPT(number) FIELD(1, 0xffff, 'f' << 8 | (number))

/* Requests of sockets: the first eight are about the socket itself, all others about its network. */
#define OF_NETWORK  FIELD(1, 0xff00, 0x8900)
#define SOCKETS_OWN FIELD(1, 0xfff8, 0x8900)

const struct vt_seccomp_condition vt_seccomp_conditions[] = {
	{ "chmod fchmod creat", PASS, TESTS({ EPERM, HAS(1, SETID) }), .promised = true },
	{ "fchmodat", PASS, TESTS({ EPERM, HAS(2, SETID) }), .promised = true },

	/* The same; and from Linux 5.8 on anybody may make a device node that is a whiteout. */
	{ "mknod", PASS, TESTS({ EPERM, HAS(1, SETID) }, { EPERM, FIELD(1, S_IFMT, S_IFCHR) }),
	  .promised = true },
	{ "mknodat", PASS, TESTS({ EPERM, HAS(2, SETID) }, { EPERM, FIELD(2, S_IFMT, S_IFCHR) }),
	  .promised = true },
	{ "open", PASS, TESTS({ PASS, LACKS(1, CREATES) }, { EPERM, HAS(2, SETID) }),
	  .promised = true },
	{ "openat", PASS, TESTS({ PASS, LACKS(2, CREATES) }, { EPERM, HAS(3, SETID) }),
	  .promised = true },

	/*
	 * Memory: huge pages that the host has set aside are in no process's size, and in no count of a
	 * memory cgroup. Huge pages of the usual kind need no flag.
	 */
	{ "mmap", PASS, TESTS({ EPERM, HAS(3, MAP_HUGETLB) }), .promised = true },
	{ "memfd_create", PASS, TESTS({ EPERM, HAS(1, MFD_HUGETLB) }), .promised = true },

	/*
	 * Threads and processes, but no new namespaces. Processes: and no sisters, who would be children
	 * of vitro's own, whom nobody reaps, and who keep their cell from its end. Memory: and no threads
	 * with descriptors of their own, as what those hold is seen by nobody who looks at the process.
	 */
	{ "clone", PASS,
	  TESTS({ EPERM, HAS(0, NAMESPACES) }, { EPERM, HAS(0, CLONE_PARENT) },
		{ EPERM, FIELD(0, CLONE_THREAD | CLONE_FILES, CLONE_THREAD) }), .promised = true },
	{ "close_range", PASS, TESTS({ EPERM, HAS(2, CLOSE_RANGE_UNSHARE) }), .promised = true },

	/*
	 * Processes: the cell's init is pid 1 and of the same user. It must get to run, or nobody can end the
	 * cell. Priorities of one's own are bounded by rlimits; little honest code asks.
	 */
	{ "sched_setaffinity", PASS, TESTS({ EPERM, IS(0, 1) }), .promised = true },
	{ "sched_setscheduler sched_setparam sched_setattr", PASS,
	  TESTS({ EPERM, ALWAYS, .profiles = 1 << VT_SECCOMP_STRICT }, { EPERM, IS(0, 1) }),
	  .promised = true },
	{ "setpriority", PASS,
	  TESTS({ EPERM, ALWAYS, .profiles = 1 << VT_SECCOMP_STRICT },
		{ EPERM, IS(0, PRIO_USER) }, { EPERM, IS(1, 1) }), .promised = true },
	{ "ioprio_set", PASS,
	  TESTS({ EPERM, ALWAYS, .profiles = 1 << VT_SECCOMP_STRICT },
		{ EPERM, IS(0, IOPRIO_WHO_USER) }, { EPERM, IS(1, 1) }), .promised = true },

	/*
	 * Files: a lease on one that the cell may only read makes others wait to write it, and a hint
	 * about how long its data lives says where the disk puts what others write.
	 */
	{ "fcntl", PASS,
	  TESTS({ EPERM, IS(1, F_SETLEASE) }, { EPERM, IS(1, F_SET_RW_HINT) },
		{ EPERM, IS(1, F_SET_FILE_RW_HINT) }), .promised = true },

	/* Files: a whiteout is a device node by another name. */
	{ "renameat2", PASS, TESTS({ EPERM, HAS(4, RENAME_WHITEOUT) }), .promised = true },

	/*
	 * Processes: typing into the caller's terminal, its console's clipboard, its line disciplines.
	 * Files: through any folder that can be read, on a read-only mount too, the keys of its file
	 * system are added and removed for the caller's user, whose files are locked then.
	 * Network: interfaces and their addresses are those of where a socket was made. The one that a
	 * call comes by was made outside, and a bare cell's pairs are on the host's network.
	 */
	{ "ioctl", PASS,
	  TESTS({ EPERM, IS(1, TIOCSTI) }, { EPERM, IS(1, TIOCLINUX) }, { EPERM, IS(1, TIOCSETD) },
		{ EPERM, FSCRYPT(SET_POLICY) }, { EPERM, FSCRYPT(ADD_KEY) },
		{ EPERM, FSCRYPT(REMOVE_KEY) }, { EPERM, FSCRYPT(REMOVE_KEY_ALL_USERS) },
		{ PASS, SOCKETS_OWN }, { PASS, OF_NETWORK, .sockets = VT_SOCKETS_INET },
		{ EPERM, OF_NETWORK }),
	  .promised = true },

	/*
	 * Asking passes, and so does running without address randomisation, which weakens nobody
	 * else, and without which ThreadSanitizer does not start on some hosts. Not so what turns
	 * every readable page executable, maps page zero, or plays another system.
	 */
	{ "personality", EPERM,
	  TESTS({ PASS, IS(0, UINT32_MAX) }, { PASS, IS(0, 0) },
		{ PASS, IS(0, ADDR_NO_RANDOMIZE), .profiles = 1 << VT_SECCOMP_DEFAULT }) },

	/*
	 * Core scheduling idles a sibling CPU at the neighbours' expense, of which no limit knows;
	 * memory maps are CRIU's.
	 */
	{ "prctl", PASS, TESTS({ EPERM, IS(0, PR_SCHED_CORE) }, { EPERM, IS(0, PR_SET_MM) }),
	  .promised = true },

	/* Processes: one's own limits only, as init has the same user, and could be choked. */
	{ "prlimit64", EPERM, TESTS({ PASS, IS(0, 0) }), .promised = true },

	/* A filter of one's own is welcome; a supervisor for it is for programs that do not nest. */
	{ "seccomp", PASS,
	  TESTS({ EPERM, HAS(1, SECCOMP_FILTER_FLAG_NEW_LISTENER),
		  .profiles = 1 << VT_SECCOMP_STRICT }) },

	/*
	 * Memory: a socket's filter is compiled into memory that no cgroup counts, out of what the
	 * whole machine has for it.
	 */
	{ "setsockopt", PASS,
	  TESTS({ PASS, IS_NOT(1, SOL_SOCKET) }, { EPERM, IS(2, SO_ATTACH_FILTER) },
		{ EPERM, IS(2, SO_ATTACH_BPF) }, { EPERM, IS(2, SO_ATTACH_REUSEPORT_CBPF) },
		{ EPERM, IS(2, SO_ATTACH_REUSEPORT_EBPF) }), .promised = true },

	/* Network. Rare protocols hide behind the common families, and asking for one loads its module. */
	{ "socket", EAFNOSUPPORT,
	  TESTS({ EPROTONOSUPPORT, IS(2, IPPROTO_SCTP), .sockets = VT_SOCKETS_INET },
		{ EPROTONOSUPPORT, IS(2, IPPROTO_DCCP), .sockets = VT_SOCKETS_INET },
		{ EPROTONOSUPPORT, IS(2, PROTO_L2TP), .sockets = VT_SOCKETS_INET },
		{ EPROTONOSUPPORT, IS(2, PROTO_SMC), .sockets = VT_SOCKETS_INET },
		{ PASS, IS(0, AF_UNIX), .sockets = VT_SOCKETS_UNIX },
		{ PASS, IS(0, AF_INET), .sockets = VT_SOCKETS_INET },
		{ PASS, IS(0, AF_INET6), .sockets = VT_SOCKETS_INET },
		{ EAFNOSUPPORT, IS_NOT(0, AF_UNIX), .sockets = VT_SOCKETS_BROKERED },
		{ PASS, FIELD(1, SOCK_TYPE, SOCK_STREAM), .sockets = VT_SOCKETS_BROKERED },
		{ PASS, FIELD(1, SOCK_TYPE, SOCK_SEQPACKET), .sockets = VT_SOCKETS_BROKERED },
		{ ESOCKTNOSUPPORT, ALWAYS, .sockets = VT_SOCKETS_BROKERED }),
	  .promised = true },

	/*
	 * Network: one end of a datagram pair can connect to, or send to, any other unix socket: the road
	 * round a denied socket(AF_UNIX). SOCK_RAW is a datagram under another name. Ends of streams
	 * stay with each other for good.
	 */
	{ "socketpair", ESOCKTNOSUPPORT,
	  TESTS({ EAFNOSUPPORT, IS_NOT(0, AF_UNIX) }, { PASS, FIELD(1, SOCK_TYPE, SOCK_STREAM) },
		{ PASS, FIELD(1, SOCK_TYPE, SOCK_SEQPACKET) },
		{ PASS, FIELD(1, SOCK_TYPE, SOCK_DGRAM), .sockets = VT_SOCKETS_UNIX }),
	  .promised = true },

	/* Network: without sockets of its own, a cell could do this only with one that was left to it. */
	{ "bind listen accept accept4", EPERM,
	  TESTS({ PASS, ALWAYS,
		  .sockets = VT_SOCKETS_UNIX | VT_SOCKETS_INET | VT_SOCKETS_BROKERED }),
	  .promised = true },
	/* Files: whom it names lies behind a pointer, where no filter can look. */
	{ "connect", EPERM,
	  TESTS({ VT_SECCOMP_NOTIFY, ALWAYS, .sockets = VT_SOCKETS_BROKERED },
		{ PASS, ALWAYS, .sockets = VT_SOCKETS_UNIX | VT_SOCKETS_INET }),
	  .promised = true },

	/*
	 * Tracing one's own children. LeakSanitizer cannot do without: under EPERM a correct program
	 * that was built with -fsanitize=address loses its output and exits with 1. The kernel lets
	 * it reach nothing but the cell's own dumpable processes.
	 *
	 * All promises, on aarch64: filters are asked after tracers, but of a call's first argument
	 * they are shown what it was before (orig_x0), while the call takes what is in x0. A tracer
	 * that writes registers has any call pass each test of its first argument. SET_SYSCALL_INFO
	 * writes both; but by an SECCOMP_RET_TRACE with the number of a call's end, and SETSIGINFO,
	 * the kernel takes the stop before a call for the one after it, and writes x0 alone. On
	 * x86-64 the registers that filters are shown are those that calls take.
	 */
	{ "ptrace", PASS,
	  TESTS({ EPERM, ALWAYS, .profiles = 1 << VT_SECCOMP_STRICT },
		{ EPERM, IS(0, PTRACE_SETREGSET), .machines = 1 << VT_SECCOMP_AARCH64 },
		{ EPERM, IS(0, TRACE_SET_CALL), .machines = 1 << VT_SECCOMP_AARCH64 }),
	  .promised = true },

	{ NULL },
};

const struct vt_seccomp_group vt_seccomp_called_groups[] = { { { 0 }, NULL } };

const struct vt_seccomp_condition vt_seccomp_called_conditions[] = {
	{ "ioctl", PASS, TESTS({ PASS, SOCKETS_OWN }, { EPERM, OF_NETWORK }) },
	{ NULL },
};
/* clang-format on */
