/* SPDX-License-Identifier: Apache-2.0 */
/* The add-on filters, run by an interpreter; seccomp_live_test.c asks the kernel. */
#include "kernel/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "kernel/bpf_test.h"

/* Calls that this system's headers may lack. */
enum {
	NR_FCHMODAT2 = 452,
	NR_SETXATTRAT = 463,
	NR_GETXATTRAT = 464,
	NR_REMOVEXATTRAT = 466,
	NR_FILE_SETATTR = 469,
};

static int ask(const struct sock_fprog *filter, long nr, uint32_t a, uint32_t b, uint32_t c,
	       uint32_t d)
{
	const struct seccomp_data plain = { (int)nr, NATIVE_ARCH, 0, { a, b, c, d, ~0u, ~0u } };
	struct seccomp_data garbage = plain;
	int answer = bpf_answer(filter, &plain);

	/* What lies above the 32 bits that the kernel looks at changes nothing. */
	for (int i = 0; i < 6; i++)
		garbage.args[i] |= 0xdeadbeef00000000ull;
	assert_int_equal(bpf_answer(filter, &garbage), answer);
	return answer;
}

static const struct sock_fprog *always(unsigned sockets)
{
	return vt_seccomp_addon(VT_SECCOMP_ALWAYS, sockets);
}

static const struct sock_fprog *owner(void)
{
	return vt_seccomp_addon(VT_SECCOMP_OWNER, 0);
}

static const struct sock_fprog *bare(void)
{
	return vt_seccomp_addon(VT_SECCOMP_BARE, VT_SOCKETS_NONE);
}

static const struct sock_fprog *mute(void)
{
	return vt_seccomp_addon(VT_SECCOMP_MUTE, VT_SOCKETS_NONE);
}

struct row {
	long nr;
	uint32_t a, b, c, d;
	int expected;
};

static void want_rows(const struct sock_fprog *filter, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		int got = ask(filter, row->nr, row->a, row->b, row->c, row->d);

		if (got != row->expected)
			fail_msg("row %zu: call %ld(%#x, %#x, %#x, %#x): %d, not %d", i, row->nr,
				 row->a, row->b, row->c, row->d, got, row->expected);
	}
}

#define WANT(filter, ...)                                              \
	do {                                                           \
		const struct row rows[] = { __VA_ARGS__ };             \
		want_rows(filter, rows, sizeof(rows) / sizeof(*rows)); \
	} while (0)

static void test_foreign_calls_pass_no_addon(void **state)
{
	static const uint32_t arches[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, FOREIGN_ARCH, 0, ~0u };

	(void)state;
	for (int addon = 0; addon < VT_SECCOMP_ADDONS; addon++) {
		const struct sock_fprog *filter = vt_seccomp_addon((enum vt_seccomp_addon)addon,
								   VT_SOCKETS_SETS - 1);

		for (int nr = 0; nr < NUMBERS; nr++) {
			for (size_t i = 0; i < sizeof(arches) / sizeof(*arches); i++) {
				const struct seccomp_data data = { nr, arches[i], 0, { 0 } };

				assert_int_equal(bpf_answer(filter, &data), KILLED);
			}
			/* The x32 bit: the same calls by other numbers. */
			WANT(filter, { nr | 0x40000000, 0, 0, 0, 0, ENOSYS });
		}
		/* A call that nobody has seen yet may be a new way round a rule. */
		for (int nr = 470; nr < NUMBERS; nr++)
			WANT(filter, { nr, 0, 0, 0, 0, ENOSYS });
		WANT(filter, { -1, 0, 0, 0, 0, ENOSYS }, { INT32_MIN, 0, 0, 0, 0, ENOSYS });
	}
}

/* Beside a built-in profile VT_SECCOMP_ALWAYS takes nothing away. */
static void test_always_is_in_the_profiles(void **state)
{
	(void)state;
	for (int profile = 0; profile < VT_SECCOMP_PROFILES; profile++)
		for (unsigned sockets = 0; sockets < VT_SOCKETS_SETS; sockets++) {
			const struct sock_fprog *builtin = vt_seccomp_builtin(
				(enum vt_seccomp_profile)profile, sockets);

			for (long nr = 0; nr < NUMBERS; nr++)
				for (uint32_t x = 0; x < 32; x++)
					if (ask(builtin, nr, x, x, x, x) == PASS)
						WANT(always(sockets), { nr, x, x, x, x, PASS });
		}
}

/* A tracer: on aarch64, filters are shown the first argument from before. */
#ifdef __aarch64__
enum { WRITES_REGISTERS = EPERM };
#else
enum { WRITES_REGISTERS = PASS };
#endif

/* What the kernel's own rules settle is left to the profile. */
static void test_always_leaves_the_rest(void **state)
{
	(void)state;
	WANT(always(0), { SYS_mount, 0, 0, 0, 0, PASS }, { SYS_personality, 8, 0, 0, 0, PASS },
	     { SYS_ptrace, 0, 0, 0, 0, PASS }, { SYS_userfaultfd, 0, 0, 0, 0, PASS },
	     { SYS_ptrace, PTRACE_GETREGSET, 0, 0, 0, PASS },
	     { SYS_ptrace, PTRACE_SETREGSET, 0, 0, 0, WRITES_REGISTERS },
	     { SYS_ptrace, 0x4212 /* PTRACE_SET_SYSCALL_INFO */, 0, 0, 0, WRITES_REGISTERS },
	     { SYS_name_to_handle_at, 0, 0, 0, 0, PASS }, { SYS_read, 0, 0, 0, 0, PASS },
	     { SYS_execve, 0, 0, 0, 0, PASS }, { SYS_seccomp, 1, 8, 0, 0, PASS });
}

/* clang-format off */
static const struct row promises[] = {
	{ SYS_fchmod, 3, 04755, 0, 0, EPERM },
	{ SYS_fchmod, 3, 0755, 0, 0, PASS },
	{ SYS_fchmodat, 3, 0, 02755, 0, EPERM },
	{ SYS_mknodat, 3, 0, 04755, 0, EPERM },
	{ SYS_mknodat, 3, 0, S_IFCHR | 0644, 0, EPERM },
	{ SYS_mknodat, 3, 0, S_IFIFO | 0644, 0, PASS },
	{ SYS_openat, 3, 0, O_CREAT, 04755, EPERM },
	{ SYS_openat, 3, 0, O_TMPFILE, 04755, EPERM },
	{ SYS_openat, 3, 0, O_RDONLY, 04755, PASS },
#ifdef __x86_64__
	{ SYS_chmod, 0, 04755, 0, 0, EPERM },
	{ SYS_creat, 0, 04755, 0, 0, EPERM },
	{ SYS_mknod, 0, 04755, 0, 0, EPERM },
	{ SYS_mknod, 0, S_IFCHR | 0644, 0, 0, EPERM },
	{ SYS_open, 0, O_CREAT, 04755, 0, EPERM },
#endif
	{ SYS_setxattr, 0, 0, 0, 1, EOPNOTSUPP },
	{ SYS_lsetxattr, 0, 0, 0, 1, EOPNOTSUPP },
	{ SYS_fsetxattr, 3, 0, 0, 1, EOPNOTSUPP },
	{ NR_SETXATTRAT, 3, 0, 0, 0, EOPNOTSUPP },
	{ SYS_removexattr, 0, 0, 0, 0, EOPNOTSUPP },
	{ SYS_lremovexattr, 0, 0, 0, 0, EOPNOTSUPP },
	{ SYS_fremovexattr, 3, 0, 0, 0, EOPNOTSUPP },
	{ NR_REMOVEXATTRAT, 3, 0, 0, 0, EOPNOTSUPP },
	{ SYS_getxattr, 0, 0, 0, 0, PASS },
	{ SYS_openat2, 0, 0, 0, 0, ENOSYS },
	{ NR_FCHMODAT2, 0, 0, 0, 0, ENOSYS },
	{ SYS_clone3, 0, 0, 0, 0, ENOSYS },
	{ SYS_clone, CLONE_NEWUSER, 0, 0, 0, EPERM },
	{ SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, EPERM },
	{ SYS_clone, CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, 0, 0, 0, EPERM },
	{ SYS_clone, 0x3d0f00, 0, 0, 0, PASS },
	{ SYS_clone, SIGCHLD, 0, 0, 0, PASS },
	{ SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, PASS },
	{ SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, EPERM },
	{ SYS_memfd_create, 0, MFD_CLOEXEC, 0, 0, PASS },
	{ SYS_memfd_create, 0, MFD_CLOEXEC | MFD_HUGETLB, 0, 0, EPERM },
	{ SYS_close_range, 3, ~0u, CLOSE_RANGE_UNSHARE, 0, EPERM },
	{ SYS_close_range, 3, ~0u, 0, 0, PASS },
	{ SYS_setns, 0, 0, 0, 0, EPERM },
	{ SYS_unshare, 0, 0, 0, 0, EPERM },
	{ SYS_io_uring_setup, 1, 0, 0, 0, EPERM },
	{ SYS_io_uring_enter, 3, 0, 0, 0, EPERM },
	{ SYS_io_uring_register, 3, 0, 0, 0, EPERM },
	{ SYS_bpf, 0, 0, 0, 0, EPERM },
	{ SYS_perf_event_open, 0, 0, 0, 0, EPERM },
	{ SYS_keyctl, 0, 0, 0, 0, EPERM },
	{ SYS_add_key, 0, 0, 0, 0, EPERM },
	{ SYS_request_key, 0, 0, 0, 0, EPERM },
	{ SYS_open_by_handle_at, 0, 0, 0, 0, EPERM },
	{ SYS_vmsplice, 0, 0, 0, 0, ENOSYS },
	{ SYS_shmget, 0, 0, 0, 0, ENOSYS },
	{ SYS_semget, 0, 0, 0, 0, ENOSYS },
	{ SYS_msgget, 0, 0, 0, 0, ENOSYS },
	{ SYS_io_setup, 0, 0, 0, 0, ENOSYS },
	{ SYS_memfd_secret, 0, 0, 0, 0, ENOSYS },
	{ SYS_sched_setaffinity, 1, 0, 0, 0, EPERM },
	{ SYS_sched_setaffinity, 2, 0, 0, 0, PASS },
	{ SYS_sched_setscheduler, 1, 0, 0, 0, EPERM },
	{ SYS_sched_setparam, 1, 0, 0, 0, EPERM },
	{ SYS_sched_setattr, 1, 0, 0, 0, EPERM },
	{ SYS_setpriority, PRIO_PROCESS, 1, 0, 0, EPERM },
	{ SYS_setpriority, PRIO_USER, 0, 0, 0, EPERM },
	{ SYS_setpriority, PRIO_PROCESS, 0, 0, 0, PASS },
	{ SYS_ioprio_set, 1, 1, 0, 0, EPERM },
	{ SYS_prlimit64, 1, 0, 0, 0, EPERM },
	{ SYS_prlimit64, 0, 0, 0, 0, PASS },
	{ SYS_fcntl, 0, F_SETLEASE, 0, 0, EPERM },
	{ SYS_fcntl, 0, F_SET_RW_HINT, 0, 0, EPERM },
	{ SYS_fcntl, 0, F_SET_FILE_RW_HINT, 0, 0, EPERM },
	{ SYS_fcntl, 0, F_GET_RW_HINT, 0, 0, PASS },
	{ SYS_fcntl, 0, F_SETFL, 0, 0, PASS },
	{ SYS_setsockopt, 3, SOL_SOCKET, SO_ATTACH_FILTER, 0, EPERM },
	{ SYS_setsockopt, 3, SOL_SOCKET, SO_ATTACH_BPF, 0, EPERM },
	{ SYS_setsockopt, 3, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, 0, EPERM },
	{ SYS_setsockopt, 3, SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, 0, EPERM },
	{ SYS_setsockopt, 3, SOL_SOCKET, SO_REUSEADDR, 0, PASS },
	{ SYS_setsockopt, 3, SOL_SOCKET, SO_DETACH_FILTER, 0, PASS },
	{ SYS_setsockopt, 3, IPPROTO_IPV6, IPV6_V6ONLY /* 26 too */, 0, PASS },
	{ SYS_ioctl, 0, TIOCSTI, 0, 0, EPERM },
	{ SYS_ioctl, 0, TIOCLINUX, 0, 0, EPERM },
	{ SYS_ioctl, 0, TIOCSETD, 0, 0, EPERM },
	{ SYS_ioctl, 0, TIOCGWINSZ, 0, 0, PASS },
	{ SYS_ioctl, 3, FS_IOC_SET_ENCRYPTION_POLICY, 0, 0, EPERM },
	{ SYS_ioctl, 3, FS_IOC_ADD_ENCRYPTION_KEY, 0, 0, EPERM },
	{ SYS_ioctl, 3, FS_IOC_REMOVE_ENCRYPTION_KEY, 0, 0, EPERM },
	{ SYS_ioctl, 3, FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS, 0, 0, EPERM },
	{ SYS_ioctl, 3, FS_IOC_GET_ENCRYPTION_POLICY, 0, 0, PASS },
	{ SYS_ioctl, 3, FS_IOC_GET_ENCRYPTION_POLICY_EX, 0, 0, PASS },
	{ SYS_ioctl, 3, FS_IOC_GET_ENCRYPTION_KEY_STATUS, 0, 0, PASS },
	{ SYS_ioctl, 3, FS_IOC_GETFLAGS, 0, 0, PASS },
};
/* clang-format on */

static void test_always_keeps_the_promises(void **state)
{
	(void)state;
	for (unsigned sockets = 0; sockets < VT_SOCKETS_SETS; sockets++)
		want_rows(always(sockets), promises, sizeof(promises) / sizeof(*promises));
}

static void test_always_knows_socket_families(void **state)
{
	(void)state;
	for (unsigned sockets = 0; sockets < VT_SOCKETS_SETS; sockets++) {
		bool brokered = sockets & VT_SOCKETS_BROKERED;
		int local = sockets & VT_SOCKETS_UNIX || brokered ? PASS : EAFNOSUPPORT;
		int inet = sockets & VT_SOCKETS_INET ? PASS : EAFNOSUPPORT;
		int names = sockets ? PASS : EPERM;

		WANT(always(sockets), { SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0, local },
		     { SYS_socket, AF_INET, SOCK_STREAM, 0, 0, inet },
		     { SYS_socket, AF_INET6, SOCK_DGRAM, 0, 0, inet },
		     { SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0, EAFNOSUPPORT },
		     { SYS_socket, AF_VSOCK, SOCK_STREAM, 0, 0, EAFNOSUPPORT },
		     { SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, 0, PASS },
		     { SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, 0,
		       sockets & VT_SOCKETS_UNIX ? PASS : ESOCKTNOSUPPORT },
		     { SYS_bind, 3, 0, 0, 0, names },
		     { SYS_connect, 3, 0, 0, 0, brokered ? ASKED : names });
	}
}

static void test_owner_keeps_modes_and_times(void **state)
{
	static const long denied[] = {
		SYS_fchmod, SYS_fchmodat, NR_FCHMODAT2, SYS_utimensat, NR_FILE_SETATTR,
#ifdef __x86_64__
		SYS_chmod,  SYS_utime,    SYS_utimes,   SYS_futimesat,
#endif
	};

	(void)state;
	for (size_t i = 0; i < sizeof(denied) / sizeof(*denied); i++)
		WANT(owner(), { denied[i], 0, 0, 0, 0, EPERM },
		     { denied[i], 3, 0600, 1, 1, EPERM });
	WANT(owner(), { SYS_getxattr, 0, 0, 0, 0, PASS }, { NR_GETXATTRAT, 0, 0, 0, 0, PASS },
	     { SYS_truncate, 0, 0, 0, 0, PASS }, { SYS_ftruncate, 0, 0, 0, 0, PASS },
	     { SYS_ptrace, 0, 0, 0, 0, PASS }, { SYS_kill, 1, 9, 0, 0, PASS },
	     { SYS_openat, 0, 0, O_CREAT, 0644, PASS }, { SYS_mkdirat, 0, 0, 0755, 0, PASS });
}

/* Whoever the cell's user is. */
static void test_bare_keeps_owners(void **state)
{
	static const long denied[] = {
		SYS_fchown,
		SYS_fchownat,
#ifdef __x86_64__
		SYS_chown,
		SYS_lchown,
#endif
	};

	(void)state;
	for (size_t i = 0; i < sizeof(denied) / sizeof(*denied); i++)
		WANT(bare(), { denied[i], 0, 0, 0, 0, EPERM },
		     { denied[i], 3, ~0u, ~0u, ~0u, EPERM });
}

/* And nothing but these: the rest of what an owner may do stays denied. */
static void test_owner_asks_about_modes_and_times(void **state)
{
	const struct sock_fprog *asks = vt_seccomp_addon(VT_SECCOMP_OWNER, VT_SOCKETS_BROKERED);

	(void)state;
	WANT(asks, { SYS_fchmod, 3, 0600, 0, 0, ASKED }, { SYS_fchmodat, 3, 0, 0600, 0, ASKED },
	     { SYS_utimensat, 3, 0, 0, 0, ASKED }, { NR_FCHMODAT2, 3, 0, 0600, 0, EPERM },
	     { NR_FILE_SETATTR, 0, 0, 0, 0, EPERM }, { SYS_connect, 3, 0, 0, 0, PASS });
#ifdef __x86_64__
	WANT(asks, { SYS_chmod, 0, 0600, 0, 0, ASKED }, { SYS_utime, 0, 0, 0, 0, EPERM },
	     { SYS_utimes, 0, 0, 0, 0, EPERM }, { SYS_futimesat, 3, 0, 0, 0, EPERM });
#endif
}

static void test_owner_keeps_pipes_small(void **state)
{
	(void)state;
	WANT(owner(), { SYS_fcntl, 3, F_SETPIPE_SZ, 1 << 20, 0, EPERM },
	     { SYS_fcntl, 3, F_GETPIPE_SZ, 0, 0, PASS }, { SYS_fcntl, 3, F_SETFL, 0, 0, PASS });
}

static void test_bare_keeps_attributes_behind_ioctls(void **state)
{
	(void)state;
	WANT(bare(), { SYS_ioctl, 3, FS_IOC_SETFLAGS, 0, 0, EPERM },
	     { SYS_ioctl, 3, FS_IOC32_SETFLAGS, 0, 0, EPERM },
	     { SYS_ioctl, 3, FS_IOC_FSSETXATTR, 0, 0, EPERM },
	     { SYS_ioctl, 3, FS_IOC_SETVERSION, 0, 0, EPERM },
	     { SYS_ioctl, 3, 0x40806685 /* FS_IOC_ENABLE_VERITY */, 0, 0, EPERM },
	     { SYS_ioctl, 3, 0x5000940e /* BTRFS_IOC_SUBVOL_CREATE */, 0, 0, EPERM },
	     { SYS_ioctl, 3, 0x5000940f /* BTRFS_IOC_SNAP_DESTROY */, 0, 0, EPERM },
	     { SYS_ioctl, 3, 0x40047211 /* FAT_IOCTL_SET_ATTRIBUTES */, 0, 0, EPERM },
	     { SYS_ioctl, 3, 0x8004f50c /* F2FS_IOC_GET_FEATURES */, 0, 0, PASS },
	     { SYS_ioctl, 3, FS_IOC_GETFLAGS, 0, 0, PASS },
	     { SYS_ioctl, 3, FS_IOC_FSGETXATTR, 0, 0, PASS }, { SYS_ioctl, 3, FICLONE, 0, 0, PASS },
	     { SYS_ioctl, 3, FICLONERANGE, 0, 0, PASS }, { SYS_ioctl, 3, FIONREAD, 0, 0, PASS },
	     { SYS_ioctl, 3, TIOCGWINSZ, 0, 0, PASS });
}

static void test_bare_has_no_queues(void **state)
{
	static const long denied[] = { SYS_mq_open,         SYS_mq_unlink, SYS_mq_timedsend,
				       SYS_mq_timedreceive, SYS_mq_notify, SYS_mq_getsetattr };

	(void)state;
	for (size_t i = 0; i < sizeof(denied) / sizeof(*denied); i++)
		WANT(bare(), { denied[i], 0, 0, 0, 0, EPERM });
	WANT(bare(), { SYS_fchmod, 3, 0600, 0, 0, PASS }, { SYS_inotify_init1, 0, 0, 0, 0, ENOSYS },
	     { SYS_getxattr, 0, 0, 0, 0, EOPNOTSUPP }, { SYS_fgetxattr, 3, 0, 0, 0, PASS });
}

static void test_bare_schedules_only_itself(void **state)
{
	static const long calls[] = { SYS_sched_setaffinity, SYS_sched_setscheduler,
				      SYS_sched_setparam, SYS_sched_setattr, SYS_prlimit64 };

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		WANT(bare(), { calls[i], 0, 0, 0, 0, PASS }, { calls[i], 1, 0, 0, 0, EPERM },
		     { calls[i], 4711, 0, 0, 0, EPERM }, { calls[i], ~0u, 0, 0, 0, EPERM });
	WANT(bare(), { SYS_setpriority, PRIO_PROCESS, 0, 0, 0, PASS },
	     { SYS_setpriority, PRIO_PROCESS, 4711, 0, 0, EPERM },
	     { SYS_setpriority, PRIO_PGRP, 0, 0, 0, PASS },
	     { SYS_setpriority, PRIO_USER, 0, 0, 0, EPERM }, { SYS_ioprio_set, 1, 0, 0, 0, PASS },
	     { SYS_ioprio_set, 1, 4711, 0, 0, EPERM }, { SYS_ioprio_set, 3, 0, 0, 0, EPERM },
	     { SYS_getpriority, PRIO_PROCESS, 4711, 0, 0, PASS },
	     { SYS_sched_getaffinity, 4711, 0, 0, 0, PASS },
	     { SYS_fcntl, 3, F_SETLEASE, 0, 0, EPERM });
}

static void test_mute_sends_no_signals(void **state)
{
	static const long denied[] = {
		SYS_tkill,           SYS_tgkill,
		SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
		SYS_pidfd_open,      SYS_pidfd_send_signal,
		SYS_ptrace,          SYS_process_vm_writev,
		SYS_pidfd_getfd,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(denied) / sizeof(*denied); i++)
		WANT(mute(), { denied[i], 0, 0, 0, 0, EPERM }, { denied[i], 4711, 9, 9, 0, EPERM });
	WANT(mute(), { SYS_kill, 0, SIGTERM, 0, 0, PASS }, { SYS_kill, 1, SIGTERM, 0, 0, EPERM },
	     { SYS_kill, ~0u, SIGKILL, 0, 0, EPERM }, { SYS_kill, 4711, 0, 0, 0, EPERM },
	     { SYS_fcntl, 3, F_SETOWN, 4711, 0, EPERM },
	     { SYS_fcntl, 3, F_SETOWN_EX, 4711, 0, EPERM },
	     { SYS_fcntl, 3, F_SETSIG, SIGKILL, 0, EPERM }, { SYS_fcntl, 3, F_GETOWN, 0, 0, PASS },
	     { SYS_ioctl, 3, FIOSETOWN, 0, 0, EPERM }, { SYS_ioctl, 3, SIOCSPGRP, 0, 0, EPERM },
	     { SYS_ioctl, 3, FIONREAD, 0, 0, PASS },
	     { SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, PASS },
	     { SYS_timer_create, 0, 0, 0, 0, PASS }, { SYS_fchmod, 3, 0644, 0, 0, PASS });
}

/* Of what a socket is asked, that about itself passes. */
static void test_networks_are_not_asked_about(void **state)
{
	const struct sock_fprog *called = vt_seccomp_addon(VT_SECCOMP_CALLED, VT_SOCKETS_INET);

	(void)state;
	WANT(called, { SYS_ioctl, 3, SIOCGIFCONF, 0, 0, EPERM },
	     { SYS_ioctl, 3, SIOCGSKNS, 0, 0, EPERM }, { SYS_ioctl, 3, SIOCATMARK, 0, 0, PASS },
	     { SYS_ioctl, 3, FIONREAD, 0, 0, PASS }, { SYS_socket, AF_INET, 0, 0, 0, PASS });
	WANT(always(VT_SOCKETS_NONE), { SYS_ioctl, 3, SIOCGIFCONF, 0, 0, EPERM },
	     { SYS_ioctl, 3, SIOCATMARK, 0, 0, PASS });
	WANT(always(VT_SOCKETS_INET), { SYS_ioctl, 3, SIOCGIFCONF, 0, 0, PASS });
}

static void test_families_that_do_not_exist_are_none(void **state)
{
	(void)state;
	assert_ptr_equal(always(VT_SOCKETS_SETS), always(VT_SOCKETS_NONE));
	assert_ptr_equal(always(~0u), always(VT_SOCKETS_NONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_foreign_calls_pass_no_addon),
		cmocka_unit_test(test_always_is_in_the_profiles),
		cmocka_unit_test(test_always_leaves_the_rest),
		cmocka_unit_test(test_always_keeps_the_promises),
		cmocka_unit_test(test_always_knows_socket_families),
		cmocka_unit_test(test_owner_keeps_modes_and_times),
		cmocka_unit_test(test_owner_asks_about_modes_and_times),
		cmocka_unit_test(test_owner_keeps_pipes_small),
		cmocka_unit_test(test_bare_keeps_owners),
		cmocka_unit_test(test_bare_keeps_attributes_behind_ioctls),
		cmocka_unit_test(test_bare_has_no_queues),
		cmocka_unit_test(test_bare_schedules_only_itself),
		cmocka_unit_test(test_mute_sends_no_signals),
		cmocka_unit_test(test_networks_are_not_asked_about),
		cmocka_unit_test(test_families_that_do_not_exist_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
